"""Stretches of one long array of numbers, which may be a file that the operating system maps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.rows import base
from groundstate.compute.rows.base import Rows
from groundstate.compute.rows.ragged import Ragged, offsets_of
from groundstate.compute.rows.unread import Unread
from groundstate.errors import DataError

_CHUNK = 2**20  # numbers that are read at once


@dataclass(frozen=True, eq=False, repr=False)
class Spans(Unread):
    """Row i is ``values[start[i]:stop[i]]``; ``to`` reads it.

    Parameters
    ----------
    values : array of whole numbers, ``(N,)``, which may be a memory map
    start, stop : int64 ``(n,)``
    width : rows are as long and ``to`` gives a tensor ``(n, width)``; None gives ``Ragged`` rows
    fill : what stands behind the end of a row of less than ``width`` numbers

    Examples
    --------
    >>> rows = Spans(np.arange(5, dtype=np.uint16), np.array([0, 3]), np.array([3, 5]), 3, -1)
    >>> rows, rows.to(torch.device("cpu")).tolist()
    (2 stretches of 5 numbers, [[0, 1, 2], [3, 4, -1]])
    """

    values: NDArray[Any]
    start: NDArray[np.int64]
    stop: NDArray[np.int64]
    width: int | None = None
    fill: int = 0
    in_memory = False

    def __post_init__(self) -> None:
        if self.values.ndim != 1 or self.values.dtype.kind not in "iu":
            raise DataError(
                f"expected whole numbers in one line, got {self.values.dtype} {self.values.shape}"
            )

    def __len__(self) -> int:
        return len(self.start)

    @property
    def lengths(self) -> Tensor:
        """Numbers of each row, int64 ``(n,)``."""
        return torch.from_numpy(self.stop - self.start)

    def take(self, index: Tensor) -> Self:
        at = index.cpu().numpy()
        return replace(self, start=self.start[at], stop=self.stop[at])

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        first = parts[0]
        if any(p.values is not first.values for p in parts):
            raise DataError("stretches of different arrays cannot be joined")
        start, stop = ([getattr(p, name) for p in parts] for name in ("start", "stop"))
        return replace(first, start=np.concatenate(start), stop=np.concatenate(stop))

    def to(self, device: torch.device, *, non_blocking: bool = False) -> Rows:
        """The numbers as int64 on the device."""
        if self.width is None:
            offsets = offsets_of(self.lengths)
            shift = torch.from_numpy(self.start) - offsets[:-1]
            place = torch.arange(int(offsets[-1])) + shift.repeat_interleave(self.lengths)
            found = torch.from_numpy(self.values[place.numpy()].astype(np.int64))
            return Ragged(found, offsets).to(device, non_blocking=non_blocking)
        at = self.start[:, None] + np.arange(self.width)  # (n, width)
        inside = at < self.stop[:, None]
        read = self.values[np.where(inside, at, self.start[:, None])].astype(np.int64)
        rows = torch.from_numpy(np.where(inside, read, self.fill))
        return rows.to(device, non_blocking=non_blocking)

    def in_parts(self) -> Iterator[Rows]:
        """The numbers of all rows in order, of some rows at a time."""
        host = torch.device("cpu")
        longest = int(self.lengths.max()) if len(self) else 1
        many = max(1, _CHUNK // max(1, self.width or longest))
        return (self[a : a + many].to(host) for a in range(0, max(1, len(self)), many))

    def hashes(self) -> NDArray[np.uint64]:
        return np.concatenate([base.hashes(part) for part in self.in_parts()])

    def describe(self) -> str:
        return f"{len(self)} stretches of {len(self.values)} numbers"
