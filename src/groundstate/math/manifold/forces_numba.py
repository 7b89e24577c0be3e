"""Forces between the rows of a map, compiled: pulls along the edges of a graph, pushes of all pairs.

Coordinates are ``(p, n)``: the loops over rows run along contiguous memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.compute.kernels.compile_numba import inner, outer

FREE = {"nnan", "ninf", "nsz", "contract", "reassoc", "arcp"}


@inner(fastmath=FREE)
def _pull2(starts: Any, ends: Any, p: Any, Y: Any, i: int, out: Any) -> None:
    a = b = 0.0
    y0, y1 = Y[0, i], Y[1, i]
    for edge in range(starts[i], starts[i + 1]):
        j = ends[edge]
        u, v = y0 - Y[0, j], y1 - Y[1, j]
        s = 1.0 + u * u + v * v
        w = p[edge] / s
        a += w * u
        b += w * v
    out[i, 0], out[i, 1] = a, b


@inner(fastmath=FREE)
def _pull(starts: Any, ends: Any, p: Any, Y: Any, i: int, out: Any) -> None:
    for c in range(len(Y)):
        out[i, c] = 0.0
    for edge in range(starts[i], starts[i + 1]):
        j = ends[edge]
        s = 1.0
        for c in range(len(Y)):
            s += (Y[c, i] - Y[c, j]) ** 2
        w = p[edge] / s
        for c in range(len(Y)):
            out[i, c] += w * (Y[c, i] - Y[c, j])


@outer
def attraction(starts: Any, ends: Any, p: Any, Y: Any, lo: int, hi: int, out: Any) -> None:
    """Pulls :math:`\\sum_j p_{ij}(y_i - y_j)/(1 + d^2)` of rows lo..hi."""
    flat = len(Y) == 2
    for i in range(lo, hi):
        if flat:
            _pull2(starts, ends, p, Y, i, out)
        else:
            _pull(starts, ends, p, Y, i, out)


@outer(fastmath=FREE)
def pair_energy(starts: Any, ends: Any, p: Any, Y: Any, lo: int, hi: int) -> float:
    """Sum of :math:`p_{ij}\\log(1 + d^2)` over the edges of rows lo..hi."""
    total = 0.0
    for i in range(lo, hi):
        for edge in range(starts[i], starts[i + 1]):
            j, s = ends[edge], 1.0
            for c in range(len(Y)):
                s += (Y[c, i] - Y[c, j]) ** 2
            total += p[edge] * np.log(s)
    return total


@inner(fastmath=FREE)
def _push2(x: Any, y: Any, i: int, out: Any) -> float:
    a = b = z = 0.0
    x0, y0 = x[i], y[i]
    for j in range(len(x)):
        u, v = x0 - x[j], y0 - y[j]
        q = 1.0 / (1.0 + u * u + v * v)
        z += q
        q *= q
        a += q * u
        b += q * v
    out[i, 0], out[i, 1] = a, b
    return z - 1.0


@inner(fastmath=FREE)
def _push(Y: Any, i: int, out: Any, square: Any) -> float:
    n, z = Y.shape[1], 0.0
    for j in range(n):
        square[j] = 1.0
    for c in range(len(Y)):
        at = Y[c, i]
        for j in range(n):
            square[j] += (at - Y[c, j]) ** 2
    for j in range(n):
        square[j] = 1.0 / square[j]
        z += square[j]
    for c in range(len(Y)):
        at, total = Y[c, i], 0.0
        for j in range(n):
            total += square[j] * square[j] * (at - Y[c, j])
        out[i, c] = total
    return z - 1.0


@outer
def repulsion(Y: Any, lo: int, hi: int, out: Any) -> float:
    """Pushes :math:`\\sum_j (y_i - y_j)/(1 + d^2)^2` of rows lo..hi, and their part of Z."""
    z, flat = 0.0, len(Y) == 2
    square = np.empty(1 if flat else Y.shape[1])
    for i in range(lo, hi):
        z += _push2(Y[0], Y[1], i, out) if flat else _push(Y, i, out, square)
    return z


@outer(fastmath=FREE)
def descend(
    grad: Any, Y: Any, update: Any, gains: Any, momentum: float, rate: float, lo: int, hi: int
) -> float:
    """One step with momentum and gains on coordinates ``(p, n)``; the squared norm of the gradient."""
    norm = 0.0
    for c in range(len(Y)):
        for i in range(lo, hi):
            g = grad[i, c]
            norm += g * g
            gain = gains[c, i] + 0.2 if update[c, i] * g < 0.0 else gains[c, i] * 0.8
            gain = max(gain, 0.01)
            gains[c, i] = gain
            update[c, i] = momentum * update[c, i] - rate * gain * g
            Y[c, i] += update[c, i]
    return norm
