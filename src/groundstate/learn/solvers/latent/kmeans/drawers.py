r"""Rows drawn where they are: on a device, in a file, over shards."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.mapped import give_back, pieces
from groundstate.compute.random import Key
from groundstate.compute.reduce import Reduce, current
from groundstate.compute.tiles import over_slices
from groundstate.compute.weight_line.hashing import row_hash
from groundstate.compute.weight_line.tensor_line import TensorLine, tensor_hash
from groundstate.errors import DataError
from groundstate.learn.solvers.latent.kmeans import start_numba as kernels
from groundstate.learn.solvers.latent.kmeans.start_numba import SAME
from groundstate.learn.solvers.latent.kmeans.table import as_csr

ROUNDS, OVERSAMPLING = 5, 2
PIECE = 2**14  # rows of a file that are looked at together
SCATTERED = 2**6  # the same of rows that lie anywhere in it


class Drawer(ABC):
    """Draws rows of data that may be spread over shards; make one with `drawer_of`.

    Parameters
    ----------
    x : Tensor, ``(N, d)``, this shard's rows
    weight : Tensor, ``(N,)``, or None
    key : Key; rank 0's is used everywhere
    """

    def __init__(self, x: Tensor, weight: Tensor | None, key: Key) -> None:
        self.reduce, self.device = current(), x.device
        self.reseed(key)

    def reseed(self, key: Key) -> None:
        """Draw with another key from now on."""
        self.key = key
        if self.reduce.world > 1:
            words = torch.from_numpy(np.array([key.high, key.low], np.uint64).view(np.int64))
            words = self.reduce.broadcast(words.to(self.device)).cpu()
            self.key = Key(*map(int, words.numpy().view(np.uint64)))

    def start(self, name: str, k: int) -> Tensor:
        """k rows by the name of the way to draw them, ``(k, d)`` float64."""
        return self.take(self.chosen(name, k))

    def random(self, k: int) -> Tensor:
        """k rows of different content, ``(k, d)`` float64; where there are too few, as ``plus_plus``."""
        return self.start("random", k)

    def plus_plus(self, k: int) -> Tensor:
        """k rows far from each other, ``(k, d)`` float64."""
        return self.start("k-means++", k)

    def chosen(self, name: str, k: int, trials: int | None = None) -> Tensor:
        """The numbers of such rows over all shards, ``(k,)``, each the best of some trials."""
        if name == "random":
            try:
                return self._distinct(k)
            except DataError:  # fewer contents than rows asked for
                name = "k-means++"
        trials = 2 + int(math.log(k)) if trials is None else trials
        return self._greedy(k, trials) if name == "k-means++" else self._parallel(k, trials)

    def sample(self, n: int) -> Tensor | None:
        """Rows under n points of the line, ``(n, d)`` float64; None where the table has no more."""
        return self.take(self._points(n)) if self.n_distinct > n else None

    @property
    @abstractmethod
    def n_distinct(self) -> int:
        """Rows of different content and positive weight."""

    @abstractmethod
    def take(self, index: Tensor) -> Tensor:
        """Rows by their number over all shards, ``(m, d)`` float64."""

    @abstractmethod
    def _distinct(self, k: int) -> Tensor:
        """k rows of different content."""

    @abstractmethod
    def _points(self, n: int) -> Tensor:
        """Rows under n points of the line; a row may come again."""

    @abstractmethod
    def _greedy(self, k: int, trials: int) -> Tensor:
        """k rows far from each other."""

    @abstractmethod
    def _parallel(self, k: int, trials: int) -> Tensor:
        """The same in a few passes: k-means++ among 2k candidates of each of 5 rounds."""

    @abstractmethod
    def uniform(self, k: int) -> Tensor:
        """Uniform numbers that depend on the content of a row alone, ``(N, k)``."""


class TensorDrawer(Drawer):
    """Draws on the device of the rows; nothing but the words of a key comes from the host."""

    def __init__(self, x: Tensor, weight: Tensor | None, key: Key) -> None:
        super().__init__(x, weight, key)
        self.x, self.w = x.detach(), None if weight is None else weight.double()
        self.hash = self._hashes()
        if self.reduce.world > 1:
            ones = torch.ones(x.shape[0], dtype=torch.float64, device=x.device)
            weights = ones if self.w is None else self.w
            self.line, self.mine = TensorLine.gathered(self.hash, weights, self.reduce)
        else:
            self.line, self.mine = TensorLine(self.hash, self.w), slice(0, x.shape[0])

    def _hashes(self) -> Tensor:
        return tensor_hash(self.x)

    def _rounded(self) -> tuple[Any, Tensor]:
        origin, scale = self.frame
        u = ((self.x.double() - origin) * scale).float().double()
        return u, u.square().sum(1)

    def take(self, index: Tensor) -> Tensor:
        if self.reduce.world == 1:
            return self.x[index].double()
        own = (index >= self.mine.start) & (index < self.mine.stop)
        at = torch.where(own, index - self.mine.start, 0)
        rows = self.x[at].double() if len(self.x) else self.x.new_zeros(len(at), self.x.shape[1])
        return self.reduce.sum(torch.where(own[:, None], rows.double(), 0.0))

    def _distinct(self, k: int) -> Tensor:
        return self.line.draw(self.key.fold("random"), k, distinct=True)

    @property
    def n_distinct(self) -> int:
        return int(self.line.lengths.count_nonzero())

    def _points(self, n: int) -> Tensor:
        return self.line.draw(self.key.fold("sample"), n)

    def _greedy(self, k: int, trials: int) -> Tensor:
        draws = self.key.fold("next")
        first = self.line.draw(self.key.fold("first"), 1)
        self._prepare()
        closest = self._closest(self.take(first), None)
        chosen = [first]
        points = torch.from_numpy(draws.uniform((k - 1) * trials)).to(closest.device)
        plain = self.line.draw(draws, (k - 1) * trials)  # for rows that all have been chosen
        for at in range(0, (k - 1) * trials, trials):
            extra = self.reduce.gather(closest)
            some = slice(at, at + trials)
            drawn = self.line.weighted_draw(extra, points[some])
            drawn = torch.where(extra.max() > 0, drawn, plain[some])
            best, closest = self._best(self.take(drawn), closest)
            chosen.append(drawn[best])
        return torch.cat(chosen)

    def _prepare(self) -> None:
        """Rows in the coordinates of `_frame`, rounded as on the CPU, and their squares."""
        self.frame = self._frame()
        self.u, self.norm = self._rounded()

    def _closest(self, row: Tensor, closest: Tensor | None) -> Tensor:
        """Squared distances ``(N,)`` to one more centroid ``(1, d)`` or to those before."""
        return self._away(row, self.u, self.norm, closest)[0]

    def _best(self, candidates: Tensor, closest: Tensor) -> tuple[Tensor, Tensor]:
        """Which candidate leaves the least, ``(1,)``, and what it leaves of each row ``(N,)``."""
        away = self._away(candidates, self.u, self.norm, closest)
        left = away.sum(1) if self.w is None else away @ self.w
        best = self.reduce.sum(left).argmin(0, keepdim=True)
        return best, away[best][0]

    def _away(self, rows: Tensor, u: Any, norm: Tensor, closest: Tensor | None) -> Tensor:
        """Squared distances of u to some rows, at most ``closest``, ``(m, N)``."""
        origin, scale = self.frame
        v = ((rows - origin) * scale).float().double()
        square = v.square().sum(1, keepdim=True) + norm
        away = square - 2 * _inner(v, u)
        least = away if closest is None else torch.minimum(away, closest)
        return torch.where(away > SAME * square, least, 0.0)

    def _parallel(self, k: int, trials: int) -> Tensor:
        index = self.line.draw(self.key.fold("first"), 1)
        rows = self.take(index)
        closest = _square_distances(self.x, rows).values
        for i in range(ROUNDS):
            extra = self.reduce.gather(closest)
            line = extra[self.line.rows] * self.line.lengths
            share = (OVERSAMPLING * k) * line / line.sum().clamp_min(1e-300)
            uniform = self.line.content_uniform(self.line.hash, self.key.fold("round", i), 1)[:, 0]
            found = self.line.rows[uniform < share]
            some = self.take(found)
            index, rows = torch.cat([index, found]), torch.cat([rows, some])
            if len(some):
                closest = torch.minimum(closest, _square_distances(self.x, some).values)
        owner = _square_distances(self.x, rows).indices
        w = torch.ones_like(closest) if self.w is None else self.w
        mass = self.reduce.sum(torch.zeros(len(rows), dtype=torch.float64, device=w.device)
                               .index_add_(0, owner, w))  # fmt: skip
        live = mass > 0
        few = TensorDrawer(rows[live], mass[live], self.key.fold("few"))
        few.reduce = Reduce()  # every shard has all candidates
        few.line, few.mine = TensorLine(few.hash, few.w), slice(0, int(live.sum()))
        return index[live][few._greedy(k, trials)]

    def _frame(self) -> tuple[Tensor, Tensor | float]:
        """Where rows are measured from, and in which unit."""
        w = self.w
        total = (self.x if w is None else self.x * w[:, None]).sum(0, dtype=torch.float64)
        count = total.new_tensor(float(len(self.x))) if w is None else w.sum()
        origin = self._origin(total, count)
        return origin, _unit_of(self.reduce.max((self.x.double() - origin).abs().max()))

    def _origin(self, total: Tensor, count: Tensor) -> Tensor:
        """The mean of the rows of all shards, rounded."""
        sums = self.reduce.sum_dict({"w": count, "x": total})
        mean = sums["x"] / sums["w"]
        unit = _unit_of(mean.abs().max())
        return (mean * unit).float().double() / unit

    def uniform(self, k: int) -> Tensor:
        return self.line.content_uniform(self.hash, self.key.fold("uniform"), k)


class MappedDrawer(TensorDrawer):
    """Draws rows of a file: a pass over it for each round and one for the row that was chosen."""

    def take(self, index: Tensor) -> Tensor:
        """A few rows after the other: each brings the pages around it."""
        parts = []
        for some in index.split(SCATTERED):
            parts.append(super().take(some))
            give_back()
        return torch.cat(parts) if parts else super().take(index)

    def _hashes(self) -> Tensor:
        return row_hashes(self.x)

    def _prepare(self) -> None:
        self.frame = self._frame()

    def _tiled(self, closest: NDArray[np.float64], lo: int, hi: int) -> Any:
        """Rows lo..hi as columns of tiles, their squares and weights, and what is closest."""
        n, (origin, scale) = hi - lo, self.frame
        parts = -(-n // kernels.TILE)
        x = np.zeros((parts, self.x.shape[1], kernels.TILE), np.float32)
        norm, lengths, near = np.zeros((3, parts, kernels.TILE))
        rows = self.x[lo:hi].numpy()
        kernels.tiles(rows, np.arange(n), origin.numpy(), float(scale), x, norm)
        lengths.reshape(-1)[:n] = 1.0 if self.w is None else self.w[lo:hi].numpy()
        near.reshape(-1)[:n] = closest[lo:hi]
        return x, norm, lengths, near

    def _centred(self, rows: Tensor) -> NDArray[np.float64]:
        origin, scale = self.frame
        return ((rows - origin) * scale).float().double().numpy()

    def _closest(self, row: Tensor, closest: Tensor | None) -> Tensor:
        out = torch.full((len(self.x),), math.inf).double() if closest is None else closest
        v, near = self._centred(row)[0], out.numpy()

        def part(lo: int, hi: int) -> None:
            *tiles, own = self._tiled(near, lo, hi)
            kernels.approach(*tiles, own, v, np.empty(len(own)), 0, len(own))
            near[lo:hi] = own.reshape(-1)[: hi - lo]

        for _ in over_slices(part, len(self.x), PIECE):
            pass
        return out

    def _best(self, candidates: Tensor, closest: Tensor) -> tuple[Tensor, Tensor]:
        rows = self._centred(candidates)
        more = -len(rows) % 3
        rows = np.concatenate([rows, np.repeat(rows[:1], more, 0)])
        square, near = np.square(rows).sum(1), closest.numpy()

        def part(lo: int, hi: int) -> Any:
            tiles = self._tiled(near, lo, hi)
            return kernels.improve(*tiles, rows, square, 0, len(tiles[0]))

        gain = sum(over_slices(part, len(self.x), PIECE), np.zeros(len(rows)))
        best = self.reduce.sum(torch.from_numpy(gain[: len(candidates)])).argmax(0, keepdim=True)
        return best, self._closest(candidates[best], closest)

    def _frame(self) -> tuple[Tensor, Tensor | float]:
        total, count, at = torch.zeros(self.x.shape[1], dtype=torch.float64), 0.0, 0
        for part in pieces(self.x, PIECE):
            w = None if self.w is None else self.w[at : at + len(part)]
            total += part.sum(0, dtype=torch.float64) if w is None else w @ part.double()
            count += len(part) if w is None else float(w.sum())
            at += len(part)
        origin = self._origin(total, total.new_tensor(count))
        far = max(float((part.double() - origin).abs().max()) for part in pieces(self.x, PIECE))
        return origin, _unit_of(self.reduce.max(total.new_tensor(far)))


class SparseDrawer(TensorDrawer):
    """Draws CSR rows, whose origin is zero."""

    def _hashes(self) -> Tensor:
        self.csr = as_csr(self.x)
        return row_hashes(self.x)

    def _rounded(self) -> tuple[Any, Tensor]:
        wide = self.csr.astype(np.float32).astype(np.float64)
        return wide, torch.from_numpy(np.asarray(wide.multiply(wide).sum(1)).reshape(-1))

    def _frame(self) -> tuple[Tensor, Tensor | float]:
        return torch.zeros(self.x.shape[1], dtype=torch.float64), 1.0

    def take(self, index: Tensor) -> Tensor:
        own = (index >= self.mine.start) & (index < self.mine.stop)
        at = torch.where(own, index - self.mine.start, 0).numpy()
        rows = torch.from_numpy(self.csr[at].toarray().astype(np.float64))
        return self.reduce.sum(torch.where(own[:, None], rows, 0.0))

    def _parallel(self, k: int, trials: int) -> Tensor:
        return self._greedy(k, trials)  # candidates of several rounds would be dense


def row_hashes(x: Tensor) -> Tensor:
    """Hashes of the content of rows ``(N,)`` int64, on their device."""
    if x.device.type != "cpu":
        return tensor_hash(x)
    if x.layout == torch.sparse_csr:
        return torch.from_numpy(row_hash(as_csr(x)).view(np.int64))
    parts = [row_hash(part.numpy()) for part in pieces(x.detach(), PIECE)]
    return torch.from_numpy(np.concatenate(parts).view(np.int64))


def _square_distances(x: Tensor, rows: Tensor) -> Any:
    """The squared distance to the nearest of some rows, ``values``, and which it is, ``indices``."""
    parts = [
        torch.cdist(part.double(), rows).square().min(1)
        for part in pieces(x, 2**24 // max(1, len(rows)))
    ]
    values = torch.cat([part.values for part in parts])
    return _Nearest(values, torch.cat([part.indices for part in parts]))


class _Nearest(NamedTuple):
    values: Tensor
    indices: Tensor


def _unit_of(far: Tensor) -> Tensor:
    """`_unit` of a number on a device."""
    _, exponent = torch.frexp(far)
    return torch.where(far > 0, torch.ldexp(torch.ones_like(far), -exponent), 1.0)


def _inner(v: Tensor, u: Any) -> Tensor:
    """vᵀu of some rows with all rows, dense or CSR, ``(m, N)``."""
    return v @ u.T if isinstance(u, Tensor) else torch.from_numpy(np.asarray(u @ v.numpy().T)).T
