"""Local variances with their slopes and curvatures, over the rows that are near enough to count.

Rows come transposed and sorted by their widest column, so that the near ones stand together.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.compute.kernels.compile_numba import inner, outer

FAR = 36.0  # e^-36 is rounding
CELLS = 16  # of one unit of an exponent
TABLE = np.exp(-np.arange(int(FAR) * CELLS + 1) / CELLS)
SUMS = {"nnan", "nsz", "contract", "reassoc", "arcp"}  # sums in vectors


@inner
def _window(at: Any, x: Any, axis: int, reach: float) -> Any:
    """From where to where rows are within reach along the sorted column."""
    low, high = np.searchsorted(x[axis], at[axis] - reach), len(x[axis])
    first = low
    while low < high:
        mid = (low + high) // 2
        if x[axis, mid] <= at[axis] + reach:
            low = mid + 1
        else:
            high = mid
    return first, low


@inner(fastmath=SUMS)
def _weights(at: Any, x: Any, weight: Any, first: int, last: int, sigma: float, w: Any) -> None:
    """Weights of the rows from first to last, by a table and eight terms of a series."""
    d = len(x)
    half = 0.5 / (sigma * sigma)
    for i in range(first, last):
        gap = x[0, i] - at[0]
        w[i] = gap * gap
    for j in range(1, d):
        for i in range(first, last):
            gap = x[j, i] - at[j]
            w[i] += gap * gap
    for i in range(first, last):
        u = min(w[i] * half, FAR)
        k = int(u * CELLS)
        r = k * (1.0 / CELLS) - u
        series = 1 + r * (1 + r * (1 / 2 + r * (1 / 6 + r * (1 / 24 + r * (
            1 / 120 + r * (1 / 720 + r * (1 / 5040)))))))  # fmt: skip
        w[i] = TABLE[k] * series * weight[i]


@inner(fastmath=SUMS)
def _square(x: Any, at: float, w: Any, first: int, last: int) -> float:
    total = 0.0
    for i in range(first, last):
        gap = x[i] - at
        total += w[i] * gap * gap
    return total


@inner(fastmath=SUMS)
def _pull(x: Any, at: float, w: Any, r: Any, first: int, last: int) -> Any:
    """Sums of wg and of wrg."""
    plain, turned = 0.0, 0.0
    for i in range(first, last):
        pull = w[i] * (x[i] - at)
        plain += pull
        turned += pull * r[i]
    return plain, turned


@inner(fastmath=SUMS)
def _far(at: Any, x: Any, c: Any, first: int, last: int, r: Any) -> None:
    """The sums of cg² of the rows."""
    for i in range(first, last):
        gap = x[0, i] - at[0]
        r[i] = c[0] * gap * gap
    for j in range(1, len(x)):
        for i in range(first, last):
            gap = x[j, i] - at[j]
            r[i] += c[j] * gap * gap


@outer
def slopes(
    at: Any, v: Any, x: Any, weight: Any, axis: int, sigma: float, rho: float, raised: bool,
    s: Any, slope: Any,
) -> None:  # fmt: skip
    r"""Variances s and the slopes of :math:`\sum_jv_j^2/s_j` in the place, ``(q, d)`` both.

    With ``raised`` the rows v are momenta, which become velocities :math:`v_js_j` first.
    """
    q, d = at.shape
    w, r, c = np.empty(len(weight)), np.empty(len(weight)), np.empty(d)
    for k in range(q):
        first, last = _window(at[k], x, axis, np.sqrt(2 * FAR) * sigma)
        _weights(at[k], x, weight, first, last, sigma, w)
        for j in range(d):
            s[k, j] = rho + _square(x[j], at[k, j], w, first, last)
            c[j] = v[k, j] * v[k, j]
            if not raised:
                c[j] /= s[k, j] * s[k, j]
        _far(at[k], x, c, first, last, r)
        for j in range(d):
            plain, turned = _pull(x[j], at[k, j], w, r, first, last)
            slope[k, j] = 2 * c[j] * plain - turned / (sigma * sigma)


@outer
def curvatures(
    at: Any, v: Any, x: Any, weight: Any, axis: int, sigma: float, rho: float, s: Any, D: Any,
    Q: Any,
) -> None:  # fmt: skip
    r"""Variances s ``(q, d)``, :math:`D_{kj} = \partial_ks_j` and the second derivatives of
    :math:`\sum_jv_j^2/s_j` in the place, ``(q, d, d)`` both."""
    q, d = at.shape
    w, r, c = np.empty(len(weight)), np.empty(len(weight)), np.empty(d)
    gap = np.empty(d)
    one = 1 / (sigma * sigma)
    for k in range(q):
        first, last = _window(at[k], x, axis, np.sqrt(2 * FAR) * sigma)
        _weights(at[k], x, weight, first, last, sigma, w)
        for j in range(d):
            s[k, j] = rho + _square(x[j], at[k, j], w, first, last)
            c[j] = (v[k, j] / s[k, j]) ** 2
        _far(at[k], x, c, first, last, r)
        D[k] = 0.0
        Q[k] = 0.0
        for i in range(first, last):
            for j in range(d):
                gap[j] = x[j, i] - at[k, j]
            for a in range(d):
                for b in range(d):
                    D[k, a, b] += w[i] * one * gap[a] * gap[b] * gap[b]
                    second = gap[a] * gap[b] * one * (r[i] * one - 2 * (c[a] + c[b]))
                    if a == b:
                        second += 2 * c[a] - r[i] * one
                    Q[k, a, b] -= w[i] * second
                D[k, a, a] -= 2 * w[i] * gap[a]
        for a in range(d):
            for b in range(d):
                total = 0.0
                for j in range(d):
                    total += c[j] / s[k, j] * D[k, a, j] * D[k, b, j]
                Q[k, a, b] += 2 * total
