"""Means of resampled rows without a table of counts, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(cache=True, nogil=True)
def mean_draws(
    cells: NDArray[np.float64],
    pick: NDArray[np.int64],
    size: int,
    high: Any,
    low: Any,
    n: int,
) -> NDArray[np.float64]:
    """Means of n resamples of ``size`` rows each; resample r has a random stream of its own.

    ``pick`` lists rows as often as they count; empty, each row counts once.
    """
    width = cells.shape[1]
    out = np.zeros((n, width))
    golden = np.uint64(0x9E3779B97F4A7C15)
    direct = len(pick) == 0
    span = np.uint64(size)
    for r in range(n):
        state = np.uint64(high) + golden * np.uint64(r + 1)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        state ^= state >> np.uint64(31)
        total = 0.0
        for _ in range(size):
            state += golden
            w = state ^ (state >> np.uint64(30))
            w *= np.uint64(0xBF58476D1CE4E5B9)
            w ^= w >> np.uint64(27)
            w *= np.uint64(0x94D049BB133111EB)
            w ^= (w >> np.uint64(31)) ^ np.uint64(low)
            # the top 32 bits of a product: uniform without a division
            at = np.int64(((w >> np.uint64(32)) * span) >> np.uint64(32))
            row = at if direct else pick[at]
            if width == 1:
                total += cells[row, 0]
            else:
                for j in range(width):
                    out[r, j] += cells[row, j]
        if width == 1:
            out[r, 0] = total
    return out / size
