r"""Where clusters start: rows of the data, drawn on the weight line.

k-means++ draws each next centroid with probability :math:`\propto w_i\min_z\|x_i-\mu_z\|^2`; of
:math:`2+\lfloor\ln k\rfloor` candidates the one that leaves the least is kept. A weight of 2 is the row
twice, and shards draw the same rows as one process.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.random import Key, mix64
from groundstate.compute.reduce import current
from groundstate.compute.tiles import over_slices
from groundstate.compute.weight_line.hashing import row_hash
from groundstate.compute.weight_line.line import WeightLine
from groundstate.errors import DataError
from groundstate.learn.solvers.latent.kmeans import lloyd_numba as kernels


class Drawer:
    """Draws rows of data that may be spread over shards.

    Parameters
    ----------
    x : Tensor, ``(N, d)``, this shard's rows
    weight : Tensor, ``(N,)``, or None
    key : Key; rank 0's is used everywhere
    """

    def __init__(self, x: Tensor, weight: Tensor | None, key: Key) -> None:
        self.reduce = current()
        self.x, self.rows = x, _host(x)
        self.w = np.empty(0) if weight is None else _host(weight.double())
        words = torch.from_numpy(np.array([key.high, key.low], np.uint64).view(np.int64))
        high, low = (int(v) for v in self.reduce.broadcast(words).numpy().view(np.uint64))
        self.key = Key(high, low)
        self.hash = row_hash(self.rows)
        if self.reduce.world > 1:
            ones = np.ones(len(x)) if weight is None else self.w
            self.line, self.mine = WeightLine.gathered(self.hash, ones, self.reduce)
        else:
            self.line = WeightLine(self.hash, None if weight is None else self.w)
            self.mine = slice(0, len(x))

    def take(self, index: NDArray[np.int64]) -> NDArray[Any]:
        """Rows by their number over all shards, float64 ``(m, d)``."""
        out = np.zeros((len(index), self.rows.shape[1]))
        own = (index >= self.mine.start) & (index < self.mine.stop)
        out[own] = self.rows[index[own] - self.mine.start]
        return self.reduce.sum(torch.from_numpy(out)).numpy()

    def random(self, k: int) -> NDArray[Any]:
        """k rows of different content, ``(k, d)``; where there are too few, as ``plus_plus``."""
        try:
            drawn = self.line.draw(self.key.fold("random"), k, distinct=True)
        except DataError:
            return self.plus_plus(k)
        return self.take(drawn)

    def plus_plus(self, k: int) -> NDArray[Any]:
        """k rows far from each other, ``(k, d)``."""
        trials = 2 + int(math.log(k))
        first = self.line.draw(self.key.fold("first"), 1)
        draws = self.key.fold("next")
        if self.reduce.world == 1 and len(self.rows) <= 2**15:
            picked = np.empty(k, np.int64)
            rows, lengths = self.line.contents
            uniform = draws.uniform((k - 1) * trials).reshape(-1, trials)
            if kernels.plus_plus(self.rows, self.w, rows, lengths, first[0], uniform, picked) == k:
                return self.take(picked)
        chosen = self.take(first)
        closest = np.full(len(self.rows), np.inf)
        self._approach(closest, chosen[0])
        for i in range(1, k):
            extra = self.reduce.gather(torch.from_numpy(closest)).numpy()
            drawn = self.line.weighted_draw(draws, extra, trials, start=(i - 1) * trials)
            candidates = self.take(drawn)
            left = self._potentials(closest, candidates)
            best = candidates[int(left.argmin())]
            self._approach(closest, best)
            chosen = np.vstack([chosen, best])
        return chosen

    def _approach(self, closest: NDArray[Any], row: NDArray[Any]) -> None:
        x = self.rows
        for _ in over_slices(
            lambda lo, hi: kernels.approach(x, closest, row, lo, hi), len(x), 2**15
        ):
            pass

    def _potentials(self, closest: NDArray[Any], rows: NDArray[Any]) -> NDArray[Any]:
        x, w = self.rows, self.w
        parts = over_slices(
            lambda lo, hi: kernels.potentials(x, w, closest, rows, lo, hi), len(x), 2**15
        )
        return self.reduce.sum(torch.from_numpy(np.sum(list(parts), axis=0))).numpy()

    def uniform(self, k: int) -> NDArray[Any]:
        """Uniform numbers that depend on the content of a row alone, ``(N, k)``."""
        words = self.key.fold("uniform").words(k)
        bits = mix64(self.hash[:, None] ^ words[None, :])
        return (bits >> np.uint64(11)) * 2.0**-53


def _host(values: Tensor) -> NDArray[Any]:
    array: NDArray[Any] = values.detach().cpu().contiguous().numpy()
    return array


__all__ = ["Drawer"]
