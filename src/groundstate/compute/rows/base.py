"""What can be asked of rows, whether they are a tensor's first axis or a container.

Folds, the weight line, batches, populations and the store use these functions alone and never look
at shapes, so that whatever works on a table works on images, texts, ragged sequences and graphs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.weight_line.hashing import row_hash
from groundstate.errors import ShapeError


class RowContainer(ABC):
    """Rows that no single tensor holds; subclasses keep flat tensors and where rows begin."""

    @abstractmethod
    def __len__(self) -> int:
        """Number of rows."""

    @abstractmethod
    def take(self, index: Tensor) -> Self:
        """The rows of an index, int64 ``(m,)``, repeated where it repeats."""

    @classmethod
    @abstractmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        """The rows of several containers, one after the other."""

    @abstractmethod
    def to(self, device: torch.device, *, non_blocking: bool = False) -> Self:
        """The same rows on a device."""

    @abstractmethod
    def hashes(self) -> NDArray[np.uint64]:
        """The content of every row as one 64-bit word, ``(n,)``."""

    @abstractmethod
    def describe(self) -> str:
        """Kind, number and sizes of the rows in a few words."""

    @property
    @abstractmethod
    def device(self) -> torch.device:
        """Where the rows are."""

    def __repr__(self) -> str:
        return self.describe()


Rows = Tensor | RowContainer


def count(rows: Rows) -> int:
    """Number of rows.

    >>> count(torch.zeros(3, 2))
    3
    """
    return len(rows)


def take(rows: Rows, index: Tensor) -> Rows:
    """The rows of an int64 index.

    >>> take(torch.tensor([10, 11, 12]), torch.tensor([2, 0])).tolist()
    [12, 10]
    """
    if isinstance(rows, Tensor):
        return rows.index_select(0, index)
    return rows.take(index)


def join(parts: Sequence[Rows]) -> Rows:
    """The rows of several values of one kind, one after the other."""
    first = parts[0]
    if isinstance(first, Tensor):
        return torch.cat(list(parts))  # type: ignore[arg-type]  # all parts are of one kind
    return type(first).join(parts)  # type: ignore[arg-type]


def to_device(rows: Rows, device: torch.device, *, non_blocking: bool = False) -> Rows:
    """The same rows on a device."""
    return rows.to(device, non_blocking=non_blocking)


def hashes(rows: Rows) -> NDArray[np.uint64]:
    """The content of every row as one 64-bit word."""
    if isinstance(rows, Tensor):
        return row_hash(rows.detach().cpu().numpy())
    return rows.hashes()


def describe(rows: Rows) -> str:
    """Kind, number and sizes of rows in a few words.

    >>> describe(torch.zeros(3, 2))
    '3 rows of shape (2,), float32'
    """
    if isinstance(rows, Tensor):
        return f"{len(rows)} rows of shape {tuple(rows.shape[1:])}, {str(rows.dtype)[6:]}"
    return rows.describe()


def check_same_length(values: Mapping[str, Rows]) -> int:
    """The common number of rows; ``ShapeError`` that lists all numbers where they differ."""
    sizes = {name: count(value) for name, value in values.items()}
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"{name} has {n}" for name, n in sizes.items())
        raise ShapeError(f"all variables need the same number of rows, but {listed}")
    return next(iter(sizes.values()))


__all__ = [
    "RowContainer",
    "Rows",
    "check_same_length",
    "count",
    "describe",
    "hashes",
    "join",
    "take",
    "to_device",
]
