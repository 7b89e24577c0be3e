r"""One pass over the rows for a generalised linear model, compiled.

For each row: the loss :math:`d(y, \mu)/2` up to a constant of y, its slope
:math:`g = -(y-\mu)\mu'/V(\mu)` in the score η, and the curvature h: the observed one where it is
never negative, else the expected one, :math:`\mu'^2/V(\mu)`, or where that is far too small for y
above μ the larger of both.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

FARTHEST = 230.0  # scores of the log beyond this give means whose variance overflows

_jit = njit(cache=True, nogil=True, error_model="numpy")


@_jit
def _mean(link: int, k: float, eta: float) -> tuple[float, float]:
    """μ and dμ/dη; numbers of the links as in ``groundstate.math.distributions.links``."""
    if link == 0:
        return eta, 1.0
    if link == 1:
        mu = math.exp(eta)
        return mu, mu
    if link == 2:
        z = math.exp(-abs(eta))
        small = z / (1.0 + z)
        mu = 1.0 - small if eta > 0 else small
        return mu, small / (1.0 + z)
    if link == 3:
        return 0.5 * math.erfc(-eta / math.sqrt(2.0)), math.exp(-0.5 * eta * eta) / math.sqrt(
            2.0 * math.pi
        )
    if link == 4:
        z = math.exp(min(eta, 700.0))
        return -math.expm1(-z), math.exp(min(eta, 700.0) - z)
    if link == 5:
        return 1.0 / eta, -1.0 / (eta * eta)
    mu = eta ** (-1.0 / k)
    return mu, -mu / (k * eta)


@_jit
def _loss(family: int, parameter: float, y: float, mu: float) -> tuple[float, float]:
    """Half the deviance up to a constant of y, and V(μ); families as in ``math.families``."""
    if family == 0:
        return 0.5 * (y - mu) * (y - mu), 1.0
    if family == 4:
        mu = min(max(mu, 1e-300), 1.0 - 1e-16)
        value = -(1.0 - y) * math.log1p(-mu)
        if y > 0:
            value -= y * math.log(mu)
        return value, mu * (1.0 - mu)
    if not mu > 0:
        return math.inf, 1.0
    if family == 1:
        return mu - (y * math.log(mu) if y > 0 else 0.0), mu
    if family == 2:
        return y / mu + math.log(mu), mu * mu
    if family == 3:
        return 0.5 * y / (mu * mu) - 1.0 / mu, mu * mu * mu
    if family == 5:
        a = parameter
        value = (y + 1.0 / a) * math.log1p(a * mu) - (y * math.log(mu) if y > 0 else 0.0)
        return value, mu + a * mu * mu
    p = parameter
    return mu ** (2.0 - p) / (2.0 - p) - y * mu ** (1.0 - p) / (1.0 - p), mu**p


@_jit
def _observed(family: int, parameter: float, y: float, mu: float, expected: float) -> float:
    """The curvature for the log link, where it cannot be negative, or the larger of both."""
    if family == 2:
        return y / mu
    if family == 3 or (family == 6 and parameter > 2.0):
        # far below y the expected one promises steps of y/μ, which leap over the minimum
        p = 3.0 if family == 3 else parameter
        return expected + (p - 1.0) * mu ** (1.0 - p) * max(y - mu, 0.0)
    if family == 5:
        a = parameter
        return mu * (1.0 + a * y) / ((1.0 + a * mu) * (1.0 + a * mu))
    if family == 6 and 1.0 < parameter < 2.0:
        p = parameter
        return (2.0 - p) * mu ** (2.0 - p) + (p - 1.0) * y * mu ** (1.0 - p)
    return expected


@_jit
def pointwise(
    family: int, parameter: float, link: int, k: float,
    eta: Any, y: Any, w: Any, g: Any, h: Any,
) -> float:  # fmt: skip
    """Fill slopes and curvatures, times the weights; the summed loss, inf where μ is impossible."""
    weighted = len(w) > 0
    total = 0.0
    for i in range(len(eta)):
        weight = w[i] if weighted else 1.0
        if weight == 0.0:
            g[i] = 0.0
            h[i] = 0.0
            continue
        if family == 1 and link == 1:
            mu = math.exp(eta[i])
            total += weight * (mu - y[i] * eta[i])
            g[i] = weight * (mu - y[i])
            h[i] = weight * mu
            continue
        if family == 4 and link == 2:
            z = math.exp(-abs(eta[i]))
            small = z / (1.0 + z)
            mu = 1.0 - small if eta[i] > 0 else small
            total += weight * (max(eta[i], 0.0) - y[i] * eta[i] + math.log1p(z))
            g[i] = weight * (mu - y[i])
            h[i] = weight * small / (1.0 + z)
            continue
        if link == 1 and abs(eta[i]) > FARTHEST:
            return math.inf
        mu, slope = _mean(link, k, eta[i])
        value, variance = _loss(family, parameter, y[i], mu)
        total += weight * value
        g[i] = -weight * (y[i] - mu) * slope / variance
        curvature = slope * slope / variance
        if link == 1:
            curvature = _observed(family, parameter, y[i], mu, curvature)
        h[i] = weight * curvature
    return total if total == total else math.inf


@_jit
def sparse_gram(indptr: Any, indices: Any, data: Any, h: Any, out: Any) -> None:
    """Lower triangle of Xᵀ diag(h) X for rows in CSR form with sorted columns."""
    for i in range(len(indptr) - 1):
        for a in range(indptr[i], indptr[i + 1]):
            left = h[i] * data[a]
            row = indices[a]
            for b in range(indptr[i], a + 1):
                out[row, indices[b]] += left * data[b]


@_jit
def scaled_block(x: Any, h: Any, out: Any) -> None:
    """Rows times √h with √h itself in the last column."""
    for i in range(len(x)):
        s = np.sqrt(h[i])
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] * s
        out[i, x.shape[1]] = s


__all__ = ["pointwise", "scaled_block", "sparse_gram"]
