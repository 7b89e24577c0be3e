r"""Importance weights: effective size, Pareto tail index and Pareto smoothing.

The largest weights are fitted by a generalised Pareto distribution with shape :math:`\hat k`; the
mean of the weights has finite variance when :math:`k < \tfrac12`, and estimates can be trusted up
to about .7 (Vehtari, Simpson, Gelman, Yao and Gabry 2024).
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Array = NDArray[np.float64]


def weight_ess(log_weight: Tensor, dim: int = 0) -> Tensor:
    r""":math:`(\sum w)^2/\sum w^2`, between 1 and n.

    >>> float(weight_ess(torch.zeros(10)).round())
    10.0
    """
    return (2 * log_weight.logsumexp(dim) - (2 * log_weight).logsumexp(dim)).exp()


def pareto_k(log_weight: Tensor) -> Tensor:
    r"""Tail index :math:`\hat k` of the weights ``(n, *rest)``, ``(*rest)``; above .7 do not trust.

    ``inf`` with fewer than five weights in the tail; ``-inf`` when all weights are equal, in which
    case nothing is uncertain.

    >>> g = torch.Generator().manual_seed(0)
    >>> bool(pareto_k(torch.randn(2000, generator=g)) < 0.7)
    True
    >>> bool(pareto_k(4 * torch.randn(2000, generator=g)) > 0.7)
    True
    """
    return smooth(log_weight)[1]


def smooth(log_weight: Tensor) -> tuple[Tensor, Tensor]:
    r"""Pareto-smoothed log weights and :math:`\hat k`.

    The tail is replaced by the expected order statistics of its fit, cut at the largest raw weight.

    Parameters
    ----------
    log_weight : ``(n, *rest)``, any constant added

    Returns
    -------
    normalised smoothed log weights ``(n, *rest)`` (they sum to one along the first axis) and the
    tail index ``(*rest)``
    """
    flat = log_weight.detach().cpu().double().numpy().reshape(len(log_weight), -1)
    out, ks = np.empty_like(flat), np.empty(flat.shape[1])
    for j in range(flat.shape[1]):
        out[:, j], ks[j] = _smooth_one(flat[:, j])
    shape = log_weight.shape
    smoothed, k = torch.from_numpy(out).reshape(shape), torch.from_numpy(ks).reshape(shape[1:])
    return smoothed.to(log_weight), k.to(log_weight)


def _smooth_one(log_weight: Array) -> tuple[Array, float]:
    x = log_weight - log_weight.max()
    n = len(x)
    if x.min() == 0.0:
        return x - math.log(n), -math.inf
    tail = math.ceil(min(n / 5, 3 * math.sqrt(n)))
    cut = max(np.sort(x)[-tail - 1] if tail < n else -math.inf, math.log(np.finfo(float).tiny))
    (index,) = np.where(x > cut)
    k = math.inf
    if len(index) > 4:
        order = index[np.argsort(x[index], kind="stable")]
        excess = np.exp(x[order]) - math.exp(cut)
        if excess[0] <= 0:  # weights that differ by rounding alone have no tail
            return x - np.logaddexp.reduce(x), -math.inf
        k, sigma = pareto_fit(excess)
        if math.isfinite(k) and sigma > 0:
            at = np.arange(0.5, len(order)) / len(order)
            x[order] = np.minimum(np.log(_quantile(at, k, sigma) + math.exp(cut)), 0.0)
    return x - np.logaddexp.reduce(x), k


def pareto_fit(x: Array) -> tuple[float, float]:
    """Shape and scale of a generalised Pareto distribution, ``x`` ascending (Zhang and Stephens 2009)."""
    n = len(x)
    m = 30 + int(math.sqrt(n))
    b = 1 - np.sqrt(m / (np.arange(1, m + 1) - 0.5))
    b = b / (3 * x[int(n / 4 + 0.5) - 1]) + 1 / x[-1]
    k = np.log1p(-b[:, None] * x).mean(1)
    with np.errstate(invalid="ignore", divide="ignore"):
        profile = n * (np.log(-(b / k)) - k - 1)
    weight = np.exp(profile - profile.max())
    weight /= weight.sum()
    weight[weight < 10 * np.finfo(float).eps] = 0.0
    mean = float((b * weight).sum() / weight.sum())
    shape = float(np.log1p(-mean * x).mean())
    sigma = -shape / mean
    return (n * shape + 5.0) / (n + 10), sigma  # a weak prior around one half


def _quantile(p: Array, k: float, sigma: float) -> Array:
    if abs(k) < np.finfo(float).eps:
        flat: Array = -sigma * np.log1p(-p)
        return flat
    value: Array = sigma * np.expm1(-k * np.log1p(-p)) / k
    return value
