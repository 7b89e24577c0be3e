"""Compiled: which distances of a tile lie within the balls of its rows and of its columns."""

from __future__ import annotations

from typing import Any

from groundstate.compute.kernels.compile_numba import outer


@outer
def count(gap: Any, rows: Any, columns: Any, around: Any, covered: Any, inside: Any) -> None:
    """Compares gap ``(s, m)`` with a bound for each row and one for each column.

    Adds to around ``(m,)`` the rows whose ball holds a column, and fills covered and inside ``(s,)``:
    how many columns a row's ball holds, how many columns' balls hold the row.
    """
    for i in range(gap.shape[0]):
        own, others, bound = 0, 0, rows[i]
        for j in range(gap.shape[1]):
            hit = 1 if gap[i, j] <= bound else 0
            around[j] += hit
            own += hit
            others += 1 if gap[i, j] <= columns[j] else 0
        covered[i], inside[i] = own, others
