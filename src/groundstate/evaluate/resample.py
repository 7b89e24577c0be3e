r"""Bootstrap weightings of rows.

Resampling n rows with replacement is choosing counts :math:`c \sim \mathrm{Multinomial}(n, w/n)`.
Rows that say the same are merged and put in a canonical order first, so a weight of 2 gives the
same draws as the row twice, the order of the rows does not matter, and a metric of hits and misses
has two cells however many rows there are.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from groundstate.evaluate.rows import Floats

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
    cells, first, place = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    by_place = np.lexsort((weight, place.reshape(-1)))  # sums must not depend on the row order
    total = np.zeros(len(cells))
    np.add.at(total, place.reshape(-1)[by_place], weight[by_place])
    return cells, total, live[first]


def counts(weight: Floats, n: int, generator: np.random.Generator) -> Iterator[Floats]:
    """Blocks of n bootstrap weightings of cells with the given weights.  # (b, cells)"""
    draws = max(1, round(float(weight.sum())))
    cells = len(weight)
    block = max(1, _BLOCK // max(cells, 1 if cells <= _FEW_CELLS else draws))
    ends = np.cumsum(weight)
    share = weight / weight.sum()
    for start in range(0, n, block):
        size = min(block, n - start)
        if cells <= _FEW_CELLS:
            yield generator.multinomial(draws, share, size=size).astype(np.float64)
            continue
        points = generator.random((size, draws)) * ends[-1]
        hit = np.minimum(np.searchsorted(ends, points, side="right"), cells - 1)
        hit += np.arange(size)[:, None] * cells
        table = np.bincount(hit.reshape(-1), minlength=size * cells)
        yield table.reshape(size, cells).astype(np.float64)
