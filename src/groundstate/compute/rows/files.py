"""Files on disk as rows: known by their content, read when a batch is moved to its device."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.rows import base
from groundstate.compute.rows.base import Rows
from groundstate.compute.rows.unread import Unread
from groundstate.errors import DataError

_BLOCK = 2**20


class Reader(ABC):
    """How files become rows; subclasses are frozen dataclasses of settings, so that they are kept
    with a model.
    """

    @abstractmethod
    def read(self, paths: Sequence[str]) -> Rows:
        """The content of files, one row each."""

    @abstractmethod
    def describe(self) -> str:
        """What a file holds, in a few words."""


@dataclass(frozen=True)
class ArrayReader(Reader):
    """Files of NumPy arrays (``.npy``) of one shape.

    Parameters
    ----------
    dtype : of real numbers
    """

    dtype: torch.dtype = torch.float32

    def read(self, paths: Sequence[str]) -> Rows:
        arrays = [np.load(path, allow_pickle=False) for path in paths]
        shapes = {a.shape for a in arrays}
        if len(shapes) > 1:
            raise DataError(f"the files hold arrays of different shapes, {sorted(shapes)[:3]}")
        return base.floating(torch.from_numpy(np.stack(arrays)), self.dtype)

    def describe(self) -> str:
        return "arrays"


@dataclass(frozen=True, eq=False, repr=False)
class Files(Unread):
    """Rows that stay on disk; ``to`` reads them.

    Parameters
    ----------
    paths : array of text, ``(n,)``
    reader : what reads them
    content : array of uint64, ``(n,)``, or None
        Hashes of the bytes of the files; taken from the files when they are first asked for.
    """

    paths: NDArray[Any]
    reader: Reader
    content: NDArray[np.uint64] | None = None
    in_memory = False
    on_disk = True

    @classmethod
    def of(cls, paths: Sequence[str | Path], reader: Reader | None = None) -> Self:
        """From paths; ``DataError`` names the first that is not there."""
        lost = next((p for p in paths if not Path(p).is_file()), None)
        if lost is not None:
            raise DataError(f"there is no file {str(lost)!r}; pass paths of files that can be read")
        return cls(np.array([str(p) for p in paths], dtype=np.str_), reader or ArrayReader())

    def __len__(self) -> int:
        return len(self.paths)

    def take(self, index: Tensor) -> Self:
        at = index.cpu().numpy()
        content = None if self.content is None else self.content[at]
        return type(self)(self.paths[at], self.reader, content)

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        first = parts[0]
        if any(p.reader != first.reader for p in parts):
            raise DataError("files that are read in different ways cannot be joined")
        known = [p.content for p in parts if p.content is not None]
        content = np.concatenate(known) if len(known) == len(parts) else None
        return cls(np.concatenate([p.paths for p in parts]), first.reader, content)

    def to(self, device: torch.device, *, non_blocking: bool = False) -> Rows:
        """The content of the files, on the device."""
        rows = self.reader.read(self.paths.tolist())
        return base.to_device(rows, device, non_blocking=non_blocking)

    def hashes(self) -> NDArray[np.uint64]:
        if self.content is None:
            words = np.array([_digest(path) for path in self.paths.tolist()], dtype=np.uint64)
            object.__setattr__(self, "content", words)
        assert self.content is not None
        return self.content

    def describe(self) -> str:
        return f"{len(self)} files of {self.reader.describe()}"


def _digest(path: str) -> int:
    found = hashlib.blake2b(digest_size=8)
    with Path(path).open("rb") as file:
        while block := file.read(_BLOCK):
            found.update(block)
    return int.from_bytes(found.digest(), "little")
