"""A table ready for trees: codes of its columns, targets, and from a grown tree back to values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.energy.trees.nodes import Tree
from groundstate.errors import DataError
from groundstate.learn.solvers.boosting.histogram.bins_numba import Bins
from groundstate.learn.solvers.trees.grow_numba import Stop, empty_nodes, grow, laid_out, workspace
from groundstate.learn.solvers.trees.impurity_numba import (
    ABSOLUTE,
    ENTROPY,
    GINI,
    POISSON,
    SQUARED,
    Columns,
    Rule,
)
from groundstate.learn.solvers.trees.presort_numba import kept, presort, ranks
from groundstate.learn.solvers.trees.random_numba import values_of
from groundstate.math.losses.base import weighted_quantile

F64 = NDArray[np.float64]
EXACT_ROWS = 10_000  # up to here every cut between two values is tried
KINDS = {
    "gini": GINI,
    "entropy": ENTROPY,
    "log_loss": ENTROPY,
    "squared_error": SQUARED,
    "friedman_mse": SQUARED,
    "poisson": POISSON,
    "absolute_error": ABSOLUTE,
}
MANY = 1 << 25  # numbers of a table whose sorted columns every tree copies
_NEVER = 1 << 60
_LAST: dict[Any, int] = {np.dtype("u1"): 255, np.dtype("u4"): (1 << 32) - 1}  # codes of NaN


def _code(wide: int) -> Any:
    """The type of the codes; each width is compiled."""
    return np.uint8 if wide < 255 else np.uint32


@dataclass(frozen=True)
class TreeLimits:
    """How one tree is grown; weights count as rows.

    ``splitter`` is ``"best"`` (exact cuts up to 10,000 rows, 255 bins beyond), ``"exact"``,
    ``"hist"`` or ``"random"`` (one random cut per column).
    """

    criterion: str = "gini"
    splitter: str = "best"
    max_depth: int | None = None
    min_split: float = 2.0
    min_leaf: float = 1.0
    min_share: float = 0.0  # of the whole weight, per leaf
    columns: int | None = None  # tried per node; None: all
    max_leaves: int | None = None
    min_decrease: float = 0.0
    rising: tuple[int, ...] | None = None
    exact_rows: int = EXACT_ROWS

    @property
    def is_random(self) -> bool:
        """Whether columns or cuts are drawn."""
        return self.columns is not None or self.splitter == "random"


class TreeRows:
    """Codes of a table, shared by all trees grown on it.

    Parameters
    ----------
    X : (n, d) float32 or float64, NaN allowed
    y : (n,) int64 classes or (n, m) float64 targets
    weight : (n,) or None
    limits : what trees on these rows look like
    classes : number of classes, 0 for values
    categories : (d,) number of categories of a column, 0 for numbers
    """

    def __init__(
        self,
        X: NDArray[Any],
        y: NDArray[Any],
        weight: F64 | None,
        limits: TreeLimits,
        classes: int = 0,
        categories: tuple[int, ...] | None = None,
        threads: int = 1,
    ) -> None:
        n, d = X.shape
        self.X, self.limits, self.classes, self.counted = X, limits, classes, weight is None
        self.weight = np.ones(n) if weight is None else weight.astype(np.float64)
        self.label = y.astype(np.int64) if classes else np.zeros(1, np.int64)
        self.y = np.zeros((1, 1)) if classes else np.ascontiguousarray(y, np.float64)
        self.sizes = np.zeros(d, np.int64) if categories is None else np.array(categories, np.int64)
        self.sets = categories is not None and bool(self.sizes.any())
        kind = KINDS[limits.criterion]
        if kind == ABSOLUTE and self.y.shape[1] > 1:
            raise DataError("criterion='absolute_error' takes one target, got several columns of y")
        if kind == POISSON and (self.y.min() < 0 or not self.y.sum() > 0):
            raise DataError("criterion='poisson' needs non-negative y with a positive sum")
        self.kind = kind
        self.drawn = limits.splitter == "random" and kind != ABSOLUTE
        binned = limits.splitter == "hist" or (limits.splitter != "exact" and n > limits.exact_rows)
        self.exact = self.drawn or not binned
        rising = (
            np.zeros(d, np.int64) if limits.rising is None else np.array(limits.rising, np.int64)
        )
        self.keys: Any = None  # where columns stay sorted
        self.by_column: Any = None  # where cuts are random
        levels, start = np.empty(0), np.zeros(d + 1, np.int64)
        n_bins, codes = np.maximum(self.sizes, 1), np.empty((d, 0), np.uint8)
        if self.drawn:
            self.by_column, self.gaps = np.ascontiguousarray(X.T), np.isnan(X).any(axis=0)
            if self.sets:
                codes = np.empty((d, n), _code(int(n_bins.max())))
        elif self.exact:
            keys, levels, start, self.gaps = presort(X)
            n_bins = np.where(self.sizes > 0, self.sizes, np.diff(start))
            if self._stay_sorted(keys, int(n_bins.max())):
                self.keys = keys
            else:
                codes = np.empty((d, n), _code(int(n_bins.max())))
                ranks(keys, np.diff(start), _LAST[codes.dtype], codes)
        else:
            given = None if weight is None else self.weight
            bins = Bins.of(X, given, 255, self.sizes, threads=threads)
            first = [_first_values(bins, X, j) for j in range(d)]
            levels, start[1:] = np.concatenate(first), np.cumsum([len(v) for v in first])
            n_bins, codes = bins.n_bins, np.empty((d, n), np.uint8)
            bins.encode(X, codes, threads)
            self.gaps = (codes == bins.missing).any(axis=1)
        missing = _LAST[codes.dtype]
        for j in np.flatnonzero(self.sizes) if self.exact else ():
            known = (X[:, j] >= 0) & (X[:, j] < self.sizes[j])  # False for NaN
            codes[j] = np.where(known, X[:, j], missing)
            self.gaps[j] = not known.all()
        self.columns = Columns(codes, n_bins, self.sizes, rising, levels, start, missing)
        self.wide = int(n_bins.max(initial=1)) if codes.shape[1] else 1

    def _stay_sorted(self, keys: NDArray[Any], wide: int) -> bool:
        """Whether sorted columns pay: many values, few columns left out, and they fit."""
        (d, n), columns = keys.shape, self.limits.columns
        plain = not self.sets and self.kind != ABSOLUTE and keys.size <= MANY
        return plain and 4 * wide >= n and (columns is None or 3 * columns >= d)

    def grow(self, weight: F64, seed: int) -> Tree:
        """A tree on rows of these weights; rows of weight zero are left out."""
        limits = self.limits
        if self.counted and weight is self.weight:  # every row once
            rows, total, scale = np.arange(len(weight), dtype=np.uint32), float(len(weight)), 1.0
        else:
            rows = np.flatnonzero(weight > 0).astype(np.uint32)
            if not len(rows):
                raise DataError("the weights sum to zero; at least one row needs a positive weight")
            total = float(weight.sum())
            whole = bool((weight == np.rint(weight)).all())
            scale = 1.0 if whole else total / len(rows)  # no counts: they count on average
        least = limits.min_leaf * scale if limits.min_leaf > 1 else 0.0
        least = max(least, limits.min_share * total) * (1 - 1e-12)
        split = limits.min_split * scale * (1 - 1e-12) if limits.min_split > 2 else 0.0
        d = self.X.shape[1]
        size, classes = self.classes or 1 + self.y.shape[1], self.classes > 0
        plain = size == 2 and self.kind in (GINI, SQUARED) and not (self.sets or limits.rising)
        small = self.columns.codes.dtype == np.uint8
        fast = plain and (small or self.keys is not None or self.drawn)
        columns = d if limits.columns is None else max(1, min(d, limits.columns))
        rule = Rule(self.kind, size, least, columns, fast)
        leaves = len(rows) if limits.max_leaves is None else min(len(rows), limits.max_leaves)
        if limits.max_depth is not None:
            leaves = min(leaves, 1 << min(limits.max_depth, 30))
        depth = _NEVER if limits.max_depth is None else limits.max_depth
        stop = Stop(depth, limits.max_leaves or 0, split, limits.min_decrease)
        grown = empty_nodes(2 * leaves - 1, size, classes, self.wide, self.sets)
        work, cut = workspace(len(rows), d, size, classes, self.wide, fast)
        keys, values = None, None
        if self.keys is not None:
            keys = kept(self.keys, weight, len(rows))
            spare = np.empty((1, len(rows)), np.uint64)
            work = work._replace(label=self.label, stats=self._stats(weight, fast), keys=spare)
        elif self.drawn:
            values = values_of(self.X, self.by_column, len(rows))
        n = grow(
            self.columns, rule, stop, grown, work, cut, rows, self.label, self.y, weight,
            np.uint64(seed), keys, values,
        )  # fmt: skip
        return self._tree(grown, n, rows, weight)

    def _stats(self, weight: F64, fast: bool) -> F64:
        """What is summed over rows: weights of classes, or weights and weighted values."""
        if self.classes and not fast:
            return weight[:, None]
        y = self.label[:, None] if self.classes else self.y
        return np.concatenate([weight[:, None], weight[:, None] * y], axis=1)

    def _tree(self, g: Any, n: int, rows: NDArray[Any], weight: F64) -> Tree:
        order, feature, *found = laid_out(
            g, n, self.columns, self.gaps, self.exact, self.X.dtype == np.float32
        )
        if self.kind == ABSOLUTE:
            value = found[4]
            for k, v in enumerate(order):
                own = rows[g.lo[v] : g.hi[v]]
                value[k, 0] = weighted_quantile(self.y[own, 0], weight[own], 0.5)
        sets = {}
        if self.sets:
            inner = np.flatnonzero(feature >= 0)
            for k in inner[self.sizes[feature[inner]] > 0].tolist():
                sets[k] = g.sets[order[k]][: self.sizes[feature[k]]].copy()
        tree: tuple[Any, ...] = (feature, *found, sets)
        return Tree(*tree)


def _first_values(bins: Bins, X: NDArray[Any], j: int) -> F64:
    """The smallest value of each code of a column."""
    edges, column = bins.edges[j], X[:, j]
    if bins.categories[j]:
        return np.arange(len(edges) + 1.0)
    low = float(np.nanmin(column)) if not np.isnan(column).all() else 0.0
    return np.concatenate([[low], edges])


__all__ = ["KINDS", "TreeLimits", "TreeRows"]
