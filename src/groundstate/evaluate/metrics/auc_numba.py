"""Areas under the ROC curve of many resamples of the same sorted rows, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(cache=True, nogil=True)
def areas(
    positive: NDArray[np.bool_],
    last: NDArray[np.bool_],
    unit: NDArray[np.int64],
    weight: NDArray[np.float64],
    pick: NDArray[np.int64],
    starts: NDArray[np.int64],
    n_units: int,
    high: Any,
    low: Any,
    first: int,
    n: int,
) -> NDArray[np.float64]:
    """AUC of n resamples; resample r draws its units from a stream of its own.

    Rows are sorted by score; ``last`` ends a group of ties. ``pick`` lists units as often as they
    can be drawn, in strata that begin at ``starts``.
    """
    out = np.empty(n)
    count = np.empty(n_units, np.int32)
    golden = np.uint64(0x9E3779B97F4A7C15)
    for r in range(n):
        count[:] = 0
        state = np.uint64(high) + golden * np.uint64(first + r + 1)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        state ^= state >> np.uint64(31)
        for part in range(len(starts) - 1):
            begin, size = starts[part], np.uint64(starts[part + 1] - starts[part])
            for _ in range(starts[part + 1] - starts[part]):
                state += golden
                w = state ^ (state >> np.uint64(30))
                w *= np.uint64(0xBF58476D1CE4E5B9)
                w ^= w >> np.uint64(27)
                w *= np.uint64(0x94D049BB133111EB)
                w ^= (w >> np.uint64(31)) ^ np.uint64(low)
                # the top 32 bits of a product: uniform without a division
                at = ((w >> np.uint64(32)) * size) >> np.uint64(32)
                count[pick[begin + np.int64(at)]] += 1
        up = down = won = tie_up = tie_down = 0.0
        for i in range(len(positive)):
            w_i = weight[i] * count[unit[i]]
            if positive[i]:
                tie_up += w_i
            else:
                tie_down += w_i
            if last[i]:
                won += tie_up * (down + 0.5 * tie_down)
                up += tie_up
                down += tie_down
                tie_up = tie_down = 0.0
        out[r] = won / (up * down) if up > 0 and down > 0 else np.nan
    return out
