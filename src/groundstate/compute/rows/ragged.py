r"""Sequences of different length: their items one after the other, and where each row begins.

Row i is ``values[offsets[i] : offsets[i + 1]]``. Taking rows is one gather, whatever their number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.foreign.torch import register_pytree_node
from groundstate.compute.random import GOLDEN
from groundstate.compute.rows.base import RowContainer
from groundstate.compute.weight_line.hashing_torch import _signed, _words, mix64_torch
from groundstate.errors import DataError, ShapeError

_CHUNK = 2**21  # numbers hashed at once
_ORIGIN = _signed(0x9FB21C651E98DF25)


@dataclass(frozen=True, eq=False, repr=False)
class Ragged(RowContainer):
    """Rows of different length, each ``(length, *item shape)``.

    Parameters
    ----------
    values : Tensor, ``(M, *item shape)``
        The items of all rows.
    offsets : Tensor of int64, ``(n + 1,)``
        Where rows begin; the last is M.

    Attributes
    ----------
    equal : int or None
        Items of every row where all have as many, known without a look at the device; such rows are
        a tensor ``(n, equal, *item shape)``, and parts of them stay so.

    Examples
    --------
    >>> rows = Ragged.of([[1.0, 2.0], [], [3.0]])
    >>> rows
    3 sequences of 0 to 2 items of shape (), float32
    >>> rows.take(torch.tensor([2, 0, 0])).values.tolist()
    [3.0, 1.0, 2.0, 1.0, 2.0]
    """

    values: Tensor
    offsets: Tensor
    equal: int | None = field(init=False)

    def __post_init__(self) -> None:
        ends = self.offsets
        if ends.dtype != torch.int64 or ends.ndim != 1 or not len(ends):
            raise ShapeError(
                f"offsets must be int64 of shape (n + 1,), got {ends.dtype} {tuple(ends.shape)}"
            )
        if self.values.ndim < 1 or int(ends[0]) != 0 or int(ends[-1]) != len(self.values):
            raise ShapeError(
                f"offsets must go from 0 to the number of items, {tuple(self.values.shape)[:1]}, "
                f"got {int(ends[0])} to {int(ends[-1])}"
            )
        low, high = (int(v) for v in torch.aminmax(ends.diff())) if len(ends) > 1 else (0, -1)
        if low < 0:
            raise ShapeError("offsets must not decrease; a row cannot have a negative length")
        object.__setattr__(self, "equal", low if low == high else None)

    @classmethod
    def _of(cls, values: Tensor, offsets: Tensor, equal: int | None = None) -> Self:
        """Without checks: parts of rows that were checked."""
        made = cls.__new__(cls)
        object.__setattr__(made, "values", values)
        object.__setattr__(made, "offsets", offsets)
        object.__setattr__(made, "equal", equal)
        return made

    @classmethod
    def of(cls, rows: Sequence[Any], dtype: torch.dtype | None = None) -> Self:
        """From a list of arrays or tensors ``(length, *item shape)``, whose format real numbers keep; those
        of Python become float32, as in torch. Whole numbers become int64."""
        arrays = [r if isinstance(r, Tensor) else _tensor(r) for r in rows]
        filled = [a for a in arrays if a.numel()] or arrays
        items = {tuple(a.shape[1:]) for a in filled}
        if len(items) > 1 or any(a.ndim < 1 for a in arrays):
            raise DataError(
                "rows of different length need items of one shape, got items of shapes "
                f"{sorted(items)}; pass arrays (length, *item shape)"
            )
        lengths = torch.tensor([len(a) for a in arrays], dtype=torch.int64)
        values = torch.cat(filled) if filled else torch.zeros(0)
        if dtype is None:
            dtype = values.dtype if values.is_floating_point() else torch.int64
        return cls(values.to(dtype), offsets_of(lengths))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Tensor:
        """Items of each row, ``(n,)``."""
        return self.offsets.diff()

    @property
    def item_shape(self) -> tuple[int, ...]:
        return tuple(self.values.shape[1:])

    @property
    def row(self) -> Tensor:
        """The row of each item, ``(M,)``."""
        n = torch.arange(len(self), device=self.device)
        return n.repeat_interleave(self.lengths, output_size=len(self.values))

    @property
    def of_one_shape(self) -> bool:
        return type(self) is Ragged and bool(self.equal)

    def take(self, index: Tensor) -> Self:
        if self.equal is not None:
            values = self._table().index_select(0, index).flatten(0, 1)
            return self._of(values, self._even(len(index)), self.equal)
        place, offsets = positions(self.offsets, index)
        return self._of(self.values.index_select(0, place), offsets)

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        values = torch.cat([p.values for p in parts])
        kinds = {p.equal for p in parts}
        equal = kinds.pop() if len(kinds) == 1 else None
        return cls._of(values, offsets_of(torch.cat([p.lengths for p in parts])), equal)

    def split(self, sizes: Sequence[int]) -> list[Self]:
        if self.equal is not None:
            parts = self._table().split(list(sizes))
            return [self._of(v.flatten(0, 1), self._even(len(v)), self.equal) for v in parts]
        ends = torch.tensor([0, *sizes]).cumsum(0)
        items = self.offsets[ends.to(self.device)].diff().tolist()
        starts = self.offsets[:-1].split(list(sizes))
        lasts = self.offsets[1:].split(list(sizes))
        return [
            self._of(v, torch.cat([a[:1], b]) - a[:1] if len(a) else self.offsets[:1] * 0)
            for v, a, b in zip(self.values.split(items), starts, lasts, strict=True)
        ]

    def to(self, device: torch.device, *, non_blocking: bool = False) -> Self:
        if self.device == device:
            return self
        return self._of(
            self.values.to(device, non_blocking=non_blocking),
            self.offsets.to(device, non_blocking=non_blocking),
            self.equal,
        )

    def floating(self, dtype: torch.dtype) -> Self:
        if not self.values.is_floating_point() or self.values.dtype == dtype:
            return self
        return self._of(self.values.to(dtype), self.offsets, self.equal)

    def like(self, values: Tensor) -> Ragged:
        """Other items in rows of the same lengths."""
        return Ragged._of(values, self.offsets, self.equal)

    def padded(self, fill: float = 0.0, length: int | None = None) -> Tensor:
        """All rows in one tensor ``(n, length, *item shape)``, filled up behind their ends."""
        if self.equal is not None and length in (None, self.equal):
            return self._table()
        longest = int(self.lengths.max()) if len(self) else 0
        size = longest if length is None else length
        if size < longest:
            raise ShapeError(f"the longest row has {longest} items, which do not fit into {size}")
        if len(self.values) == len(self) * size and size:  # every row is the longest
            return self.values.reshape(len(self), size, *self.item_shape).clone()
        out = self.values.new_full((len(self), size, *self.item_shape), fill)
        row = self.row
        out[row, torch.arange(len(row), device=self.device) - self.offsets[row]] = self.values
        return out

    def _table(self) -> Tensor:
        """Rows of one length as a tensor ``(n, equal, *item shape)``."""
        assert self.equal is not None
        return self.values.reshape(len(self), self.equal, *self.item_shape)

    def _even(self, n: int) -> Tensor:
        """Where n rows of that length begin."""
        assert self.equal is not None
        return torch.arange(n + 1, device=self.device) * self.equal

    def tensors(self) -> tuple[Tensor, ...]:
        return (self.values,)

    @property
    def device(self) -> torch.device:
        return self.values.device

    def hashes(self) -> NDArray[np.uint64]:
        width = max(1, self.values[:1].numel())
        found = [
            content_words(part) for part in self._chunks(max(1, _CHUNK // width))
        ]  # (n,) int64 that carry unsigned words
        words = torch.cat(found) if found else torch.zeros(0, dtype=torch.int64)
        return words.cpu().numpy().view(np.uint64)

    def _chunks(self, items: int) -> list[Self]:
        """Parts of about so many items, a longer row alone."""
        if len(self.values) <= items:
            return [self]
        marks = torch.arange(items, len(self.values), items, device=self.device)
        cut = torch.searchsorted(self.offsets[1:-1], marks).unique().tolist()
        edges = [0, *(c for c in cut if 0 < c < len(self)), len(self)]
        return self.split(np.diff(edges).tolist())

    def describe(self) -> str:
        return f"{len(self)} sequences of {self._sizes('items')} of {self._items()}"

    def _sizes(self, noun: str) -> str:
        if not len(self):
            return f"no {noun}"
        low, high = (int(v) for v in torch.aminmax(self.lengths))
        return f"{high} {noun}" if low == high else f"{low} to {high} {noun}"

    def _items(self) -> str:
        return f"shape {self.item_shape}, {str(self.values.dtype)[6:]}"


def _unflattened(parts: Iterable[Any], equal: Any) -> Ragged:
    values, offsets = parts
    return Ragged._of(values, offsets, equal)


# work that is recorded for tensors of fixed shapes takes rows of one length as well
register_pytree_node(Ragged, lambda r: ([r.values, r.offsets], r.equal), _unflattened)


def offsets_of(lengths: Tensor) -> Tensor:
    """Where rows of these lengths begin.

    >>> offsets_of(torch.tensor([2, 0, 1])).tolist()
    [0, 2, 2, 3]
    """
    return torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])


def positions(offsets: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
    """Places of the items of some rows, ``(m,)``, and where these rows begin then."""
    start = offsets.index_select(0, index)
    lengths = offsets.index_select(0, index + 1) - start
    begin = offsets_of(lengths)
    total = int(begin[-1])
    shift = (start - begin[:-1]).repeat_interleave(lengths, output_size=total)
    return torch.arange(total, device=offsets.device) + shift, begin


def content_words(rows: Ragged) -> Tensor:
    """The content of rows as 64-bit words on their device, ``(n,)`` int64:
    mix(Σ_j mix(w_j ⊕ k_j) − mix(k_j) + mix(length)), j counting the numbers of the row."""
    flat = rows.values.reshape(len(rows.values), rows.values[:1].numel() or 1)
    place = torch.arange(len(flat), device=rows.device) - rows.offsets[rows.row]
    columns = torch.arange(1, flat.shape[1] + 1, device=rows.device)
    counter = place[:, None] * flat.shape[1] + columns  # (M, d)
    keys = mix64_torch(counter * _signed(GOLDEN) + _ORIGIN)
    summed = (mix64_torch(_words(flat) ^ keys) - mix64_torch(keys)).sum(1)
    ends = offsets_of(summed)[rows.offsets]  # sums that wrap around: differences are exact
    return mix64_torch(ends.diff() + mix64_torch(rows.lengths + _ORIGIN))


def _tensor(values: Any) -> Tensor:
    found = torch.from_numpy(np.array(values))
    return (
        found if isinstance(values, np.ndarray) or found.dtype != torch.float64 else found.float()
    )
