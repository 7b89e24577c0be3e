"""What can be asked of rows, whether they are a tensor's first axis or a container.

Folds, the weight line, batches, populations and the store use these functions alone and never look
at shapes, so that whatever works on a table works on images, texts, ragged sequences and graphs.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Self, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.weight_line.hashing import row_hash
from groundstate.errors import ShapeError


class RowContainer(ABC):
    """Rows that no single tensor holds; subclasses keep flat tensors and where rows begin.

    Containers are frozen: every operation gives a new one. ``rows[i]`` is a container of one row,
    ``rows[2:5]``, ``rows[mask]`` and ``rows[index]`` are those rows.
    """

    in_memory: bool = True  # False where rows are read when they are moved to a device
    on_disk: bool = False  # reading them takes long enough to do it beside something else

    @property
    def of_one_shape(self) -> bool:
        """Whether any m of the rows are tensors of the same shapes, so that a step can be recorded."""
        return False

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
    def to(self, device: torch.device, *, non_blocking: bool = False) -> Rows:
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

    @abstractmethod
    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors that hold the content."""

    @abstractmethod
    def floating(self, dtype: torch.dtype) -> Self:
        """The same rows with real numbers of another dtype."""

    def split(self, sizes: Sequence[int]) -> list[Self]:
        """Consecutive parts of so many rows each."""
        ends = np.cumsum([0, *sizes])
        return [self[int(a) : int(b)] for a, b in pairwise(ends)]

    @property
    def shape(self) -> tuple[int]:
        """``(n,)``, as NumPy and scikit-learn count rows."""
        return (len(self),)

    def __getitem__(self, which: Any) -> Self:
        if isinstance(which, tuple) and len(which) == 2 and which[1] is Ellipsis:
            which = which[0]  # as scikit-learn indexes
        if isinstance(which, int | np.integer):
            if not -len(self) <= which < len(self):
                raise IndexError(f"row {which} of {len(self)} rows")
            which = [int(which) % len(self)]
        return self.take(row_index(which, len(self)).to(self.index_device))

    @property
    def index_device(self) -> torch.device:
        """Where an index of rows is wanted."""
        return self.device

    def __repr__(self) -> str:
        return self.describe()


Rows = Tensor | RowContainer


def row_index(which: Any, n: int) -> Tensor:
    """A slice, a mask or numbers of rows as an int64 index.

    >>> row_index(slice(1, 3), 5).tolist(), row_index(np.array([True, False]), 2).tolist()
    ([1, 2], [0])
    """
    if isinstance(which, slice):
        return torch.arange(*which.indices(n))
    index = which if isinstance(which, Tensor) else torch.from_numpy(np.array(which))
    if index.dtype == torch.bool:
        if index.shape != (n,):
            raise ShapeError(f"a mask of rows needs shape ({n},), got {tuple(index.shape)}")
        return index.nonzero().squeeze(1)
    index = index.to(torch.int64)
    return torch.where(index < 0, index + n, index)


def count(rows: Rows) -> int:
    """Number of rows, −1 for a single number, which has none.

    >>> count(torch.zeros(3, 2)), count(torch.tensor(1.0))
    (3, -1)
    """
    shape = rows.shape  # of a tensor much sooner read than its `len`
    return shape[0] if shape else -1


def common_count(values: Iterable[Rows]) -> int:
    """Number of rows that all values have; −1 where they differ or one has none, −2 for no values.

    >>> common_count([torch.zeros(3, 2), torch.zeros(3)]), common_count([torch.zeros(3), torch.ones(2)])
    (3, -1)
    """
    n = -2
    for value in values:
        shape = value.shape  # read once: small fits feel it
        rows = shape[0] if shape else -1
        if (rows != n and n != -2) or rows < 0:
            return -1
        n = rows
    return n


def take(rows: Rows, index: Tensor) -> Rows:
    """The rows of an int64 index, which may be on another device.

    >>> take(torch.tensor([10, 11, 12]), torch.tensor([2, 0])).tolist()
    [12, 10]
    """
    if isinstance(rows, Tensor):
        return rows.index_select(0, index.to(rows.device))
    return rows.take(index.to(rows.index_device))


def join(parts: Sequence[Rows]) -> Rows:
    """The rows of several values of one kind, one after the other."""
    first = parts[0]
    if isinstance(first, Tensor):
        return torch.cat(cast("list[Tensor]", list(parts)))
    return type(first).join(cast("list[Any]", parts))


def split(rows: Rows, sizes: Sequence[int]) -> Sequence[Rows]:
    """Consecutive parts of so many rows each.

    >>> [part.tolist() for part in split(torch.arange(3), [1, 2])]
    [[0], [1, 2]]
    """
    return rows.split(list(sizes))


def part(rows: Rows, start: int, stop: int) -> Rows:
    """Rows from ``start`` to before ``stop``."""
    return rows[start:stop]


def to_device(rows: Rows, device: torch.device, *, non_blocking: bool = False) -> Rows:
    """The same rows on a device; files are read."""
    return rows.to(device, non_blocking=non_blocking)


def in_memory(rows: Rows) -> bool:
    """False where rows are read when they are moved to a device."""
    return isinstance(rows, Tensor) or rows.in_memory


def tensors(rows: Rows) -> tuple[Tensor, ...]:
    """The tensors that hold the content of rows."""
    return (rows,) if isinstance(rows, Tensor) else rows.tensors()


def on_disk(rows: Rows) -> bool:
    """Whether rows are files that are opened and decoded when they are moved to a device."""
    return not isinstance(rows, Tensor) and rows.on_disk


def elements(rows: Rows) -> float:
    """Numbers per row, on average; without end where rows are not read yet.

    >>> elements(torch.zeros(3, 2))
    2.0
    """
    if not in_memory(rows):
        return math.inf
    return sum(t.numel() for t in tensors(rows)) / max(1, count(rows))


def bad_row(rows: Rows) -> int | None:
    """The first row that holds NaN or infinity, None where there is none.

    >>> bad_row(torch.tensor([[1.0], [math.nan]]))
    1
    """
    if all(map(_finite, tensors(rows))):
        return None
    if isinstance(rows, Tensor):
        return int((~torch.isfinite(rows)).reshape(len(rows), -1).any(1).nonzero()[0])
    each = split(rows, [1] * count(rows))
    return next(i for i, row in enumerate(each) if not all(map(_finite, tensors(row))))


def _finite(values: Tensor) -> bool:
    """Whether all are finite: one pass without a temporary, since NaN spreads to the extremes."""
    if not values.numel() or not values.is_floating_point():
        return True
    low, high = torch.aminmax(values)
    return bool(torch.isfinite(low) & torch.isfinite(high))


def floating(rows: Rows, dtype: torch.dtype) -> Rows:
    """Rows with real numbers of another dtype; whole numbers stay."""
    if isinstance(rows, Tensor):
        return rows.to(dtype) if rows.is_floating_point() else rows
    return rows.floating(dtype)


def floating_dtype(rows: Rows) -> torch.dtype | None:
    """The dtype of real numbers in rows, None where there are none."""
    return next((t.dtype for t in tensors(rows) if t.is_floating_point()), None)


def hashes(rows: Rows) -> NDArray[np.uint64]:
    """The content of every row as one 64-bit word."""
    return row_hash(rows) if isinstance(rows, Tensor) else rows.hashes()


def hash_together(values: Mapping[str, Rows]) -> NDArray[np.uint64]:
    """The content of rows of several variables, taken together, as one 64-bit word."""
    return row_hash(*values.values())


def describe(rows: Rows) -> str:
    """Kind, number and sizes of rows in a few words.

    >>> describe(torch.zeros(3, 2))
    '3 rows of shape (2,), float32'
    """
    if isinstance(rows, Tensor):
        return f"{len(rows)} rows of shape {tuple(rows.shape[1:])}, {str(rows.dtype)[6:]}"
    return rows.describe()


def home(values: Mapping[str, Rows]) -> torch.device:
    """Where the rows of several variables are kept; those on disk are nowhere yet."""
    kept = (v.device for v in values.values() if in_memory(v))
    return next(kept, torch.device("cpu"))


def real_dtype(values: Mapping[str, Rows]) -> torch.dtype:
    """The dtype of the real numbers of several variables, torch's default where there are none."""
    found = (floating_dtype(v) for v in values.values())
    return next((dtype for dtype in found if dtype is not None), torch.get_default_dtype())


def check_same_length(values: Mapping[str, Rows]) -> int:
    """The common number of rows; ``ShapeError`` that lists all numbers where they differ."""
    sizes = {name: count(value) for name, value in values.items()}
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"{name} has {n}" for name, n in sizes.items())
        raise ShapeError(f"all variables need the same number of rows, but {listed}")
    return next(iter(sizes.values()))
