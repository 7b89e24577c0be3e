"""Charges to the nodes of a grid and sums back to the rows, compiled; see `grid`."""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.compute.kernels.compile_numba import inner, outer

FREE = {"nnan", "ninf", "nsz", "contract", "reassoc", "arcp"}
ORDER = 6


@inner(fastmath=FREE)
def _splines(t: float, weight: Any, slope: Any) -> None:
    """Weights of six nodes and their slopes for a place t in [0, 1) past the third."""
    weight[0], weight[1] = 1.0 - t, t
    for k in range(3, ORDER + 1):
        if k == ORDER:
            slope[0], slope[ORDER - 1] = -weight[0], weight[ORDER - 2]
            for j in range(1, ORDER - 1):
                slope[j] = weight[j - 1] - weight[j]
        share = 1.0 / (k - 1)
        weight[k - 1] = share * t * weight[k - 2]
        for j in range(1, k - 1):
            a, b = weight[k - 2 - j], weight[k - 1 - j]
            weight[k - 1 - j] = share * ((t + j) * a + (k - j - t) * b)
        weight[0] *= share * (1.0 - t)


@outer(fastmath=FREE)
def spread(Y: Any, corner: Any, spacing: float, grid: Any) -> None:
    """Add a charge of one for every row ``(2, n)`` to the nodes ``(g, g)``."""
    a, b, slope = np.empty(ORDER), np.empty(ORDER), np.empty(ORDER)
    for i in range(Y.shape[1]):
        u, v = (Y[0, i] - corner[0]) / spacing, (Y[1, i] - corner[1]) / spacing
        r, c = int(u), int(v)
        _splines(u - r, a, slope)
        _splines(v - c, b, slope)
        for j in range(ORDER):
            for k in range(ORDER):
                grid[r - 2 + j, c - 2 + k] += a[j] * b[k]


@outer(fastmath=FREE)
def collect(Y: Any, corner: Any, spacing: float, field: Any, lo: int, hi: int, out: Any) -> float:
    """Pushes of rows lo..hi from sums ``(g, g)`` at the nodes, and the sum at these rows."""
    a, b = np.empty(ORDER), np.empty(ORDER)
    da, db = np.empty(ORDER), np.empty(ORDER)
    z = 0.0
    for i in range(lo, hi):
        u, v = (Y[0, i] - corner[0]) / spacing, (Y[1, i] - corner[1]) / spacing
        r, c = int(u), int(v)
        _splines(u - r, a, da)
        _splines(v - c, b, db)
        phi = x = y = 0.0
        for j in range(ORDER):
            along = across = 0.0
            for k in range(ORDER):
                value = field[r - 2 + j, c - 2 + k]
                along += b[k] * value
                across += db[k] * value
            phi += a[j] * along
            x += da[j] * along
            y += a[j] * across
        z += phi
        out[i, 0], out[i, 1] = -0.5 / spacing * x, -0.5 / spacing * y
    return z
