r"""The optimum of the dual from a point near it: the linear system of the coefficients in the box.

With the others B at their bounds, the free ones A solve
:math:`K_{AA}\beta_A + b = p_A - K_{AB}\beta_B` and :math:`\sum\beta = 0`. Near the optimum A is nearly
known, and a few exchanges find it, so that the machine does not depend on the path of its steps.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dgesv

F64 = NDArray[np.float64]
MOST = 300  # free coefficients of a system that costs less than steps
EXCHANGES = 8
SLACK = 1e-9


def polished(K: F64, p: F64, lo: F64, hi: F64, beta: F64, F: F64) -> tuple[F64, F64]:
    """β at the optimum and its F = p − Kβ, or those given where the free set is not found."""
    free = (beta > lo) & (beta < hi)
    new = beta.copy()
    for _ in range(EXCHANGES):
        at = np.flatnonzero(free)
        if not 0 < len(at) <= MOST:
            return beta, F
        new[at] = 0.0
        part = K[at]
        system = np.ones((len(at) + 1, len(at) + 1), order="F")
        system[:-1, :-1], system[-1, -1] = part[:, at], 0.0
        _, _, found, info = dgesv(system, np.append(p[at] - part @ new, -new.sum()), overwrite_a=1)
        if info:
            return beta, F
        new[at], b = found[:-1], found[-1]
        out = free & ((new <= lo) | (new >= hi))
        new[out] = np.where(new[out] <= lo[out], lo[out], hi[out])
        errors = p - K @ new - b
        size = SLACK * max(1.0, float(np.abs(p).max()))
        wrong = ~free & (
            ((new <= lo) & (new < hi) & (errors > size))
            | ((new >= hi) & (new > lo) & (errors < -size))
        )
        if not out.any() and not wrong.any():
            rest = np.abs(errors[at]).max() <= size and abs(new.sum()) <= size * np.abs(new).max()
            return (new, errors + b) if rest else (beta, F)
        free = (free & ~out) | wrong
    return beta, F


def polished_tube(
    K: F64, y: F64, lo: F64, hi: F64, beta: F64, F: F64, epsilon: float
) -> tuple[F64, F64]:
    """The same with ε‖β‖₁: each sign has a box and a target of its own, and zero is in the tube."""
    signs, new = np.sign(beta), beta
    size = SLACK * max(1.0, float(np.abs(y).max()))
    for _ in range(EXCHANGES):
        p = y - epsilon * signs
        low, high = np.where(signs < 0.0, lo, 0.0), np.where(signs > 0.0, hi, 0.0)
        found, errors = polished(K, p, low, high, new, F)
        if found is new:
            return beta, F
        new, free = found, (found > low) & (found < high)
        after = errors + epsilon * signs  # y − Kβ
        beyond = after - errors[free].mean()  # free rows are there, or nothing was found
        outside = (new == 0.0) & (np.abs(beyond) > epsilon + size)
        if not outside.any():
            return new, after
        signs = np.where(outside, np.sign(beyond), np.sign(new))
    return beta, F
