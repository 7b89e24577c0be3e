r"""Expected improvement: how much lower than the best risk so far a setting is expected to be."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, log_ndtr, ndtr

Floats = NDArray[np.float64]

_HALF_LOG_TAU = 0.5 * math.log(2.0 * math.pi)
_ROOT_HALF_PI = math.sqrt(math.pi / 2.0)
_FAR = -1e7  # below it 1 - |z| * Mills(z) is 1/z^2 to the last digit


def expected_improvement(mean: Any, std: Any, best: float) -> Floats:
    r"""Expected improvement of a Gaussian risk:

    .. math::
        \mathrm{EI} = \mathbb E\max(0, r_{\mathrm{best}} - r)
        = (r_{\mathrm{best}} - m)\,\Phi(z) + s\,\varphi(z), \qquad
        z = \frac{r_{\mathrm{best}} - m}{s} .

    A standard deviation of zero gives :math:`\max(0, r_{\mathrm{best}} - m)`.

    Parameters
    ----------
    mean, std : (...) arrays or numbers
        Predicted risk m and its standard deviation s.
    best : lowest risk so far

    Returns
    -------
    (...) array, never negative

    Examples
    --------
    >>> round(float(expected_improvement(0.5, 0.2, 0.4)), 7)
    0.0395593
    >>> float(expected_improvement(0.3, 0.0, 0.4).round(6))
    0.1
    """
    m, s = np.broadcast_arrays(np.asarray(mean, np.float64), np.asarray(std, np.float64))
    gap = best - m
    safe = np.where(s > 0, s, 1.0)
    z = gap / safe
    density = np.exp(-0.5 * np.square(z) - _HALF_LOG_TAU)
    smooth = np.maximum(gap * ndtr(z) + safe * density, 0.0)
    return np.where(s > 0, smooth, np.maximum(gap, 0.0))


def log_expected_improvement(mean: Any, std: Any, best: float) -> Floats:
    r"""Logarithm of :func:`expected_improvement`, exact where EI itself underflows.

    .. math:: \log\mathrm{EI} = \log s + \log h(z), \qquad h(z) = \varphi(z) + z\,\Phi(z) .

    Examples
    --------
    >>> round(float(log_expected_improvement(0.5, 0.2, 0.4)), 6)
    -3.229954
    >>> round(float(log_expected_improvement(10.0, 0.1, 0.0)), 2)  # EI is 1e-2178
    -5012.43
    """
    m, s = np.broadcast_arrays(np.asarray(mean, np.float64), np.asarray(std, np.float64))
    with np.errstate(divide="ignore", invalid="ignore"):
        smooth = np.log(s) + log_h((best - m) / s)
        return np.where(s > 0, smooth, np.log(np.maximum(best - m, 0.0)))


def sampled_improvement(draws: Any, best: float) -> Floats:
    r"""Expected improvement as a mean over draws or ensemble members.

    .. math:: \mathrm{EI} \approx \frac1M \sum_{j=1}^M \max(0, r_{\mathrm{best}} - r_j)

    Parameters
    ----------
    draws : (M, ...) array of risks
    best : lowest risk so far

    Examples
    --------
    >>> sampled_improvement([[0.3, 1.0], [0.5, 2.0]], best=0.4).round(6).tolist()
    [0.05, 0.0]
    """
    return np.maximum(best - np.asarray(draws, np.float64), 0.0).mean(0)


def log_h(z: Any) -> Floats:
    r"""Logarithm of :math:`h(z) = \varphi(z) + z\Phi(z)`, by Mills' ratio in the lower tail."""
    z = np.asarray(z, np.float64)
    upper = np.maximum(z, -1.0)
    near = np.log(np.exp(-0.5 * upper * upper - _HALF_LOG_TAU) + upper * ndtr(upper))
    lower = np.clip(z, _FAR, -1.0)
    rest = 1.0 + lower * _ROOT_HALF_PI * erfcx(-lower / math.sqrt(2.0))  # 1/z^2 far out
    series = 1.0 / np.square(lower)
    rest = np.where(lower < -300.0, series * (1.0 - 3.0 * series), rest)
    far = -0.5 * np.square(z) - _HALF_LOG_TAU + np.log(rest)
    return np.where(z > -1.0, near, far)


def improvement_slopes(z: Floats, logs: Floats) -> tuple[Floats, Floats]:
    r""":math:`\Phi(z)/h(z)` and :math:`\varphi(z)/h(z)`, the slopes of log EI in −m and s."""
    return np.exp(log_ndtr(z) - logs), np.exp(-0.5 * z * z - _HALF_LOG_TAU - logs)
