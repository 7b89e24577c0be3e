r"""The table of losses, compiled: loss, slope and curvature of one score, and of many in one pass.

Codes below 10 are families of ``math.distributions`` with a link (half the deviance up to a constant
of y), the others the losses of ``math.losses`` that have no mean.
"""

from __future__ import annotations

import math
from typing import Any

from groundstate.compute.kernels.compile_numba import inner, outer

FARTHEST = 230.0  # scores of the log beyond this give means whose variance overflows


@inner
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


@inner
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


@inner
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


@inner
def _shape(code: int, parameter: float, eta: float, y: float) -> tuple[float, float, float]:
    """Losses of a residual or of a margin: value, slope, curvature."""
    if code < 15:
        r = eta - y
        side = 1.0 if r > 0 else -1.0 if r < 0 else 0.0
        size = abs(r)
        if code == 10:
            return size, side, 0.0
        if code == 11:
            return (
                (1.0 - parameter) * r if r > 0 else -parameter * r,
                (1.0 - parameter if r > 0 else -parameter),
                0.0,
            )
        if code == 12:
            if size <= parameter:
                return 0.5 * r * r, r, 1.0
            return parameter * (size - 0.5 * parameter), parameter * side, 0.0
        far = max(size - parameter, 0.0)
        if code == 13:
            return far, side if far > 0 else 0.0, 0.0
        return far * far, 2.0 * side * far, 2.0 if far > 0 else 0.0
    s = 2.0 * y - 1.0
    z = s * eta
    if code == 15:
        return max(parameter - z, 0.0), -s if z <= parameter else 0.0, 0.0
    if code == 18:
        value = math.exp(-z)
        return value, -s * value, value
    if code == 17 and z < -1.0:
        return -4.0 * z, -4.0 * s, 0.0
    far = max((parameter if code == 16 else 1.0) - z, 0.0)
    return far * far, -2.0 * s * far, 2.0 if far > 0 else 0.0


@inner(forceinline=True)
def point(
    code: int, parameter: float, link: int, k: float, eta: float, y: float
) -> tuple[float, float, float]:
    """Loss, slope and curvature of one score; an infinite loss where the mean is impossible."""
    if code >= 10:
        return _shape(code, parameter, eta, y)
    if code == 1 and link == 1:
        mu = math.exp(eta)
        return mu - y * eta, mu - y, mu
    if code == 4 and link == 2:
        z = math.exp(-abs(eta))
        small = z / (1.0 + z)
        mu = 1.0 - small if eta > 0 else small
        return max(eta, 0.0) - y * eta + math.log1p(z), mu - y, small / (1.0 + z)
    if link == 1 and abs(eta) > FARTHEST:
        return math.inf, 0.0, 0.0
    mu, slope = _mean(link, k, eta)
    value, variance = _loss(code, parameter, y, mu)
    curvature = slope * slope / variance
    if link == 1:
        curvature = _observed(code, parameter, y, mu, curvature)
    return value, -(y - mu) * slope / variance, curvature


@outer
def pointwise(
    code: int, parameter: float, link: int, k: float,
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
        value, slope, curvature = point(code, parameter, link, k, eta[i], y[i])
        if value == math.inf:
            return math.inf
        total += weight * value
        g[i] = weight * slope
        h[i] = weight * curvature
    return total if total == total else math.inf
