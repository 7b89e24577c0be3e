"""From real gradients to a tree: fixed units for sums, memory kept between trees."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from groundstate.energy.trees.nodes import Tree
from groundstate.learn.solvers.boosting.histogram import cuts_numba as real
from groundstate.learn.solvers.boosting.histogram import tree_numba as whole
from groundstate.learn.solvers.boosting.histogram.cuts_numba import BINS, GROUP
from groundstate.learn.solvers.boosting.histogram.rows_numba import (
    add_values,
    descend,
    quantised,
)
from groundstate.learn.solvers.boosting.histogram.tree_numba import (
    FEW,
    Settings,
    Table,
    empty_nodes,
    grow,
    workspace,
)
from groundstate.learn.solvers.trees.bins_numba import Bins

F64 = NDArray[np.float64]
_PARALLEL = 1 << 17  # rows × columns of a node from which threads pay
_NEVER = 1 << 62
_END = np.array([np.inf])


@dataclass(frozen=True)
class Limits:
    """What a tree may do.

    ``rising`` gives +1, −1 or 0 per column: the prediction may only rise or fall with it.
    ``together`` are groups of columns that may meet on one path. Weights count as rows.
    """

    max_leaves: int | None = 31
    max_depth: int | None = None
    min_weight: float = 20.0
    min_hessian: float = 1e-3
    l2: float = 0.0
    columns: float = 1.0  # share of the columns tried per node
    rising: tuple[int, ...] | None = None
    together: tuple[frozenset[int], ...] | None = None


@dataclass(frozen=True)
class Weighing:
    """Rows that count, and the fixed units of their weights."""

    live: NDArray[np.int32]  # rows of positive weight
    weight: F64 | None  # (n,)
    total: float
    scale: float  # what weights were multiplied with
    bits: int  # of the sum of all weights in ``unit``
    unit: float

    @classmethod
    def of(cls, weight: F64 | None, n: int) -> Weighing:
        live: NDArray[np.int32] = np.arange(n, dtype=np.int32)
        if weight is not None:
            live = np.flatnonzero(weight).astype(np.int32)
        total = float(len(live) if weight is None else weight.sum())
        whole = weight is None or bool((weight == np.rint(weight)).all())
        scale = 1.0
        if not whole and weight is not None:  # weights that are no counts count one on average
            scale = len(live) / total
            weight, total = weight * scale, float(len(live))
        bits = max(2, math.frexp(total)[1] + 1) if whole else 32
        unit = 1.0 if whole else math.ldexp(1.0, math.frexp(total)[1] - 30)
        return cls(live, weight, total, scale, bits, unit)


class Grower:
    """Grows trees on one binned table.

    Parameters
    ----------
    X : (n, d)
    bins : of its columns
    weight : (n,) or None; rows of weight zero are left out, but `add` reaches them
    limits : of a tree
    threads : how many may work on one node
    """

    def __init__(
        self, X: NDArray[Any], bins: Bins, weight: F64 | None, limits: Limits, threads: int = 1
    ) -> None:
        n, d = X.shape
        self.X, self.bins, self.limits, self.n = X, bins, limits, n
        groups = -(-d // GROUP)
        codes = np.zeros((groups, n, GROUP), np.uint8)
        bins.encode(X, [codes[j // GROUP, :, j % GROUP] for j in range(d)], threads)  # type: ignore[arg-type]
        together = None
        if limits.together is not None:
            together = np.array([[j in part for j in range(d)] for part in limits.together])
        words = codes.reshape(groups, n * GROUP).view(np.uint32)
        self.table = Table(
            words,
            codes,
            bins.n_bins,
            bins.categories,
            np.array(limits.rising, np.int64) if any(limits.rising or ()) else None,
        )
        w = Weighing.of(weight, n)
        self.live, self.weight, self.bits, self.unit = w.live, w.weight, w.bits, w.unit
        total, scale = w.total, w.scale
        leaves = len(self.live) if limits.max_leaves is None else limits.max_leaves
        if limits.max_depth is not None:
            leaves = min(leaves, 1 << min(limits.max_depth, 30))
        if limits.min_weight > 0:
            leaves = min(leaves, max(1, int(total / limits.min_weight)))
        self.capacity = max(1, 2 * leaves - 1)
        self.rules = limits.l2 * scale, limits.min_weight, limits.min_hessian
        columns = d if limits.columns >= 1 else max(1, int(limits.columns * d))
        self.settings = Settings(
            limits.max_leaves or 0,
            _NEVER if limits.max_depth is None else limits.max_depth,
            columns,
            _PARALLEL,
        )
        slots = 64 if limits.max_leaves is None else leaves + 1
        slots = max(2, slots)
        self.pool = None  # where hardly a node would have histograms
        if len(self.live) > 2 * FEW:
            self.pool = np.empty((slots, groups, GROUP * BINS * 2), np.int64)
        self.pairs = np.zeros((n, 2), np.int64)
        self.g, self.h = np.zeros(n), np.zeros(n)
        # one array for all trees: between small ones that stay, each new one would leave a gap in memory
        self.held = np.empty(n, np.uint32)
        self.rows: NDArray[np.uint32] = self.live.astype(np.uint32)
        self.sets = bool(bins.categories.any())
        self.node = empty_nodes(self.capacity)
        self.work = workspace(len(self.live), d, slots, self.capacity)
        self.node_sets = np.zeros((self.capacity, BINS), bool) if self.sets else None
        self.options = (
            self.node_sets,
            np.zeros((2, d, BINS), bool) if self.sets else None,
            None if together is None else np.empty((self.capacity, len(together)), bool),
            together,
            np.empty(d, np.uint64) if columns < d else None,
            0 if threads > 1 and n * d >= _PARALLEL else None,
        )
        # the edges of all columns, each with infinity behind: cuts that part NaN from the rest
        self.edges = np.concatenate([part for e in bins.edges for part in (e, _END)])
        self.first = np.zeros(d + 1, np.int64)
        self.first[1:] = np.cumsum(bins.n_bins)
        self.given = np.empty(0) if w.weight is None else w.weight

    def grow(
        self, g: Tensor, h: Tensor, seed: int, live: NDArray[np.int32] | None = None
    ) -> tuple[Tree, NDArray[np.int64]]:
        """A tree of leaf values −G/(H+λ), and for each leaf (node, lo, hi) in ``self.rows``.

        ``live`` are the rows that it sees, all of positive weight by default.
        """
        seen = self.live if live is None else live
        self.rows = self.held[: len(seen)]
        self.rows[:] = seen
        step_g, step_h = quantised(
            g.numpy(), h.numpy(), self.given, self.rows, self.bits, self.unit, self.pairs, self.g,
            self.h,
        )  # fmt: skip
        units = np.array([step_g, step_h, self.unit, float(self.bits), *self.rules])
        size = grow(
            self.table, self.settings, self.node, self.work, self.rows, self.pairs, units, self.g,
            self.h, self.pool, np.uint64(seed), *self.options,
        )  # fmt: skip
        return self._tree(self.node.whole[:size], self.node.real[:size])

    def _tree(self, n: NDArray[np.int64], r: F64) -> tuple[Tree, NDArray[np.int64]]:
        """The tree of these nodes, and for each leaf (node, lo, hi)."""
        feature, left = n[:, whole.COLUMN].copy(), n[:, whole.LEFT].copy()
        code, rows = n[:, whole.LAST_CODE], n[:, whole.HI] - n[:, whole.LO]
        inner, leaves = np.flatnonzero(feature >= 0), np.flatnonzero(feature < 0)
        spans = np.stack([leaves, n[leaves, whole.LO], n[leaves, whole.HI]], axis=1)
        right, threshold = np.where(feature < 0, -1, left + 1), np.zeros(len(n))
        at = self.first[feature[inner]] + np.maximum(code[inner], 0)
        threshold[inner] = np.where(code[inner] < 0, 0.0, self.edges[at])
        sets = {}
        if self.node_sets is not None:
            asking = inner[code[inner] < 0]
            sets = {v: self._mask(int(feature[v]), self.node_sets[v]) for v in asking.tolist()}
        tree = Tree(
            feature, threshold, left, right, n[:, whole.NAN_LEFT] > 0, r[:, [real.VALUE]],
            r[:, real.SUM_W].copy(), r[:, real.WIN].copy(), rows, sets,
        )  # fmt: skip
        return tree, spans

    def _mask(self, j: int, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        size = int(self.bins.categories[j])
        if j not in self.bins.kept:
            return chosen[:size].copy()
        code = self.bins.kept[j]
        return np.where(code >= 0, chosen[np.maximum(code, 0)], False)

    def add(self, tree: Tree, spans: NDArray[np.int64], out: Tensor) -> None:
        """Add the values of the tree grown last to ``out`` (n,), also for rows it did not see."""
        add_values(tree.value[:, 0], spans, self.rows, out.numpy())
        if len(self.rows) < self.n:
            unseen = np.ones(self.n, bool)
            unseen[self.rows] = False
            rest = np.flatnonzero(unseen)
            sets = np.zeros((1, 1), bool) if self.node_sets is None else self.node_sets
            nodes = self.node.whole, sets, tree.nan_left, tree.value[:, 0]
            descend(self.table.codes, *nodes, rest, out.numpy())
