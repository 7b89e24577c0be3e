r"""Sequential minimal optimisation, to be read: the oracle of ``smo_engine``."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]


def smo_reference(
    K: F64, p: F64, lo: F64, hi: F64, tol: float = 1e-3, max_steps: int = 100_000
) -> tuple[F64, F64]:
    r"""Minimise :math:`\tfrac12\beta^\top K\beta - p^\top\beta` with :math:`\sum\beta = 0` in a box.

    Each step moves β_i up and β_j down by the same amount, so the sum stays zero. i has the largest
    error :math:`F = p - K\beta` among those that may rise; j gains most against it.

    Examples
    --------
    >>> t = np.array([-1.0, 1.0])
    >>> smo_reference(np.outer(t, t), t, np.minimum(t, 0), np.maximum(t, 0))[0].tolist()
    [-0.5, 0.5]
    """
    beta, F = np.zeros(len(p)), p.astype(float).copy()
    for _ in range(max_steps):
        rise, fall = beta < hi, beta > lo
        i = int(np.argmax(np.where(rise, F, -np.inf)))
        if F[i] - np.where(fall, F, np.inf).min() <= tol:
            break
        curve = np.maximum(K[i, i] + np.diag(K) - 2 * K[i], 1e-12)
        gain = np.where(fall & (F[i] > F), (F[i] - F) ** 2 / curve, -np.inf)
        j = int(np.argmax(gain))
        step = min((F[i] - F[j]) / curve[j], hi[i] - beta[i], beta[j] - lo[j])
        beta[i] += step
        beta[j] -= step
        F -= step * (K[i] - K[j])
    return beta, F
