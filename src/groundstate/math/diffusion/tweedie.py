r"""Tweedie's formula: the mean of what was there before the noise, from the score after it."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from groundstate.errors import ShapeError
from groundstate.math.arrays import takes_arrays


@takes_arrays("x", "score", "var")
def tweedie(x: Any, score: Any, var: Any, alpha_bar: float = 1.0) -> Tensor:
    r""":math:`E[x_0 \mid x] = (x + \Sigma\,\nabla\log p(x))/\sqrt{\bar\alpha}` for
    :math:`x = \sqrt{\bar\alpha}\,x_0 + N(0, \Sigma)`, with the score of the noisy x.

    Parameters
    ----------
    x : noisy rows ``(B, ...)``
    score : :math:`\nabla\log p` at x
    var : variance of the noise: a number, one for each row ``(B,)`` or entry, or a matrix ``(d, d)`` for
        rows ``(B, d)``
    alpha_bar : share of the signal; of a diffusion ``var`` is :math:`1 - \bar\alpha`

    Examples
    --------
    Rows of N(0, 1) with unit noise are N(0, 2), whose score at 2 is −1:

    >>> tweedie([[2.0]], [[-1.0]], 1.0)
    array([[1.]])
    """
    if x.shape != score.shape:
        raise ShapeError(
            f"a score has the shape of its rows, got {tuple(score.shape)} for {tuple(x.shape)}"
        )
    if not 0 < alpha_bar <= 1:
        raise ValueError(f"alpha_bar is a share in (0, 1], got {alpha_bar}")
    matrix = var.ndim == 2 and x.ndim == 2 and var.shape == (x.shape[1], x.shape[1])
    if matrix and var.shape != x.shape:
        step = score @ var.T
    else:
        rows = var.reshape(-1, *(1,) * (x.ndim - 1)) if var.ndim == 1 and x.ndim > 1 else var
        step = rows * score
    return (x + step) / math.sqrt(alpha_bar)


@takes_arrays("x", "weights", "means", "variances")
def smoothed_score(x: Any, weights: Any, means: Any, variances: Any, sigma: float = 0.0) -> Tensor:
    r"""Score of a mixture of isotropic Gaussians after noise of level σ,
    :math:`\nabla\log\sum_k\pi_k N(x; \mu_k, (v_k + \sigma^2)I)`, ``(B, d)``.

    Parameters
    ----------
    x : rows ``(B, d)``
    weights : :math:`\pi`, ``(K,)``
    means : ``(K, d)``
    variances : v, ``(K,)``
    sigma : noise level

    Examples
    --------
    >>> smoothed_score([[2.0]], [1.0], [[0.0]], [1.0], 1.0)  # −x/(1 + σ²)
    array([[-1.]])
    """
    if means.ndim != 2 or means.shape[1] != x.shape[-1] or len(weights) != len(means):
        raise ShapeError(
            f"K weights and means of shape (K, {x.shape[-1]}) are needed, got {tuple(weights.shape)} and "
            f"{tuple(means.shape)}"
        )
    v = variances + sigma**2  # (K,)
    gap = means - x[..., None, :]  # (B, K, d)
    log = weights.log() - 0.5 * gap.square().sum(-1) / v - 0.5 * x.shape[-1] * v.log()
    share = torch.softmax(log, -1) / v
    return (share[..., None] * gap).sum(-2)
