"""Products with a sparse matrix twice over, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.kernels.compile_numba import outer


@outer
def twice(
    at: NDArray[Any],
    index: NDArray[Any],
    value: NDArray[Any],
    v: NDArray[Any],
    a: NDArray[Any],
    s: Any,
    weight: NDArray[Any],
) -> tuple[NDArray[Any], Any]:
    r""":math:`A^\top t` and :math:`a^\top t`, with :math:`t = w \odot (Av - sa)`; A is read once.

    ``at``, ``index`` and ``value`` are A ``(m, n)`` by rows, v ``(n,)``, a and w ``(m,)``. Indices are
    unsigned: a test for those below zero would take half of the time.
    """
    out = np.zeros_like(v)
    total = 0.0
    for r in range(len(at) - 1):
        columns, numbers = index[at[r] : at[r + 1]], value[at[r] : at[r + 1]]
        t = -s * a[r]
        for p in range(len(columns)):
            t += numbers[p] * v[np.uint32(columns[p])]
        t *= weight[r]
        total += a[r] * t
        for p in range(len(columns)):
            out[np.uint32(columns[p])] += t * numbers[p]
    return out, total
