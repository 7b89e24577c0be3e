"""One Guttman transform, compiled: every row sums over the others once; coordinates ``(p, n)``."""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.compute.kernels.compile_numba import inner, outer

FREE = {"nnan", "ninf", "nsz", "contract", "reassoc", "arcp"}
TINY = 1e-300


@inner(fastmath=FREE)
def _row2(x: Any, y: Any, wanted: Any, weight: Any, weighted: bool, i: int, out: Any) -> Any:
    a = b = total = stress = size = 0.0
    x0, y0 = x[i], y[i]
    for j in range(len(x)):
        u, v = x0 - x[j], y0 - y[j]
        s = u * u + v * v
        d = np.sqrt(s)
        w = weight[j] if weighted else 1.0
        stress += w * (d - wanted[j]) * (d - wanted[j])
        size += w * s
        r = w * wanted[j] / d if d > TINY else 0.0
        total += r
        a += r * x[j]
        b += r * y[j]
    out[0, i], out[1, i] = total * x0 - a, total * y0 - b
    return stress, size


@inner(fastmath=FREE)
def _row(Y: Any, wanted: Any, weight: Any, weighted: bool, i: int, d: Any, out: Any) -> Any:
    p, n = Y.shape
    total = stress = size = 0.0
    for j in range(n):
        d[j] = 0.0
    for c in range(p):
        at = Y[c, i]
        for j in range(n):
            d[j] += (at - Y[c, j]) ** 2
    for j in range(n):
        w = weight[j] if weighted else 1.0
        size += w * d[j]
        d[j] = np.sqrt(d[j])
        stress += w * (d[j] - wanted[j]) ** 2
        d[j] = w * wanted[j] / d[j] if d[j] > TINY else 0.0
        total += d[j]
    for c in range(p):
        s = 0.0
        for j in range(n):
            s += d[j] * Y[c, j]
        out[c, i] = total * Y[c, i] - s
    return stress, size


@outer
def guttman(Y: Any, wanted: Any, weight: Any, weighted: bool, lo: int, hi: int, out: Any) -> Any:
    """B(Y)Y of rows lo..hi into ``out`` ``(p, n)``; twice their stress, and the sum of squared distances."""
    p, n = Y.shape
    room = np.empty(n)
    stress = size = 0.0
    for i in range(lo, hi):
        w = weight[i] if weighted else weight[0]
        if p == 2:
            s, z = _row2(Y[0], Y[1], wanted[i], w, weighted, i, out)
        else:
            s, z = _row(Y, wanted[i], w, weighted, i, room, out)
        stress += s
        size += z
    return stress, size
