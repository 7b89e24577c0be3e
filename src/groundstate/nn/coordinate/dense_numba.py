r"""Elementwise steps of jets through tanh layers, one pass over memory each.

Arrays are ``(w, K, n)``: units, streams (value, first, second derivatives), points. The value stream of
z holds :math:`s = \tanh z`, from which all derivatives of the activation follow.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.compute.kernels.compile_numba import FAST, outer


@outer(fastmath=FAST)
def forward(z: Any, h: Any, pairs: Any) -> None:
    """The jet behind the activation, of the jet before it."""
    w, K, n = z.shape
    p = len(pairs)
    d1, d2 = np.empty(n, z.dtype), np.empty(n, z.dtype)
    for j in range(w):
        for i in range(n):
            s = z[j, 0, i]
            h[j, 0, i] = s
            d1[i] = 1 - s * s
            d2[i] = -2 * s * d1[i]
        for a in range(1, K):
            for i in range(n):
                h[j, a, i] = d1[i] * z[j, a, i]
        for q in range(p):
            a, b, at = pairs[q, 0], pairs[q, 1], K - p + q
            for i in range(n):
                h[j, at, i] += d2[i] * z[j, a, i] * z[j, b, i]


@outer(fastmath=FAST)
def backward(z: Any, g: Any, h: Any, pairs: Any) -> None:
    """Gradients g behind the activation become those before it; h is the jet behind it again."""
    w, K, n = z.shape
    p = len(pairs)
    first = K - p
    d1, d2, d3 = np.empty(n, z.dtype), np.empty(n, z.dtype), np.empty(n, z.dtype)
    g0 = np.empty(n, z.dtype)
    for j in range(w):
        for i in range(n):
            s = z[j, 0, i]
            h[j, 0, i] = s
            d1[i] = 1 - s * s
            d2[i] = -2 * s * d1[i]
            d3[i] = d1[i] * (6 * s * s - 2)
            g0[i] = d1[i] * g[j, 0, i]
        for a in range(1, K):
            for i in range(n):
                h[j, a, i] = d1[i] * z[j, a, i]
                g0[i] += d2[i] * g[j, a, i] * z[j, a, i]
        for q in range(p):
            a, b, at = pairs[q, 0], pairs[q, 1], first + q
            for i in range(n):
                both = z[j, a, i] * z[j, b, i]
                h[j, at, i] += d2[i] * both
                g0[i] += d3[i] * g[j, at, i] * both
        for a in range(1, first):
            for i in range(n):
                g[j, a, i] *= d1[i]
        for q in range(p):
            a, b, at = pairs[q, 0], pairs[q, 1], first + q
            for i in range(n):
                bent = d2[i] * g[j, at, i]
                g[j, a, i] += bent * z[j, b, i]
                g[j, b, i] += bent * z[j, a, i]
            for i in range(n):
                g[j, at, i] *= d1[i]
        for i in range(n):
            g[j, 0, i] = g0[i]
