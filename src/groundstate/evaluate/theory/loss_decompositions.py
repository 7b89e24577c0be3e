r"""Expected losses as noise, bias and variance, for squared, 0-1, log and Bregman losses.

Averages run over fits (training sets, seeds) and over outcomes y at each x.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from groundstate.errors import DataError

Floats = NDArray[np.float64]


class Parts(NamedTuple):
    """Parts of the expected loss at each x, ``(m,)`` each; they sum to ``total``."""

    total: Floats
    bias: Floats
    variance: Floats
    noise: Floats


class Domingos(NamedTuple):
    r"""Domingos' parts of the 0-1 loss at each x, ``(m,)`` each.

    ``total`` = ``noise_factor * noise + bias + net_variance``; the net variance is minus the
    variance where the main prediction is wrong, since there disagreement helps.
    """

    total: Floats
    bias: Floats
    variance: Floats
    net_variance: Floats
    noise: Floats
    noise_factor: Floats


def squared_parts(predictions: Any, truth: Any, noise: Any = 0.0) -> Parts:
    r""":math:`E(y-\hat f)^2 = (\bar f - f)^2 + \mathrm{Var}\hat f + \sigma^2`.

    Parameters
    ----------
    predictions : ``(D, m)`` of D fits
    truth : ``(m,)`` expected outcome f
    noise : ``(m,)`` or number, variance of y

    Examples
    --------
    >>> y = np.array([0.0, 2.0])
    >>> parts = squared_parts([[1.0], [2.0], [6.0]], [y.mean()], y.var())
    >>> [round(float(v[0]), 6) for v in parts]
    [9.666667, 4.0, 4.666667, 1.0]
    """
    f = _matrix(predictions)
    truth, noise = (np.broadcast_to(np.asarray(v, np.float64), f.shape[1:]) for v in (truth, noise))
    mean = f.mean(0)
    bias, variance = np.square(mean - truth), np.square(f - mean).mean(0)
    return Parts(bias + variance + noise, bias, variance, noise.copy())


def zero_one_parts(p: Any, q: Any) -> Parts:
    r"""The 0-1 loss as squared loss of one-hot labels, halved.

    .. math:: 1 - \sum_k p_k q_k = \tfrac12\sum_k\bigl[p_k(1-p_k) + q_k(1-q_k) + (p_k-q_k)^2\bigr]

    For labels ±1 these are 4p(1 − p), 4q(1 − q) and 4(p − q)², over 4.

    Parameters
    ----------
    p : ``(m, K)`` or ``(m,)`` chances of the labels (of the second of two)
    q : the same for predicted labels, over fits

    Examples
    --------
    >>> parts = zero_one_parts([0.9], [0.8])
    >>> [round(float(v[0]), 6) for v in parts]
    [0.26, 0.01, 0.16, 0.09]
    """
    p, q = _chances(p), _chances(q)
    noise, variance = (p * (1 - p)).sum(1) / 2, (q * (1 - q)).sum(1) / 2
    bias = np.square(p - q).sum(1) / 2
    return Parts(noise + variance + bias, bias, variance, noise)


def domingos_parts(p: Any, q: Any) -> Domingos:
    """The 0-1 loss around the main prediction, the label that most fits give.

    Parameters
    ----------
    p, q : as in :func:`zero_one_parts`

    Examples
    --------
    >>> parts = domingos_parts([0.7], [0.3])
    >>> float(parts.bias[0]), round(float(parts.total[0]), 6)
    (1.0, 0.58)
    """
    p, q = _chances(p), _chances(q)
    rows = np.arange(len(p))
    best, main = p.argmax(1), q.argmax(1)
    bias = (best != main).astype(np.float64)
    variance, noise = 1 - q[rows, main], 1 - p[rows, best]
    total = 1 - (p * q).sum(1)
    # the factor of the noise: chance that a fit says y* minus chance that it says what y is else
    right = q[rows, best]
    left = np.where(noise > 0, total - (1 - right), 0.0)
    factor = np.divide(left, noise, out=np.zeros_like(left), where=noise > 0)
    # without noise the loss is 1 − right: bias plus net variance
    net = (1 - right) - bias
    return Domingos(total, bias, variance, net, noise, factor)


def log_parts(p: Any, q: Any) -> Parts:
    r"""The log loss: :math:`E\,\mathrm{KL}(p,\hat q) = \mathrm{KL}(p, q_g) + E\,\mathrm{KL}(q_g,\hat q)`
    around the normalised geometric mean :math:`q_g`, and the entropy of p as noise.

    Parameters
    ----------
    p : ``(m, K)`` or ``(m,)`` chances of the labels
    q : ``(D, m, K)`` or ``(D, m)`` of D fits

    Examples
    --------
    >>> parts = log_parts([[0.7, 0.3]], [[[0.6, 0.4]], [[0.9, 0.1]]])
    >>> [round(float(v[0]), 6) for v in (parts.total - parts.noise, parts.bias, parts.variance)]
    [0.087632, 0.02026, 0.067372]
    """
    p = _chances(p)
    q = np.asarray(q, np.float64)
    q = np.stack([1 - q, q], -1) if q.ndim == 2 else q
    found = bregman_parts(p, q, _kl, geometric_mean)
    noise = -(p * np.log(np.where(p > 0, p, 1.0))).sum(1)
    return Parts(found.total + noise, found.bias, found.variance, noise)


def bregman_parts(
    p: Any,
    q: Any,
    divergence: Callable[[Any, Any], Any],
    dual_mean: Callable[[Any], Any],
) -> Parts:
    r"""Any Bregman loss: :math:`E D(p,\hat q) = D(p, q^\circ) + E D(q^\circ,\hat q)` around the
    dual mean :math:`q^\circ = (\nabla\phi)^{-1} E\nabla\phi(\hat q)`. The noise is left out (0).

    Parameters
    ----------
    p : ``(m, ...)`` truth
    q : ``(D, m, ...)`` of D fits
    divergence : ``divergence(p, q) -> (..., m)``
    dual_mean : ``dual_mean(q)``, over the first axis

    Examples
    --------
    >>> square = lambda a, b: np.square(a - b)
    >>> parts = bregman_parts(np.array([1.0]), np.array([[0.0], [4.0]]), square, lambda q: q.mean(0))
    >>> [float(v[0]) for v in parts]
    [5.0, 1.0, 4.0, 0.0]
    """
    middle = dual_mean(q)
    bias = np.asarray(divergence(p, middle), np.float64)
    variance = np.asarray(divergence(middle, q), np.float64).mean(0)
    return Parts(bias + variance, bias, variance, np.zeros_like(bias))


def geometric_mean(q: Any) -> Floats:
    """Normalised geometric mean over the first axis.  # (D, m, K) -> (m, K)"""
    logs = np.log(np.maximum(np.asarray(q, np.float64), np.finfo(np.float64).tiny)).mean(0)
    raw = np.exp(logs - logs.max(-1, keepdims=True))
    return np.asarray(raw / raw.sum(-1, keepdims=True))


def _kl(p: Any, q: Any) -> Floats:
    tiny = np.finfo(np.float64).tiny
    p, q = np.asarray(p, np.float64), np.maximum(np.asarray(q, np.float64), tiny)
    return np.asarray(
        (p * (np.log(np.where(p > 0, p, 1.0)) - np.where(p > 0, np.log(q), 0))).sum(-1)
    )


def _chances(p: Any) -> Floats:
    table = np.asarray(p, np.float64)
    table = np.stack([1 - table, table], -1) if table.ndim == 1 else table
    if table.ndim != 2 or (table < -1e-9).any() or np.abs(table.sum(1) - 1).max(initial=0) > 1e-6:
        raise DataError("chances are numbers (m,) in [0, 1] or rows (m, K) that sum to 1")
    return table


def _matrix(predictions: Any) -> Floats:
    f = np.asarray(predictions, np.float64)
    if f.ndim != 2 or not len(f):
        raise DataError(f"predictions have one row per fit, (D, m), got {f.shape}")
    return f
