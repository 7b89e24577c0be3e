r"""Nearest rows in Euclidean distance: matrix products to find candidates, differences to be sure.

With rows about their mean, :math:`\|x-z\|^2 - \|x\|^2 = \|z\|^2 - 2x^\top z` for a block of queries x
and rows z is one matrix product. Each query keeps some more candidates than it needs; their true
distances are then computed from differences. A row outside the candidates is at least as far as the
worst of them, up to the rounding error of the product: where that proves the answer it stands, else
the query is repeated in double precision, and last by differences to all rows. The answer is exact,
ties go to the lower index.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.math.neighbors import nearest_numba as kernels
from groundstate.math.neighbors.radius_numba import boxes

QUERIES, ROWS = 128, 4096  # of one product: its result stays in the cache
LOOK = 32  # queries that say whether single precision is enough
SPARE = 6  # candidates beyond k
TREE_FEATURES, TREE_ROWS = 6, 10_000  # where a tree of boxes beats the products
BALL_FEATURES, BALL_ROWS = 3, 256  # for all rows within a radius


class NearestRows:
    """The k nearest of some rows ``(n, d)``.

    Parameters
    ----------
    rows : array, ``(n, d)``
    algorithm : "auto", "brute" or "tree"

    Examples
    --------
    >>> found = NearestRows(np.array([[0.0], [1.0], [5.0]])).query(np.array([[0.9]]), 2)
    >>> found[1].tolist()
    [[1, 0]]
    """

    def __init__(self, rows: NDArray[Any], algorithm: str = "auto") -> None:
        self.rows = np.ascontiguousarray(rows)
        n, d = rows.shape
        small = d <= TREE_FEATURES and n >= TREE_ROWS
        self.by_tree = algorithm == "tree" or (algorithm == "auto" and small)
        low = d <= BALL_FEATURES and n >= BALL_ROWS
        self.divides = self.by_tree or (algorithm == "auto" and low)
        self.origin = self.rows.mean(0, dtype=np.float64)
        self._sides: dict[Any, tuple[Tensor, float]] = {}
        self._rooms = threading.local()

    @cached_property
    def tree(self) -> Any:
        """A tree that gives the k nearest."""
        from scipy.spatial import KDTree

        return KDTree(self.rows)

    @cached_property
    def boxes(self) -> tuple[NDArray[Any], ...]:
        """Rows in the order of a tree of boxes, that order, and the boxes."""
        order, place, corner = boxes(self.rows)
        return self.rows[order], order, place, corner

    def query(self, x: NDArray[Any], k: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Distances and indices ``(q, k)``, the nearest first."""
        x = np.ascontiguousarray(x, dtype=self.rows.dtype)
        out, found = np.empty((len(x), k)), np.empty((len(x), k), np.int64)
        waiting = np.arange(len(x))
        for level in self._levels(len(x), k):
            if len(waiting):
                waiting = waiting[self._settle(level, x, k, waiting, out, found)]
        if len(waiting):
            self._direct(x, waiting, out, found)
        return np.sqrt(out), found

    def _levels(self, queries: int, k: int) -> tuple[Any, ...]:
        n = len(self.rows)
        if queries * n < 2**14 or k + SPARE >= n:
            return ()
        if self.by_tree:
            return ("tree",)
        return (torch.float32, torch.float64)

    def _settle(
        self, level: Any, x: NDArray[Any], k: int, waiting: NDArray[Any], out: Any, found: Any
    ) -> NDArray[np.bool_]:
        """Answer the listed queries where that is sure; where it is not is returned."""
        open_ = np.zeros(len(waiting), np.bool_)

        def block(lo: int, hi: int) -> None:
            if torch.get_num_threads() > 1:
                torch.set_num_threads(1)  # of this worker only
            rows = waiting[lo:hi]
            part = x[rows]
            value, index, floor = self._candidates(level, part, k)
            o, f = np.empty((len(part), k)), np.empty((len(part), k), np.int64)
            kernels.settle(part, self.rows, value, index, floor, o, f, open_[lo:hi])
            out[rows], found[rows] = o, f

        few = max(QUERIES, min(4 * QUERIES, QUERIES * ROWS // len(self.rows)))
        step, looked = 2048 if level == "tree" else few, 0
        if level is torch.float32 and len(waiting) > 4 * step:  # is single precision enough?
            looked = LOOK
            self.over(block, [(0, looked)])
            if open_[:looked].mean() > 0.5:
                open_[looked:] = True
                return open_
        self.over(block, _even(looked, len(waiting), step))
        return open_

    def _candidates(self, level: Any, x: NDArray[Any], k: int) -> tuple[Any, Any, Any]:
        """Heaps of candidates and a lower bound of what lies outside of them."""
        m = min(k + SPARE, len(self.rows))
        if level == "tree":
            distance, index = self.tree.query(x, m)
            distance = distance.astype(np.float64)
            floor = distance[:, -1] ** 2 * (1 - 1e-12)
            return distance**2, index.astype(np.int64), floor
        side, largest = self.side(level)
        about = torch.from_numpy(x).double() - torch.from_numpy(self.origin)
        norm = about.square().sum(1)
        left = torch.cat([-2 * about, torch.ones(len(x), 1)], 1).to(level)  # (q, d + 1)
        kind = np.float32 if level is torch.float32 else np.float64
        value = np.full((len(x), m), np.inf, kind)
        index = np.zeros((len(x), m), np.int64)
        for at in range(0, len(side), ROWS):
            part = side[at : at + ROWS]
            block = torch.mm(left, part.T, out=self.room(len(x), len(part), level))
            kernels.scan(block.numpy(), len(part), at, value, index)
        # |error| of a product of d + 1 terms, each at most (|x| + |z|)² with |z|² ≤ largest
        reach = (norm.sqrt() + largest**0.5).square().numpy()
        error = (self.rows.shape[1] + 8) * torch.finfo(level).eps * reach
        return value.astype(np.float64), index, value[:, 0] + norm.numpy() - error

    def side(self, level: Any) -> tuple[Tensor, float]:
        """Rows about their mean with their squared norms, ``(n, d + 1)``."""
        if level not in self._sides:
            rows = torch.from_numpy(self.rows).double() - torch.from_numpy(self.origin)
            norm = rows.square().sum(1, keepdim=True)
            self._sides[level] = (torch.cat([rows, norm], 1).to(level), float(norm.max()))
        return self._sides[level]

    def _direct(self, x: NDArray[Any], waiting: NDArray[Any], out: Any, found: Any) -> None:
        def block(lo: int, hi: int) -> None:
            rows = waiting[lo:hi]
            o, f = (
                np.empty((len(rows), out.shape[1])),
                np.empty((len(rows), out.shape[1]), np.int64),
            )
            kernels.direct(x[rows], self.rows, o, f)
            out[rows], found[rows] = o, f

        step = max(1, min(64, len(waiting) // 2))
        self.over(
            block, [(lo, min(lo + step, len(waiting))) for lo in range(0, len(waiting), step)]
        )

    def room(self, q: int, n: int, level: torch.dtype) -> Tensor:
        """Memory ``(q, n)`` of this thread, which the next product uses again."""
        held = getattr(self._rooms, "held", None)
        if held is None or held.numel() < q * n or held.dtype != level:
            held = self._rooms.held = torch.empty(q * n, dtype=level)
        return held[: q * n].view(q, n)

    @staticmethod
    def over(block: Any, bounds: list[tuple[int, int]]) -> None:
        """Do ``block(lo, hi)`` for all bounds, on as many threads as torch may use."""
        threads = min(torch.get_num_threads(), len(bounds))
        if threads < 2:
            kept = torch.get_num_threads()
            for bound in bounds:
                block(*bound)
            if torch.get_num_threads() != kept:
                torch.set_num_threads(kept)
            return
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(lambda bound: block(*bound), bounds))


def _even(lo: int, hi: int, most: int) -> list[tuple[int, int]]:
    """Blocks of at most so many queries, as many for each thread."""
    threads = torch.get_num_threads()
    blocks = -(-(hi - lo) // most)
    if blocks > 1:
        blocks = -(-blocks // threads) * threads
    cuts = np.linspace(lo, hi, blocks + 1).astype(int).tolist()
    return [(a, b) for a, b in pairwise(cuts) if a < b]
