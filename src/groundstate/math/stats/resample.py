r"""Bootstrap weightings of rows.

Resampling n rows with replacement is choosing counts :math:`c \sim \mathrm{Multinomial}(n, w/n)`.
Rows that say the same are merged and put in a canonical order first, so a weight of 2 gives the
same draws as the row twice, the order of the rows does not matter, and a metric of hits and misses
has two cells however many rows there are.

Means of many different rows need no draw per row: :class:`Cells` puts rows in a few hundred cells
of nearly equal values, draws the counts of the cells exactly, and adds what is left inside the
cells, a small part of the variance, as a Gaussian of the right covariance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Draw = Callable[[int, np.random.Generator], Floats]

_BLOCK = 2**22  # numbers in one block of counts: 32 MiB
FEW_ROWS = 8192  # up to here every row is drawn, above means are drawn by cells
_PER_CELL = 25  # drawing the count of a cell costs as much as drawing this many rows
_ALONE = 64  # far rows that keep a cell of their own


def merge(rows: Floats, weight: Floats) -> tuple[Floats, Floats, NDArray[np.intp]]:
    """Distinct rows in lexical order, their total weights, and where each first occurs.

    >>> merge(np.array([[1.0], [0.0], [1.0]]), np.ones(3))[:2]
    (array([[0.],
           [1.]]), array([1., 2.]))
    """
    live = np.flatnonzero(weight > 0)
    rows, weight = rows[live], weight[live]
    if rows.shape[1] == 1:  # the sort of one column is ten times quicker
        flat, first, place = np.unique(rows[:, 0], return_index=True, return_inverse=True)
        cells = flat[:, None]
    else:
        cells, first, place = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    place = place.reshape(-1)
    if len(cells) == len(rows):
        return cells, weight[first], live[first]
    if (weight == np.round(weight)).all():  # sums of whole numbers do not depend on the row order
        return cells, _sums(place, weight, len(cells)), live[first]
    by_place = np.lexsort((weight, place))
    return cells, _sums(place[by_place], weight[by_place], len(cells)), live[first]


def _sums(place: NDArray[np.intp], values: Floats, size: int) -> Floats:
    return np.bincount(place, values, size).astype(np.float64, copy=False)


def counts(weight: Floats, n: int, generator: np.random.Generator) -> Iterator[Floats]:
    """Blocks of n bootstrap weightings of cells with the given weights.  # (b, cells)"""
    draws = max(1, round(float(weight.sum())))
    cells = len(weight)
    block = max(1, min(n, _BLOCK // cells))
    share = weight / weight.sum()
    few = cells * _PER_CELL <= draws
    draw = _few(share, draws) if few else _many(weight, draws)
    for start in range(0, n, block):
        yield draw(min(block, n - start), generator)


def _few(share: Floats, draws: int) -> Draw:
    return lambda size, generator: generator.multinomial(draws, share, size).astype(np.float64)


def _many(weight: Floats, draws: int) -> Draw:
    """One resample at a time, so that its counts stay in the cache."""
    whole = bool((weight == np.round(weight)).all())
    # whole weights: pick among the repeated rows; others: sorted points on the line of weights
    rows = np.repeat(np.arange(len(weight)), weight.astype(np.int64)) if whole else None
    ends = np.cumsum(weight)

    def draw(size: int, generator: np.random.Generator) -> Floats:
        out = np.empty((size, len(weight)))
        for i in range(size):
            if rows is not None:
                hit = generator.integers(len(rows), size=draws)
                hit = hit if len(rows) == len(weight) else rows[hit]
            else:
                gaps = np.cumsum(generator.standard_exponential(draws + 1))
                hit = np.searchsorted(ends, gaps[:-1] * (ends[-1] / gaps[-1]), side="right")
                np.minimum(hit, len(weight) - 1, out=hit)
            out[i] = np.bincount(hit, minlength=len(weight))
        return out

    return draw


class Cells:
    r"""Bootstrap means of rows, exact in the counts of cells and Gaussian inside them.

    Rows furthest from the mean keep a cell of their own; the others are cut into cells of equal
    count along up to three coordinates in turn. With counts :math:`c_j`, means :math:`\mu_j` and
    covariances :math:`S_j` of the cells, a resampled sum is
    :math:`\sum_j c_j\mu_j + \mathcal N(0, \sum_j c_j S_j)`.

    Parameters
    ----------
    rows : (N, M)
        Statistics of the rows, in a canonical order.
    weight : (N,)
    limit : int
        With at most as many rows every row is a cell and nothing is approximate.

    Attributes
    ----------
    weight : (C,)
    means : (C, M)
    spread : (C, M, M) or None
        Covariances inside the cells; None when every cell is one row.

    Examples
    --------
    >>> x = np.random.default_rng(0).exponential(size=(20_000, 1))
    >>> draws = Cells(x, np.ones(20_000)).draws(2000, np.random.default_rng(1))
    >>> float(draws.std() / (x.std() / 20_000**0.5)).__round__(1)
    1.0
    """

    def __init__(self, rows: Floats, weight: Floats, limit: int = FEW_ROWS) -> None:
        n, m = rows.shape
        if n <= limit:
            self.weight, self.means, self.spread = weight, rows, None
            return
        place = _cells(rows, 128 if m == 1 else 512)
        size = int(place.max()) + 1
        total = _sums(place, weight, size)
        means = np.stack([_sums(place, weight * column, size) for column in rows.T], 1)
        means /= total[:, None]
        left = rows - means[place]
        spread = np.empty((size, m, m))
        for i in range(m):
            for j in range(i, m):
                spread[:, i, j] = spread[:, j, i] = (
                    _sums(place, weight * left[:, i] * left[:, j], size) / total
                )
        self.weight, self.means, self.spread = total, means, spread

    def draws(self, n: int, generator: np.random.Generator) -> Floats:
        """Means of n resamples.  # (n, M)"""
        size = round(float(self.weight.sum()))
        whole = bool((self.weight == np.round(self.weight)).all())
        if self.spread is None and whole and 0 < size < len(self.weight) * _PER_CELL:
            from groundstate.math.stats.resample_numba import mean_draws

            ones = size == len(self.weight)
            pick = np.arange(0) if ones else np.repeat(
                np.arange(len(self.weight)), self.weight.astype(np.int64)
            )  # fmt: skip
            high, low = generator.integers(0, 2**63, 2, dtype=np.uint64)
            cells = np.ascontiguousarray(self.means)
            found: Floats = mean_draws(cells, pick.astype(np.int64), size, high, low, n)
            return found
        parts = []
        for block in counts(self.weight, n, generator):
            total = block.sum(1, keepdims=True)
            sums = block @ self.means
            if self.spread is not None:
                c, m = self.means.shape
                inside = (block @ self.spread.reshape(c, m * m)).reshape(-1, m, m)
                sums += _gaussian(inside, generator)
            parts.append(sums / total)
        return np.concatenate(parts)


def _cells(rows: Floats, limit: int) -> NDArray[np.intp]:
    """The cell of each row: far rows alone, the rest in groups of equal count."""
    n = len(rows)
    scale = rows.std(0)
    scaled = (rows - rows.mean(0)) / np.where(scale > 0, scale, 1.0)
    far = np.argpartition(-np.abs(scaled).max(1), _ALONE)[:_ALONE]
    place = np.empty(n, np.intp)
    place[far] = np.arange(_ALONE)
    near = np.setdiff1d(np.arange(n), far)
    axes = np.flatnonzero(scale > 0)[:3]
    per = max(2, int(limit ** (1 / max(1, len(axes)))))
    group = np.zeros(len(near), np.intp)
    for axis in axes:
        order = np.lexsort((scaled[near, axis], group))
        sizes = np.bincount(group)
        starts = np.r_[0, np.cumsum(sizes)[:-1]]
        ordered = group[order]
        rank = np.arange(len(near)) - starts[ordered]
        new = np.empty(len(near), np.intp)
        new[order] = ordered * per + rank * per // sizes[ordered]
        group = new
    _, dense = np.unique(group, return_inverse=True)
    place[near] = _ALONE + dense.reshape(-1)
    return place


def _gaussian(covariance: Floats, generator: np.random.Generator) -> Floats:
    """One draw of N(0, covariance) each.  # (B, M, M) -> (B, M)"""
    z = generator.standard_normal(covariance.shape[:2])
    if covariance.shape[1] == 1:
        return z * np.sqrt(np.maximum(covariance[:, 0], 0))
    values, vectors = np.linalg.eigh(covariance)
    return np.einsum("bij,bj->bi", vectors, z * np.sqrt(np.maximum(values, 0)))
