r"""Where clusters start: rows of the data, drawn on the weight line.

k-means++ draws each next centroid with probability :math:`\propto w_i\min_z\|x_i-\mu_z\|^2`; of
:math:`2+\lfloor\ln k\rfloor` candidates the one that leaves the least is kept. A weight of 2 is the row
twice, and shards draw the same rows as one process.
"""

from __future__ import annotations

import math
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.mapped import is_mapped
from groundstate.compute.random import Key, mix64
from groundstate.compute.reduce import current
from groundstate.compute.tiles import over_slices
from groundstate.compute.weight_line.hashing import row_hash
from groundstate.compute.weight_line.line import WeightLine
from groundstate.learn.solvers.latent.kmeans import start_numba as kernels
from groundstate.learn.solvers.latent.kmeans.drawers import (
    Drawer,
    MappedDrawer,
    SparseDrawer,
    TensorDrawer,
)
from groundstate.learn.solvers.latent.kmeans.start_numba import SAME, TILE

STARTS = ("k-means++", "scalable-k-means++", "random")
SMALL = 2**15  # numbers of a table whose rounds NumPy does
FEW = 2**7  # tiles whose rounds are one compiled call
PART = 2**6  # tiles of a slice of more


class HostDrawer(Drawer):
    """Draws on the CPU by compiled loops, over one row of each content."""

    def __init__(self, x: Tensor, weight: Tensor | None, key: Key) -> None:
        super().__init__(x, weight, key)
        self.x: NDArray[Any] = x.detach().contiguous().numpy()
        self.hash = row_hash(self.x)
        self.w = None if weight is None else weight.double().numpy()
        self.line = WeightLine(self.hash, self.w)

    def take(self, index: Tensor) -> Tensor:
        return torch.from_numpy(self.x[index.numpy()].astype(np.float64))

    def _distinct(self, k: int) -> Tensor:
        return torch.from_numpy(self.line.draw(self.key.fold("random"), k, distinct=True))

    @property
    def n_distinct(self) -> int:
        return int(np.count_nonzero(self.line.contents[1]))

    def _points(self, n: int) -> Tensor:
        return torch.from_numpy(self.line.draw(self.key.fold("sample"), n))

    def _greedy(self, k: int, trials: int) -> Tensor:
        draws = self.key.fold("next")
        first = self.line.draw(self.key.fold("first"), 1)
        rows, units = self.line.contents
        lengths = units * self.line.quantum
        chosen = np.full(k, np.searchsorted(self.line.hash, self.hash[first[0]]))
        uniform = draws.uniform((k - 1) * trials).reshape(-1, trials)
        if len(rows) * self.x.shape[1] <= SMALL:
            found = _rounds_of_few(*self._small, lengths, uniform, chosen)
        else:
            found = self._tiled(rows, lengths, uniform, chosen)
        picked = rows[chosen]
        if found < k:  # all contents are chosen: the plain line
            plain = self.line.draw(draws, (k - 1) * trials)
            picked[found:] = plain[(found - 1) * trials :: trials]
        return torch.from_numpy(picked)

    @cached_property
    def _small(self) -> tuple[Any, Any]:
        """Rows of different content about the frame, and their squares."""
        origin, scale = self._frame
        rows, _ = self.line.contents
        u = ((self.x[rows] - origin) * scale).astype(np.float32).astype(np.float64)
        return u, np.einsum("ij,ij->i", u, u)

    def _tiled(self, rows: Any, units: Any, uniform: Any, chosen: Any) -> int:
        parts = -(-len(rows) // TILE)
        x = np.zeros((parts, self.x.shape[1], TILE), np.float32)
        norm, lengths = np.zeros((parts, TILE)), np.zeros((parts, TILE))
        kernels.tiles(self.x, rows, *self._frame, x, norm)
        lengths.reshape(-1)[: len(rows)] = units
        return _rounds(x, norm, lengths, np.full(lengths.shape, np.inf), uniform, chosen)

    def _parallel(self, k: int, trials: int) -> Tensor:
        w = None if self.w is None else torch.from_numpy(self.w)
        return TensorDrawer(torch.from_numpy(self.x), w, self.key)._parallel(k, trials)

    @cached_property
    def _frame(self) -> tuple[NDArray[np.float64], float]:
        x = self.x
        if self.w is None:
            mean = x.mean(0, dtype=np.float64)
        else:
            mean = (self.w @ x) / self.w.sum()
        unit = _unit(float(np.abs(mean).max()))
        origin = (mean * unit).astype(np.float32).astype(np.float64) / unit
        far = max(float((x.max(0) - origin).max()), float((origin - x.min(0)).max()))
        return origin, _unit(far)

    def uniform(self, k: int) -> Tensor:
        words = self.key.fold("uniform").words(k)
        bits = mix64(self.hash[:, None] ^ words[None, :])
        return torch.from_numpy((bits >> np.uint64(11)) * 2.0**-53)


def _rounds_of_few(u: Any, norm: Any, lengths: Any, uniform: Any, chosen: Any) -> int:
    """The rounds over few rows by NumPy: a first fit of a small table waits for no compiler."""

    def away(at: Any) -> Any:
        """Squared distances of all rows to some of them, ``(some, n)``."""
        both = norm[at][:, None] + norm
        found = both - 2.0 * (u[at] @ u.T)
        return np.where(found > SAME * both, found, 0.0)

    closest = away(chosen[:1])[0]
    for i in range(1, len(chosen)):
        line = np.cumsum(closest * lengths)
        total = line[-1]
        if not 0.0 < total < math.inf:
            return i
        drawn = np.searchsorted(line, uniform[i - 1] * total, side="right")
        drawn = np.minimum(drawn, np.searchsorted(line, total))  # a point rounded to the end
        near = np.minimum(closest, away(drawn))
        best = int(np.argmin(near @ lengths))
        chosen[i], closest = drawn[best], near[best]
    return len(chosen)


def _rounds(x: Any, norm: Any, lengths: Any, closest: Any, uniform: Any, chosen: Any) -> int:
    """Choose rows one after the other; many tiles of a round are handled in threads."""
    trials, d = uniform.shape[1], x.shape[1]
    rows, square = np.empty((-(-trials // 3) * 3, d)), np.empty(-(-trials // 3) * 3)
    left, drawn = np.empty(len(x)), np.empty(trials, np.int64)

    def approach(row: Any) -> None:
        step = partial(kernels.approach, x, norm, lengths, closest, row, left)
        for _ in over_slices(step, len(x), PART):
            pass

    if len(x) <= FEW:
        return int(
            kernels.plus_plus(x, norm, lengths, closest, left, uniform, rows, square, chosen)
        )
    approach(x[chosen[0] // TILE, :, chosen[0] % TILE].astype(np.float64))
    for i in range(1, len(chosen)):
        total = kernels.pick(x, closest, lengths, left, uniform[i - 1], drawn, rows, square)
        if not 0.0 < total < math.inf:
            return i
        step = partial(kernels.improve, x, norm, lengths, closest, rows, square)
        gain = sum(over_slices(step, len(x), PART))
        best = int(np.argmax(gain[:trials]))
        chosen[i] = drawn[best]
        approach(rows[best])
    return len(chosen)


def _unit(far: float) -> float:
    """A power of two that takes the farthest entry to about one: no square over- or underflows."""
    return math.ldexp(1.0, -math.frexp(far)[1]) if 0 < far < math.inf else 1.0


def drawer_of(x: Tensor, weight: Tensor | None, key: Key) -> Drawer:
    """A drawer that works where the rows are."""
    if x.layout == torch.sparse_csr:
        return SparseDrawer(x, weight, key)
    if is_mapped(x):
        return MappedDrawer(x, weight, key)
    host = x.device.type == "cpu" and current().world == 1
    return (HostDrawer if host else TensorDrawer)(x, weight, key)
