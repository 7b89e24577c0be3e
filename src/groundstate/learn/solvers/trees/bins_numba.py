r"""Columns as small integers: edges at weighted quantiles, codes by one look-up and a short walk.

Column j is cut at edges :math:`t_1 < \dots < t_m`; the code of a value is the number of edges
below it, so :math:`x \le t_c \iff \text{code} \le c`. NaN has a code of its own. With at least as
many bins as distinct values every cut between two values is kept, and trees on codes are exact.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.kernels.compile_numba import outer

F64 = NDArray[np.float64]
MISSING = 255  # code of NaN, unless codes are wider than a byte
GUIDE = 1024  # cells of the look-up table that says where to begin among the edges
TOGETHER = 8  # columns that are read at once
FEW = 1 << 12  # rows whose codes NumPy finds before the loop would be compiled
MANY = 1 << 18  # entries from which several threads pay


@outer
def _encode(column: Any, edges: Any, missing: int, out: Any) -> None:
    """out[i] = how many edges are below column[i]; the cell of a value is monotone in it."""
    m = len(edges)
    guide = np.zeros(GUIDE + 1, np.int64)
    low, scale = 0.0, 0.0
    if m > 1 and edges[m - 1] - edges[0] < np.inf:
        low = edges[0]
        scale = (GUIDE - 1) / (edges[m - 1] - edges[0])
        if not scale < np.inf:
            scale = 0.0
    for k in range(m):
        place = np.int64(min(max((edges[k] - low) * scale, 0.0), GUIDE - 1.0)) if scale > 0 else 0
        guide[place + 1] += 1
    for c in range(GUIDE):
        guide[c + 1] += guide[c]
    for i in range(len(column)):
        v = np.float64(column[i])
        if np.isnan(v):
            out[i] = missing
            continue
        cell = np.int64(min(max((v - low) * scale, 0.0), GUIDE - 1.0)) if scale > 0 else 0
        at, end = guide[cell], guide[cell + 1]
        while end - at > 4:  # a crowded cell, as outliers make them
            middle = (at + end) // 2
            if v > edges[middle]:
                at = middle + 1
            else:
                end = middle
        while at < end and v > edges[at]:
            at += 1
        out[i] = at


def midpoint(a: F64, b: F64, dtype: Any) -> F64:
    """A number t with a <= t < b that ``dtype`` can hold; a and b are numbers of that dtype."""
    with np.errstate(over="ignore"):
        middle = a / 2 + b / 2
    middle = np.where((middle >= a) & (middle < b), middle, a).astype(dtype).astype(np.float64)
    return np.where((middle >= a) & (middle < b), middle, a)


def column_edges(column: NDArray[Any], weight: F64 | None, max_bins: int) -> F64:
    r"""At most ``max_bins - 1`` edges of one column.

    Edge i stands behind the smallest value v with :math:`W(x \le v) \ge i W / \text{max\_bins}`,
    half way to the next value.
    """
    if weight is not None:
        column, weight = column[weight > 0], weight[weight > 0]
    known = ~np.isnan(column)
    if not known.all():
        column = column[known]
        weight = None if weight is None else weight[known]
    if len(column) < 2:
        return np.empty(0)
    if weight is None:
        ordered = np.sort(column)
        last = np.flatnonzero(ordered[1:] != ordered[:-1])
        below = last + 1.0
        total = float(len(ordered))
    else:
        order = np.argsort(column, kind="stable")
        ordered = column[order]
        last = np.flatnonzero(ordered[1:] != ordered[:-1])
        cumulative = np.cumsum(weight[order])
        below, total = cumulative[last], float(cumulative[-1])
    if len(last) >= max_bins:
        marks = total * np.arange(1, max_bins) / max_bins
        place = np.searchsorted(below, marks, side="left")  # rising, with repeats
        place = place[np.append(True, place[1:] != place[:-1])]
        last = last[place[place < len(last)]]
    low, high = ordered[last].astype(np.float64), ordered[last + 1].astype(np.float64)
    return midpoint(low, high, column.dtype)


@dataclass
class Bins:
    """How columns become codes.

    Attributes
    ----------
    edges : list of arrays, one per column; for a category column the edges between its numbers
    categories : (d,) int64, number of categories of a column, 0 for a numeric one
    missing : code of NaN
    """

    edges: list[F64]
    categories: NDArray[np.int64]
    missing: int
    kept: dict[int, NDArray[np.int64]] = field(default_factory=dict)  # category -> code, −1: none
    n_bins: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        self.n_bins = np.array([len(e) + 1 for e in self.edges], np.int64)

    @classmethod
    def of(
        cls,
        X: NDArray[Any],
        weight: F64 | None,
        max_bins: int,
        categories: NDArray[np.int64] | None = None,
        missing: int = MISSING,
        threads: int = 1,
    ) -> Bins:
        """Edges of all columns of ``X`` (n, d).

        A category keeps its own code while there are fewer than ``max_bins``; of more, only the
        heaviest keep one and the rest count as missing.
        """
        d = X.shape[1]
        sizes = np.zeros(d, np.int64) if categories is None else categories

        def edges(first: int) -> list[F64]:
            found = []
            for j, column in enumerate(_columns(X, first), first):
                if sizes[j]:
                    found.append(np.arange(0.5, min(int(sizes[j]), max_bins) - 1))
                else:
                    found.append(column_edges(column, weight, max_bins))
            return found

        kept = {
            int(j): _heaviest(X[:, j], weight, int(sizes[j]), max_bins)
            for j in np.flatnonzero(sizes > max_bins)
        }
        parts = _each(edges, d, threads if X.size > MANY else 1)
        return cls([e for part in parts for e in part], sizes, missing, kept)

    def encode(self, X: NDArray[Any], out: NDArray[Any], threads: int = 1) -> None:
        """Codes of ``X`` (n, d) into ``out[j]``, each ``(n,)``, for every column j."""

        def some(first: int) -> None:
            for j, values in enumerate(_columns(X, first), first):
                if self.categories[j]:
                    known = (values >= 0) & (values < self.categories[j])  # False for NaN
                    codes = np.where(known, values, 0).astype(np.int64)
                    if j in self.kept:
                        codes = self.kept[j][codes]
                    values = np.where(known & (codes >= 0), codes, np.nan)
                if len(values) <= FEW:
                    codes = np.searchsorted(self.edges[j], values)
                    out[j][:] = np.where(np.isnan(values), self.missing, codes)
                else:
                    _encode(values, self.edges[j], self.missing, out[j])

        _each(some, X.shape[1], threads if X.size > MANY else 1)


def _heaviest(
    column: NDArray[Any], weight: F64 | None, size: int, max_bins: int
) -> NDArray[np.int64]:
    """Codes of the ``max_bins`` heaviest categories in their own order, −1 for the rest."""
    known = (column >= 0) & (column < size)
    mass = np.bincount(
        column[known].astype(np.int64), None if weight is None else weight[known], minlength=size
    )
    top = np.sort(np.argsort(-mass, kind="stable")[:max_bins])
    out = np.full(size, -1, np.int64)
    out[top] = np.arange(len(top))
    return out


def _columns(X: NDArray[Any], first: int) -> NDArray[Any]:
    """A few columns, each contiguous; together, because they share lines of memory."""
    return np.ascontiguousarray(X[:, first : first + TOGETHER].T)


def _each(task: Any, n: int, threads: int) -> list[Any]:
    """The task for every few columns."""
    if threads == 1:
        return [task(j) for j in range(0, n, TOGETHER)]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(task, range(0, n, TOGETHER)))
