r"""Rows of a Gram matrix for sequential minimal optimisation: computed in blocks, kept in a cache."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.rows.distinct import distinct_rows
from groundstate.compute.weight_line.hashing import row_hash
from groundstate.learn.solvers.svm.smo.loops_numba import (
    content_hashes,
    gather,
    subtract_rows,
    subtract_rows_parallel,
)
from groundstate.math.kernels import RBF, Geometry, Kernel, Linear

I64 = NDArray[np.int64]
F64 = NDArray[np.float64]
PARALLEL = 2**21  # products below which starting threads costs more than it saves
SMALL = 512  # rows up to which NumPy's calls are the cheaper ones
HALF_NORM = 64.0  # beyond it float32 loses digits of the exponent that matter


def canonical_rows(x: Any, y: Tensor | None, weight: Tensor | None) -> tuple[I64, F64]:
    """Rows of different content, in the order of their hash, with their summed weights.

    A row of weight 2 and the row twice become the same table, so everything after is the same to
    the last bit. Rows of weight zero are left out. Returns the first place of each row, ``(G,)``,
    and the weights, ``(G,)``.
    """
    w = np.ones(x.shape[0]) if weight is None else weight.detach().cpu().double().numpy()
    if isinstance(x, Tensor) and x.device.type == "cpu":
        rows = np.ascontiguousarray(x.detach().numpy(), dtype=np.float64)
        labels = np.zeros(len(rows), np.int64) if y is None else y.detach().numpy().reshape(-1)
        if labels.dtype.kind == "f":  # one zero, whatever its sign
            labels = (labels.astype(np.float64) + 0.0).view(np.int64)
        hashes = np.empty(len(rows), np.uint64)
        content_hashes(rows.view(np.uint64), labels, hashes)
        return distinct_rows(hashes, w)
    return distinct_rows(row_hash(x, y), w)


def gram(kernel: Kernel, x: Tensor) -> F64:
    """The whole matrix of kernel values, float64, by one product where that is enough."""
    if type(kernel) is not RBF or x.device.type != "cpu":
        return kernel.of(Geometry(x.double())).cpu().numpy()
    rows = x.numpy().astype(np.float64)
    rows = (rows - rows.mean(0)) / np.asarray(kernel.length_scale)
    half = 0.5 * np.einsum("ij,ij->i", rows, rows)
    if len(rows) > SMALL:
        at = torch.from_numpy(rows)
        out = torch.addmm(torch.from_numpy(-half)[None], at, at.T)
        return out.sub_(torch.from_numpy(half)[:, None]).clamp_(max=0).exp_().numpy()
    K: F64 = rows @ rows.T
    K -= half
    K -= half[:, None]
    return np.exp(np.minimum(K, 0.0, out=K), out=K)


class KernelRows:
    r"""Rows :math:`k(x_i, \cdot)` by one matrix product, on the device of the table.

    Parameters
    ----------
    kernel : of the rows, or None when ``x`` is the Gram matrix itself
    x : ``(n, d)``, or ``(n, n)`` for a Gram matrix
    single : compute in float32 where the digits suffice
    """

    def __init__(self, kernel: Kernel | None, x: Tensor, single: bool) -> None:
        self.kernel, self.n = kernel, len(x)
        self.features: tuple[Tensor, Tensor] | None = None
        x = x.detach()
        if type(kernel) is RBF:
            x = x.double() - x.double().mean(0)
            x = x / torch.as_tensor(kernel.length_scale, dtype=x.dtype, device=x.device)
            half = 0.5 * x.square().sum(1, keepdim=True)
            single = single and float(half.max()) < HALF_NORM
            one, self.dtype = torch.ones_like(half), torch.float32 if single else torch.float64
            # [x, −½‖x‖², 1]·[z, 1, −½‖z‖²] = −½‖x − z‖²: one product gives the exponent
            left = torch.cat([x, -half, one], 1).to(self.dtype)
            self.features = left, torch.cat([x, one, -half], 1).to(self.dtype)
        else:
            single = single and kernel is not None and type(kernel) is not Linear
            self.dtype = torch.float32 if single else torch.float64
        self.x = x.to(self.dtype)

    def of(self, at: Tensor, out: Tensor | None = None) -> Tensor:
        """The rows at these places, ``(m, n)``."""
        if self.features is not None:
            left, right = self.features
            return torch.mm(left[at], right.T, out=out).clamp_(max=0).exp_()
        values = self.x[at] if self.kernel is None else self.kernel.of(Geometry(self.x[at], self.x))
        return values if out is None else out.copy_(values)


class RowCache:
    r"""The rows :math:`k(x_i, \cdot)` that were asked for last, as many as fit, on the CPU.

    Parameters
    ----------
    rows : what computes them
    megabytes : size of the cache; at least ``least`` rows are kept
    """

    def __init__(self, rows: KernelRows, megabytes: float, least: int) -> None:
        self.rows, self.n = rows, rows.n
        width = self.n * (4 if rows.dtype == torch.float32 else 8)
        self.capacity = min(self.n, max(int(megabytes * 2**20 / width), least))
        self.cache = torch.empty(self.capacity, self.n, dtype=rows.dtype)
        self.array: NDArray[Any] = self.cache.numpy()
        self.slot = np.full(self.n, -1, np.int64)  # where a row is kept, or -1
        self.owner = np.full(self.capacity, -1, np.int64)
        self.used = np.zeros(self.capacity, np.int64)  # when a slot was last asked for
        self.clock = self.filled = 0

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
            at = torch.from_numpy(missing)
            if to[-1] - to[0] == len(to) - 1:  # fresh room is in one piece
                self.rows.of(at, self.cache[int(to[0]) : int(to[-1]) + 1])
            else:
                self.cache[torch.from_numpy(to)] = self.rows.of(at)
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

    def square(self, slots: I64, columns: I64, known: F64 | None = None) -> F64:
        """The Gram matrix among these rows, float64; ``known`` is its leading part."""
        out = np.empty((len(slots), len(columns)))
        first = 0 if known is None else len(known)
        if known is not None:
            out[:first, :first] = known
        gather(self.array, slots, columns, first, out)
        return out

    def subtract(self, F: F64, slots: I64, change: F64) -> None:
        """F −= Σ change · rows."""
        moved = change != 0.0
        rows, by = slots[moved], change[moved]
        large = len(rows) * self.n > PARALLEL
        (subtract_rows_parallel if large else subtract_rows)(F, self.array, rows, by)
