"""Rows in a file that are read as if they were in memory, a few pages at a time.

The operating system brings pages of a memory map when they are touched; `give_back` lets go of them, so
that a pass over a table takes no more memory than the pages of some slices. Solvers see tensors.
"""

from __future__ import annotations

import mmap
import tempfile
import warnings
import weakref
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

_maps: dict[int, weakref.ref[mmap.mmap]] = {}  # by the address of the first row


def written(pieces: Iterable[NDArray[Any]], columns: int, dtype: Any) -> Tensor:
    """Pieces of a table one after the other in a file that is gone with the tensor, ``(N, columns)``.

    Examples
    --------
    >>> x = written(iter([np.zeros((2, 3)), np.ones((1, 3))]), 3, np.float64)
    >>> x.sum(1).tolist(), is_mapped(x)
    ([0.0, 0.0, 3.0], True)
    """
    with tempfile.TemporaryFile(prefix="groundstate-") as file:
        rows = 0
        for piece in pieces:  # not through the map: a full disk is then an error, not a signal
            file.write(np.ascontiguousarray(piece, dtype).data)
            rows += len(piece)
        if rows == 0:
            return torch.empty((0, columns), dtype=torch.from_numpy(np.empty(0, dtype)).dtype)
        file.flush()
        return mapped(np.memmap(file, dtype, "r+", shape=(rows, columns)))


def mapped(array: np.memmap[Any, Any]) -> Tensor:
    """The tensor of a memory map of rows, never written to, whose pages `give_back` lets go of."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        x = torch.from_numpy(np.asarray(array))
    pages = array._mmap  # type: ignore[attr-defined]
    if array.mode != "c" and pages is not None:  # what was written to a private map would be lost
        _maps[x.data_ptr()] = weakref.ref(pages)
    return x


def is_mapped(x: Tensor) -> bool:
    """Whether a tensor is all rows of a table in a file."""
    found = _maps.get(x.data_ptr()) if _maps and x.device.type == "cpu" else None
    return found is not None and found() is not None


def give_back() -> None:
    """Let go of the pages of all maps; they are read again when touched."""
    for at, found in list(_maps.items()):
        pages = found()
        if pages is None:
            _maps.pop(at, None)
        elif hasattr(pages, "madvise"):
            pages.madvise(mmap.MADV_DONTNEED)


def pieces(x: Tensor, rows: int) -> Iterator[Tensor]:
    """Consecutive rows of a tensor, whose pages are given back where it is mapped."""
    for part in x.split(max(1, rows)):
        yield part
        if _maps:
            give_back()
