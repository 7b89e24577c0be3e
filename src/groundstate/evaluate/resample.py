r"""Bootstrap weightings of rows.

Resampling n rows with replacement is choosing counts :math:`c \sim \mathrm{Multinomial}(n, w/n)`.
Rows that say the same are merged and put in a canonical order first, so a weight of 2 gives the
same draws as the row twice, the order of the rows does not matter, and a metric of hits and misses
has two cells however many rows there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from groundstate.evaluate.rows import Floats

Draw = Callable[[int, np.random.Generator], Floats]

_BLOCK = 2**22  # numbers in one block of counts: 32 MiB
_FEW_CELLS = 2048  # up to here one multinomial draw beats drawing every row


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
    by_place = np.lexsort((weight, place.reshape(-1)))  # sums must not depend on the row order
    total = np.zeros(len(cells))
    np.add.at(total, place.reshape(-1)[by_place], weight[by_place])
    return cells, total, live[first]


def counts(weight: Floats, n: int, generator: np.random.Generator) -> Iterator[Floats]:
    """Blocks of n bootstrap weightings of cells with the given weights.  # (b, cells)"""
    draws = max(1, round(float(weight.sum())))
    cells = len(weight)
    block = max(1, min(n, _BLOCK // cells))
    share = weight / weight.sum()
    draw = _few(share, draws) if cells <= _FEW_CELLS else _many(weight, draws)
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
