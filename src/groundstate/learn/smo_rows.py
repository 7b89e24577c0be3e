r"""Rows of a Gram matrix for sequential minimal optimisation: computed in blocks, kept in a cache."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.hashing import row_hash
from groundstate.learn.smo_kernels import gather, subtract_rows, subtract_rows_parallel
from groundstate.math.kernels import RBF, Geometry, Kernel, Linear

I64 = NDArray[np.int64]
F64 = NDArray[np.float64]
PARALLEL = 2**21  # products below which starting threads costs more than it saves
HALF_NORM = 64.0  # beyond it float32 loses digits of the exponent that matter


def canonical_rows(x: Tensor, y: Tensor | None, weight: Tensor | None) -> tuple[I64, F64]:
    """Rows of different content, in the order of their hash, with their summed weights.

    A row of weight 2 and the row twice become the same table, so everything after is the same to
    the last bit. Rows of weight zero are left out. Returns the first place of each row, ``(G,)``,
    and the weights, ``(G,)``.
    """
    w = np.ones(len(x)) if weight is None else weight.detach().cpu().double().numpy()
    held = np.flatnonzero(w > 0)
    hashes = row_hash(x, y)[held]
    _, first, group = np.unique(hashes, return_index=True, return_inverse=True)
    sums: F64 = np.bincount(group, weights=w[held], minlength=len(first)).astype(np.float64)
    return held[first].astype(np.int64), sums


class RowCache:
    r"""The rows :math:`k(x_i, \cdot)` that were asked for last, as many as fit.

    Parameters
    ----------
    kernel : of the rows, or None when ``x`` is the Gram matrix itself
    x : ``(n, d)``, or ``(n, n)`` for a Gram matrix
    megabytes : size of the cache; at least ``least`` rows are kept
    single : keep float32 where the digits suffice
    """

    def __init__(
        self, kernel: Kernel | None, x: Tensor, megabytes: float, least: int, single: bool
    ) -> None:
        self.kernel, self.n = kernel, len(x)
        self.features: tuple[Tensor, Tensor] | None = None
        if kernel is not None:
            x, single = self._prepare(kernel, x.detach(), single)
        dtype = torch.float32 if single else torch.float64
        self.x = x.to(dtype)
        width = self.n * (4 if single else 8)
        capacity = int(megabytes * 2**20 / max(width, 1))
        self.capacity = min(self.n, max(capacity, least))
        self.cache = torch.empty(self.capacity, self.n, dtype=dtype, device=x.device)
        self.array: NDArray[Any] | None = self.cache.numpy() if x.device.type == "cpu" else None
        self.slot = np.full(self.n, -1, np.int64)  # where a row is kept, or -1
        self.owner = np.full(self.capacity, -1, np.int64)
        self.used = np.zeros(self.capacity, np.int64)  # when a slot was last asked for
        self.clock = 0
        self.computed = self.filled = 0

    def _prepare(self, kernel: Kernel, x: Tensor, single: bool) -> tuple[Tensor, bool]:
        if type(kernel) is not RBF:
            return x, single and type(kernel) is not Linear
        x = x.double() - x.double().mean(0)
        x = x / torch.as_tensor(kernel.length_scale, dtype=x.dtype)
        half = 0.5 * x.square().sum(1, keepdim=True)
        single = single and float(half.max()) < HALF_NORM
        one = torch.ones_like(half)
        dtype = torch.float32 if single else torch.float64
        # [x, −½‖x‖², 1]·[z, 1, −½‖z‖²] = −½‖x − z‖²: one product gives the exponent
        left = torch.cat([x, -half, one], 1).to(dtype)
        self.features = left, torch.cat([x, one, -half], 1).to(dtype)
        return x, single

    def _compute(self, index: I64, out: Tensor | None = None) -> Tensor:
        at = self._index(index)
        self.computed += len(index)
        if self.features is not None:
            left, right = self.features
            return torch.mm(left[at], right.T, out=out).clamp_(max=0).exp_()
        values = self.x[at] if self.kernel is None else self.kernel.of(Geometry(self.x[at], self.x))
        return values if out is None else out.copy_(values)

    def _index(self, index: I64) -> Tensor:
        return torch.from_numpy(index).to(self.cache.device)

    def slots(self, index: I64) -> I64:
        """Where these rows are kept, after computing those that are not."""
        self.clock += 1
        held = self.slot[index]
        self.used[held[held >= 0]] = self.clock
        missing = index[held < 0]
        if len(missing):
            to = self._room(len(missing))
            self.owner[to], self.slot[missing] = missing, to
            self.used[to] = self.clock
            if to[-1] - to[0] == len(to) - 1:  # fresh room is in one piece
                self._compute(missing, self.cache[int(to[0]) : int(to[-1]) + 1])
            else:
                self.cache[self._index(to)] = self._compute(missing)
        found: I64 = self.slot[index]
        return found

    def _room(self, need: int) -> I64:
        """Slots for this many rows, sorted: fresh ones, else those asked for longest ago."""
        if self.filled + need <= self.capacity:
            self.filled += need
            return np.arange(self.filled - need, self.filled)
        self.filled = self.capacity
        oldest = np.sort(np.argpartition(self.used, need - 1)[:need])
        gone = self.owner[oldest]
        self.slot[gone[gone >= 0]] = -1
        return oldest

    def square(
        self,
        slots: I64,
        columns: I64,
        known: F64 | None = None,
    ) -> F64:
        """The Gram matrix among these rows, float64; ``known`` is its leading part."""
        if self.array is None:
            part = self.cache[self._index(slots)][:, self._index(columns)]
            return part.double().cpu().numpy()
        out = np.empty((len(slots), len(columns)))
        first = 0 if known is None else len(known)
        if known is not None:
            out[:first, :first] = known
        gather(self.array, slots, columns, first, out)
        return out

    def subtract(self, F: F64, slots: I64, change: F64) -> None:
        """F −= Σ change · rows."""
        moved = change != 0.0
        if self.array is None:
            part = self.cache[self._index(slots[moved])]
            F -= (torch.from_numpy(change[moved]).to(part) @ part).double().cpu().numpy()
            return
        rows, by = slots[moved], change[moved]
        large = len(rows) * self.n > PARALLEL
        (subtract_rows_parallel if large else subtract_rows)(F, self.array, rows, by)


__all__ = ["RowCache"]
