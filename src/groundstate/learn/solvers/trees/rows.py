"""A table ready for trees: codes of its columns, targets, and from a grown tree back to values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.energy.trees.nodes import Tree
from groundstate.errors import DataError
from groundstate.learn.solvers.trees import grow_numba as table
from groundstate.learn.solvers.trees.bins_numba import Bins, midpoint
from groundstate.learn.solvers.trees.fast_numba import BINS
from groundstate.learn.solvers.trees.grow_numba import (
    Columns,
    Grown,
    Stop,
    empty_nodes,
    grow,
    workspace,
)
from groundstate.learn.solvers.trees.impurity_numba import (
    ABSOLUTE,
    ENTROPY,
    GINI,
    POISSON,
    SQUARED,
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
        self.sizes = np.zeros(d, np.int64) if categories is None else np.array(categories, np.int64)
        self.sets = categories is not None and bool(self.sizes.any())
        self.kind = kind = KINDS[limits.criterion]
        self.set_targets(np.zeros((1, 1)) if classes else y)
        if kind == ABSOLUTE and self.y.shape[1] > 1:
            raise DataError("criterion='absolute_error' takes one target, got several columns of y")
        if kind == POISSON and (self.y.min() < 0 or not self.y.sum() > 0):
            raise DataError("criterion='poisson' needs non-negative y with a positive sum")
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
        self.columns = Columns(codes, n_bins, self.sizes, rising, missing)
        self.levels, self.start = levels, start  # the smallest value of every code, by column

    def set_targets(self, y: NDArray[Any]) -> None:
        r"""Targets ``(n, m)``, for squared errors shifted and scaled by :func:`units`.

        Their cuts are compared by :math:`S^2/W`, which has no digits left for the gain where
        the targets are far from zero.
        """
        y = np.ascontiguousarray(y, np.float64)
        self.shift, self.unit = np.zeros(y.shape[1]), 1.0
        if self.kind == SQUARED:
            live = y[self.weight > 0] if len(y) == len(self.weight) else y
            self.shift, self.unit = units(live)
        self.y = (y - self.shift) / self.unit

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
        d, sizes = self.X.shape[1], self.sizes
        size = self.classes or 1 + self.y.shape[1]
        two = size == 2 and self.kind in (GINI, SQUARED) and not (self.sets or limits.rising)
        columns = d if limits.columns is None else max(1, min(d, limits.columns))
        rule = Rule(self.kind, size, least, columns)
        leaves = len(rows) if limits.max_leaves is None else min(len(rows), limits.max_leaves)
        depth = _NEVER if limits.max_depth is None else limits.max_depth
        decrease = limits.min_decrease / self.unit / self.unit
        stop = Stop(depth, limits.max_leaves or 0, split, decrease)
        tree = empty_nodes(2 * leaves - 1, self.classes or size - 1)
        given = self._given(weight, two)
        keys = local = values = bins = hist = sets = run = many = median = copy = None  # type: Any
        if self.kind == ABSOLUTE:
            median = 0
        elif self.keys is not None:
            keys = kept(self.keys, weight, len(rows))
        elif self.drawn:
            values = values_of(self.X, self.by_column, len(rows))
        elif self.columns.codes.itemsize > 1:
            local = np.empty((2, len(rows)), np.uint64)
        elif two:
            bins = np.zeros(2 * BINS)
        else:
            hist = np.zeros((int(self.columns.n_bins.max()), size + 1))
        if self.sets:
            sets = np.zeros((len(tree.whole), int(sizes.max())), np.bool_)
            hist = np.zeros((sets.shape[1], size + 1)) if hist is None else hist
        if keys is None:
            copy = np.empty((len(rows), given.shape[1]))
        if two:
            run = np.empty((4, max(len(rows), BINS)))
        else:
            many = 0
        codes = 0 if hist is None else len(hist)
        line = 0 if keys is None else len(rows)
        work = workspace(len(tree.whole), len(rows), d, size, len(weight), codes, line)
        n = grow(
            self.columns, rule, stop, tree, work, rows, given, self.y, np.uint64(seed), copy, keys,
            local, values, bins, hist, sets, run, many, median,
        )  # fmt: skip
        return self._tree(tree, tree.order[:n], sets, rows, weight)

    def _given(self, weight: F64, two: bool) -> F64:
        """What is summed over rows: weights and classes, or weights and weighted values."""
        first = weight[:, None]
        if self.classes and not two:
            return np.concatenate([first, self.label[:, None]], axis=1)
        y = self.label[:, None] if self.classes else self.y
        return np.concatenate([first, first * y], axis=1)

    def _tree(
        self, tree: Grown, order: NDArray[Any], sets: Any, rows: NDArray[Any], weight: F64
    ) -> Tree:
        """The nodes in their order; NaN that a column did not have goes to the larger side."""
        whole, real, value = tree.whole[order], tree.real[order], tree.value[order]
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        feature, nan_left = whole[:, table.FEATURE].copy(), whole[:, table.NAN] > 0
        inner = np.flatnonzero(feature >= 0)
        left, right = np.full((2, len(order)), -1)
        left[inner] = place[whole[inner, table.LEFT]]
        right[inner] = place[whole[inner, table.RIGHT]]
        heavy, new = real[:, table.WEIGHT].copy(), inner[~self.gaps[feature[inner]]]
        nan_left[new] = heavy[left[new]] > heavy[right[new]]
        threshold = np.zeros(len(order))
        threshold[inner] = self._thresholds(whole[inner], real[inner, table.CUT_AT])
        if self.kind == ABSOLUTE:
            for k, (lo, hi) in enumerate(whole[:, [table.FIRST, table.LAST]]):
                own = rows[lo:hi]
                value[k, 0] = weighted_quantile(self.y[own, 0], weight[own], 0.5)
        chosen = {}
        if sets is not None:
            for k in inner[self.sizes[feature[inner]] > 0].tolist():
                chosen[k] = sets[order[k]][: self.sizes[feature[k]]].copy()
        count = whole[:, table.LAST] - whole[:, table.FIRST]
        impurity = real[:, table.IMPURITY] * self.unit * self.unit
        if not self.classes:
            value = value * self.unit + self.shift
        return Tree(
            feature, threshold, left, right, nan_left, value, heavy, impurity, count, chosen
        )

    def _thresholds(self, whole: NDArray[np.int64], drawn: F64) -> F64:
        """Numbers that the type of the rows holds, not below the left side and below the right."""
        j, low, high = (whole[:, k] for k in (table.FEATURE, table.CODE, table.NEXT))
        if self.drawn or not len(self.levels):
            return drawn
        start, low = self.start[j], np.maximum(low, 0)
        if self.exact:
            a, b = self.levels[start + low], self.levels[start + np.maximum(high, 0)]
            found = midpoint(a, b, self.X.dtype)
        else:  # the edge behind code c is the first value of code c + 1
            found = self.levels[start + np.minimum(low + 1, self.columns.n_bins[j] - 1)]
        return np.where(high < 0, np.inf, found)


def units(y: F64) -> tuple[F64, float]:
    """A shift ``(m,)`` near the targets and a power of two near their range, by which they lose no digit.

    Targets that are not far from zero, beside their range, are not shifted.

    >>> units(np.array([[1e6 - 1.5], [1e6 + 2.0]]))
    (array([1000000.]), 2.0)
    >>> units(np.array([[0.1], [1.0]]))
    (array([0.]), 0.5)
    """
    if not len(y):
        return np.zeros(y.shape[1]), 1.0
    low, high = y.min(0), y.max(0)
    with np.errstate(over="ignore"):
        wide = high - low
    two = np.ldexp(1.0, np.clip(np.frexp(wide)[1] - 1, -1000, 1000))
    middle = low / 2 + high / 2
    shift = np.where(wide > 0, np.round(middle / two / 16) * (16 * two), low)
    widest = float(wide.max())
    return shift, float(two.max()) if 0 < widest < np.inf else 1.0


def _first_values(bins: Bins, X: NDArray[Any], j: int) -> F64:
    """The smallest value of each code of a column."""
    edges, column = bins.edges[j], X[:, j]
    if bins.categories[j]:
        return np.arange(len(edges) + 1.0)
    low = float(np.nanmin(column)) if not np.isnan(column).all() else 0.0
    return np.concatenate([[low], edges])
