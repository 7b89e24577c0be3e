"""Rows larger than memory at the door of an estimator: pieces of a table, read one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.sparse import issparse
from torch import Tensor

from groundstate.data.streams.datasets import Rereadable
from groundstate.errors import DataError
from groundstate.learn.base import Batch
from groundstate.learn.train.sources import Source

ROWS = 2**16
FILES = "a path, or a list of paths, of Parquet, Arrow, CSV or JSON-lines files"
TAKES = f"a memory map, an iterator of arrays (n, d), groundstate.data.Rereadable, {FILES}"


class Chunks:
    """Batches ``{"x": (n, d)}`` of one width, and of the dtype of the first.

    Attributes
    ----------
    width : number of columns
    dtype : of the rows
    names : names of the columns, None where there are none
    """

    def __init__(self, pieces: Iterable[Any], device: torch.device) -> None:
        self.device = device
        self._pieces = pieces
        once = iter(pieces)
        first = next(once, None)
        if first is None:
            raise DataError("the stream gives no rows to learn from")
        self._once = once if once is pieces else None  # a generator is read once
        self._spent = False
        self._first = first
        self.names = _names(first)
        x, _ = _piece(first)
        self.dtype, self.width = x.dtype, x.shape[1]

    @property
    def first(self) -> Tensor:
        """The rows of the first piece."""
        return _piece(self._first)[0]

    def __iter__(self) -> Iterator[Batch]:
        if self._once is not None:
            if self._spent:
                raise DataError(
                    "a generator can be read once, and this fit reads its rows several times; pass "
                    "groundstate.data.Rereadable(function) with the function that makes it"
                )
            pieces: Iterable[Any] = chain([self._first], self._once)
            self._spent = True
        else:
            pieces = self._pieces
        seen = 0
        for piece in pieces:
            x, weight = _piece(piece)
            if x.shape[1] != self.width:
                raise DataError(
                    f"row {seen} of the stream begins a piece of {x.shape[1]} columns; the first "
                    f"has {self.width}"
                )
            seen += len(x)
            batch = {"x": x.to(self.device, self.dtype)}
            if weight is not None:
                batch["weight"] = weight.to(self.device, self.dtype)
            yield batch


def chunks_of(X: Any, sample_weight: Any, device: torch.device) -> Chunks | None:
    """The pieces of a table that is not in memory; None for rows that are.

    Examples
    --------
    >>> import numpy as np, torch
    >>> parts = chunks_of(iter([np.ones((2, 3)), np.ones((1, 3))]), None, torch.device("cpu"))
    >>> parts.width, [len(batch["x"]) for batch in parts]
    (3, [2, 1])
    >>> chunks_of(np.ones((2, 3)), None, torch.device("cpu")) is None
    True
    """
    if isinstance(X, np.memmap):
        if X.ndim != 2:
            raise DataError(f"a memory map of rows has two axes, got shape {X.shape}")
        return Chunks(Rereadable(lambda: _slices(X, sample_weight)), device)
    pieces = _streamed(X)
    if pieces is None:
        return None
    if sample_weight is not None:
        raise DataError(
            "weights of a stream come with its pieces: give pairs (rows, weights), or sources with "
            "a variable 'weight'"
        )
    return Chunks(pieces, device)


def _streamed(X: Any) -> Iterable[Any] | None:
    if isinstance(X, str | Path):
        return Rereadable(lambda: _tables([X]))
    if isinstance(X, list | tuple) and X and all(isinstance(one, str | Path) for one in X):
        paths = list(X)
        if all(Path(one).exists() for one in paths):
            return Rereadable(lambda: _tables(paths))
        return None
    if isinstance(X, Iterator | Rereadable | Source):
        return X
    return None


def _slices(X: Any, weight: Any) -> Iterator[Any]:
    if weight is not None and len(weight) != len(X):
        raise ValueError(f"sample_weight has {len(weight)} entries for {len(X)} rows")
    for at in range(0, len(X), ROWS):
        rows = np.array(X[at : at + ROWS])
        yield rows if weight is None else (rows, np.asarray(weight[at : at + ROWS]))


def _tables(paths: list[Any]) -> Iterator[Any]:
    from groundstate.data.streams.stream import stream

    for path in paths:
        for table in stream(path, ROWS):
            yield table.frame


def _names(piece: Any) -> list[str] | None:
    names = getattr(piece, "columns", None)
    if names is None or not all(isinstance(name, str) for name in names):
        return None
    return list(names)


def _piece(piece: Any) -> tuple[Tensor, Tensor | None]:
    """Rows and weights of a piece: an array, a frame, a pair of them, or a batch by names."""
    weight: Any = None
    if isinstance(piece, dict):
        piece, weight = piece["x"], piece.get("weight")
    elif isinstance(piece, tuple) and len(piece) == 2:
        piece, weight = piece
    if issparse(piece):
        piece = piece.toarray()
    if not isinstance(piece, Tensor):
        try:
            array = np.asarray(piece.to_numpy() if hasattr(piece, "to_numpy") else piece)
            if array.dtype not in (np.float32, np.float64):
                array = array.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise DataError(
                f"a piece of a stream must hold rows of numbers, got {type(piece).__name__}: {error}"
            ) from error
        piece = torch.from_numpy(np.ascontiguousarray(array))
    if piece.ndim != 2:
        raise DataError(f"a piece of a stream is rows (n, d), got shape {tuple(piece.shape)}")
    if not piece.is_floating_point():
        piece = piece.double()
    w = None if weight is None else torch.as_tensor(np.asarray(weight))
    return piece, w
