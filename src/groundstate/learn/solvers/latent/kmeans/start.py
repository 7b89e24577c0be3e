r"""Where clusters start: rows of the data, drawn on the weight line.

k-means++ draws each next centroid with probability :math:`\propto w_i\min_z\|x_i-\mu_z\|^2`; of
:math:`2+\lfloor\ln k\rfloor` candidates the one that leaves the least is kept. A weight of 2 is the row
twice, and shards draw the same rows as one process.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
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
from groundstate.compute.weight_line.tensor_line import TensorLine, tensor_hash
from groundstate.errors import DataError
from groundstate.learn.solvers.latent.kmeans import lloyd_numba as kernels


class Drawer(ABC):
    """Draws rows of data that may be spread over shards; make one with `drawer_of`.

    Parameters
    ----------
    x : Tensor, ``(N, d)``, this shard's rows
    weight : Tensor, ``(N,)``, or None
    key : Key; rank 0's is used everywhere
    """

    def __init__(self, x: Tensor, weight: Tensor | None, key: Key) -> None:
        self.reduce = current()
        words = torch.from_numpy(np.array([key.high, key.low], np.uint64).view(np.int64))
        words = self.reduce.broadcast(words.to(x.device)).cpu()
        high, low = (int(v) for v in words.numpy().view(np.uint64))
        self.key = Key(high, low)

    @abstractmethod
    def random(self, k: int) -> Tensor:
        """k rows of different content, ``(k, d)`` float64; where there are too few, as ``plus_plus``."""

    @abstractmethod
    def plus_plus(self, k: int) -> Tensor:
        """k rows far from each other, ``(k, d)`` float64."""

    @abstractmethod
    def uniform(self, k: int) -> Tensor:
        """Uniform numbers that depend on the content of a row alone, ``(N, k)``."""


def drawer_of(x: Tensor, weight: Tensor | None, key: Key) -> Drawer:
    """A drawer that works where the rows are."""
    return (HostDrawer if x.device.type == "cpu" else TensorDrawer)(x, weight, key)


class TensorDrawer(Drawer):
    """Draws on the device of the rows; nothing but the words of a key comes from the host."""

    def __init__(self, x: Tensor, weight: Tensor | None, key: Key) -> None:
        super().__init__(x, weight, key)
        self.x, self.w = x.detach(), None if weight is None else weight.double()
        self.hash = tensor_hash(self.x)
        if self.reduce.world > 1:
            ones = torch.ones(len(x), dtype=torch.float64, device=x.device)
            weights = ones if self.w is None else self.w
            self.line, self.mine = TensorLine.gathered(self.hash, weights, self.reduce)
        else:
            self.line, self.mine = TensorLine(self.hash, self.w), slice(0, len(x))

    def take(self, index: Tensor) -> Tensor:
        """Rows by their number over all shards, float64 ``(m, d)``."""
        if self.reduce.world == 1:
            return self.x[index].double()
        own = (index >= self.mine.start) & (index < self.mine.stop)
        at = torch.where(own, index - self.mine.start, 0)
        rows = self.x[at].double() if len(self.x) else self.x.new_zeros(len(at), self.x.shape[1])
        return self.reduce.sum(torch.where(own[:, None], rows.double(), 0.0))

    def random(self, k: int) -> Tensor:
        try:
            return self.take(self.line.draw(self.key.fold("random"), k, distinct=True))
        except DataError:
            return self.plus_plus(k)

    def plus_plus(self, k: int) -> Tensor:
        trials = 2 + int(math.log(k))
        draws = self.key.fold("next")
        first = self.take(self.line.draw(self.key.fold("first"), 1))
        u = self.x.double() - first  # about a row of the data: products lose few digits
        norm = u.square().sum(1)
        closest = norm
        chosen = [first]
        points = torch.from_numpy(draws.uniform((k - 1) * trials)).to(u.device)
        plain = self.line.draw(draws, (k - 1) * trials)  # for rows that all have been chosen
        for at in range(0, (k - 1) * trials, trials):
            extra = self.reduce.gather(closest)
            some = slice(at, at + trials)
            drawn = self.line.weighted_draw(extra, points[some])
            drawn = torch.where(extra.max() > 0, drawn, plain[some])
            candidates = self.take(drawn)
            v = candidates - first
            square = v.square().sum(1, keepdim=True) + norm  # (trials, N)
            away = torch.addmm(square, v, u.T, alpha=-2.0)
            away = torch.where(away > 1e-14 * square, torch.minimum(away, closest), 0.0)
            left = away.sum(1) if self.w is None else away @ self.w
            best = self.reduce.sum(left).argmin(0, keepdim=True)
            closest = away[best][0]
            chosen.append(candidates[best])
        return torch.cat(chosen)

    def uniform(self, k: int) -> Tensor:
        return self.line.content_uniform(self.hash, self.key.fold("uniform"), k)


class HostDrawer(Drawer):
    """Draws on the CPU by compiled loops."""

    def __init__(self, x: Tensor, weight: Tensor | None, key: Key) -> None:
        super().__init__(x, weight, key)
        self.x, self.rows = x, _host(x)
        self.w = np.empty(0) if weight is None else _host(weight.double())
        self.hash = row_hash(self.rows)
        if self.reduce.world > 1:
            ones = np.ones(len(x)) if weight is None else self.w
            self.line, self.mine = WeightLine.gathered(self.hash, ones, self.reduce)
        else:
            self.line = WeightLine(self.hash, None if weight is None else self.w)
            self.mine = slice(0, len(x))

    def take(self, index: NDArray[np.int64]) -> Tensor:
        """Rows by their number over all shards, float64 ``(m, d)``."""
        out = np.zeros((len(index), self.rows.shape[1]))
        own = (index >= self.mine.start) & (index < self.mine.stop)
        out[own] = self.rows[index[own] - self.mine.start]
        return self.reduce.sum(torch.from_numpy(out))

    def random(self, k: int) -> Tensor:
        try:
            drawn = self.line.draw(self.key.fold("random"), k, distinct=True)
        except DataError:
            return self.plus_plus(k)
        return self.take(drawn)

    def plus_plus(self, k: int) -> Tensor:
        trials = 2 + int(math.log(k))
        first = self.line.draw(self.key.fold("first"), 1)
        draws = self.key.fold("next")
        if self.reduce.world == 1 and len(self.rows) <= 2**15:
            picked = np.empty(k, np.int64)
            rows, lengths = self.line.contents
            uniform = draws.uniform((k - 1) * trials).reshape(-1, trials)
            if kernels.plus_plus(self.rows, self.w, rows, lengths, first[0], uniform, picked) == k:
                return self.take(picked)
        chosen = self.take(first).numpy()
        closest = np.full(len(self.rows), np.inf)
        self._approach(closest, chosen[0])
        for i in range(1, k):
            extra = self.reduce.gather(torch.from_numpy(closest)).numpy()
            drawn = self.line.weighted_draw(draws, extra, trials, start=(i - 1) * trials)
            candidates = self.take(drawn).numpy()
            left = self._potentials(closest, candidates)
            best = candidates[int(left.argmin())]
            self._approach(closest, best)
            chosen = np.vstack([chosen, best])
        return torch.from_numpy(chosen)

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

    def uniform(self, k: int) -> Tensor:
        words = self.key.fold("uniform").words(k)
        bits = mix64(self.hash[:, None] ^ words[None, :])
        return torch.from_numpy((bits >> np.uint64(11)) * 2.0**-53)


def _host(values: Tensor) -> NDArray[Any]:
    array: NDArray[Any] = values.detach().cpu().contiguous().numpy()
    return array


__all__ = ["Drawer", "drawer_of"]
