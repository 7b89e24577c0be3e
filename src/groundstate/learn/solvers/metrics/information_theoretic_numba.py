"""Projections of a metric onto one bound after the other, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.compute.kernels.compile_numba import outer


@outer
def sweep(A: Any, V: Any, sign: Any, bound: Any, dual: Any, gamma: float) -> float:
    """One pass over all pairs: A, the bounds with slack and the duals change; the sum of moves of duals.

    ``sign`` is 1 for distances at most the bound and -1 for those at least.
    """
    m, d = V.shape
    Av = np.empty(d)
    share = 1.0 if np.isinf(gamma) else gamma / (gamma + 1.0)
    moved = 0.0
    for i in range(m):
        v = V[i]
        squared = 0.0
        for r in range(d):
            s = 0.0
            for c in range(d):
                s += A[r, c] * v[c]
            Av[r] = s
            squared += s * v[r]
        if squared <= 0.0:
            continue
        alpha = min(dual[i], share * sign[i] * (1.0 / squared - 1.0 / bound[i]))
        dual[i] -= alpha
        moved += abs(alpha)
        beta = sign[i] * alpha / (1.0 - sign[i] * alpha * squared)
        bound[i] = 1.0 / (1.0 / bound[i] + sign[i] * alpha / gamma)
        for r in range(d):
            step = beta * Av[r]
            for c in range(d):
                A[r, c] += step * Av[c]
    return moved
