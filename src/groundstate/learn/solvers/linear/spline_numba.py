r"""A smoothing spline as a Kalman smoother, compiled: linear in the number of knots.

The state is (g, g'); over a gap h it moves as :math:`T = [[1, h], [0, 1]]` with noise
:math:`Q = \lambda^{-1}[[h^3/3, h^2/2], [h^2/2, h]]`. The straight line, which no prior holds back,
is a regression on the columns 1 and t, filtered along with y.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def smoother(t: Any, y: Any, w: Any, lam: float) -> tuple[Any, Any, float, float]:
    """Values and slopes at the knots, Σ w (y − g)², and n − tr S."""
    n = len(t)
    middle = (w * t).sum() / w.sum()
    a = np.zeros((n, 2, 3))  # predicted states of the series y, 1, t
    P = np.zeros((n, 3))  # their covariance: 00, 01, 11
    v = np.empty((n, 3))  # innovations
    F = np.empty(n)
    K = np.zeros((n, 2))  # gains, to the next knot
    M = np.zeros((2, 2))
    q = np.zeros(2)
    for i in range(n):
        v[i, 0], v[i, 1], v[i, 2] = y[i] - a[i, 0, 0], 1 - a[i, 0, 1], t[i] - middle - a[i, 0, 2]
        p00, p01, p11 = P[i]
        F[i] = p00 + 1 / w[i]
        for j in range(2):
            q[j] += v[i, 1 + j] * v[i, 0] / F[i]
            for k in range(2):
                M[j, k] += v[i, 1 + j] * v[i, 1 + k] / F[i]
        if i + 1 < n:
            h = t[i + 1] - t[i]
            K[i, 0], K[i, 1] = (p00 + h * p01) / F[i], p01 / F[i]
            for s in range(3):
                a[i + 1, 0, s] = a[i, 0, s] + h * a[i, 1, s] + K[i, 0] * v[i, s]
                a[i + 1, 1, s] = a[i, 1, s] + K[i, 1] * v[i, s]
            noise = 1 / (w[i] * F[i])  # filtered covariance: P − PZᵀZP/F, without cancellation
            f00, f01 = p00 * noise, p01 * noise
            f11 = p11 - p01 * p01 / F[i]
            P[i + 1, 0] = f00 + 2 * h * f01 + h * h * f11 + h * h * h / (3 * lam)
            P[i + 1, 1] = f01 + h * f11 + h * h / (2 * lam)
            P[i + 1, 2] = f11 + h / lam
    det = M[0, 0] * M[1, 1] - M[0, 1] * M[1, 0]
    i00, i01, i11 = M[1, 1] / det, -M[0, 1] / det, M[0, 0] / det
    b0, b1 = i00 * q[0] + i01 * q[1], i01 * q[0] + i11 * q[1]
    r = np.zeros((2, 3))
    N00 = N01 = N11 = 0.0
    values, slopes = np.empty(n), np.empty(n)
    rss = free = 0.0
    u = np.empty(3)
    for i in range(n - 1, -1, -1):
        h = t[i + 1] - t[i] if i + 1 < n else 0.0
        k0, k1 = K[i, 0], K[i, 1]
        for s in range(3):
            u[s] = v[i, s] / F[i] - k0 * r[0, s] - k1 * r[1, s]
        D = 1 / F[i] + k0 * k0 * N00 + 2 * k0 * k1 * N01 + k1 * k1 * N11
        D -= i00 * u[1] * u[1] + 2 * i01 * u[1] * u[2] + i11 * u[2] * u[2]
        error = u[0] - b0 * u[1] - b1 * u[2]
        values[i] = y[i] - error / w[i]
        rss += error * error / w[i]
        free += D / w[i]
        for s in range(3):  # r ← Zᵀv/F + Lᵀr with L = T − KZ
            r1 = h * r[0, s] + r[1, s]
            r[0, s] = r[0, s] + u[s]
            r[1, s] = r1
        l00, l10 = 1 - k0, -k1
        n00 = l00 * (l00 * N00 + l10 * N01) + l10 * (l00 * N01 + l10 * N11) + 1 / F[i]
        n01 = l00 * (h * N00 + N01) + l10 * (h * N01 + N11)
        N11 = h * h * N00 + 2 * h * N01 + N11
        N00, N01 = n00, n01
        slope = b1
        for s in range(3):
            part = a[i, 1, s] + P[i, 1] * r[0, s] + P[i, 2] * r[1, s]
            slope += part if s == 0 else (-b0 * part if s == 1 else -b1 * part)
        slopes[i] = slope
    return values, slopes, rss, free
