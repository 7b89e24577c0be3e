r"""Softmax regression: value, gradient, Hessian and Hessian times a direction, for all its solvers.

With scores :math:`s = W\tilde x` and :math:`p = \mathrm{softmax}(s)`,

.. math::
    J = \sum_i w_i[\log\textstyle\sum_k e^{s_{ik}} - s_{iy_i}] + \tfrac\lambda2\|W\|^2,\quad
    \nabla J = \sum_i w_i(p_i - 1_{y_i})\tilde x_i^\top + \lambda W,\quad
    H = \sum_i w_i(\mathrm{diag}\,p_i - p_ip_i^\top)\otimes\tilde x_i\tilde x_i^\top + \lambda .

Two classes are one score :math:`s = (W_1 - W_0)\tilde x` and :math:`p = \sigma(s)`. Scores are laid
out class by class, ``(..., R, n)``, R = 1 for two classes, so that every operation runs along the
rows; arrays are NumPy's on the CPU, where a small problem is all call overhead, and torch's elsewhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor


def xp_of(values: Any) -> Any:
    return torch if isinstance(values, Tensor) else np


def losses(s: Any, y: Any) -> Any:
    """log Σ e^s − s_y of every row, ``(n,)``."""
    xp = xp_of(s)
    if len(s) == 1:
        s = s[0]
        return xp.log1p(xp.exp(-abs(s))) + (xp.maximum(s, s * 0.0) - y * s)
    top = xp.amax(s, 0)
    return xp.log(xp.exp(s - top).sum(0)) + top - s[y, places(y)]


def probabilities(s: Any) -> Any:
    """p of every class, ``(..., R, n)``; of two classes the second's."""
    xp = xp_of(s)
    if s.shape[-2] == 1:
        return 0.5 + 0.5 * xp.tanh(0.5 * s)
    p = xp.exp(s - xp.amax(s, -2)[..., None, :])
    return p / p.sum(-2)[..., None, :]


def minus_target(p: Any, y: Any) -> Any:
    """p − 1_y, in the place of p."""
    if p.shape[-2] == 1:
        p -= y
    else:
        p[..., y, places(y)] -= 1.0
    return p


def places(y: Any) -> Any:
    return torch.arange(len(y), device=y.device) if isinstance(y, Tensor) else np.arange(len(y))


def both(s: Any, y: Any) -> tuple[Any, Any]:
    """``losses`` and p − 1_y from one exponential."""
    xp = xp_of(s)
    if len(s) == 1:
        s = s[0]
        e = xp.exp(-abs(s))
        loss = xp.log1p(e) + (xp.maximum(s, s * 0.0) - y * s)
        up = xp.where(s >= 0, e * 0.0 + 1.0, e)
        return loss, (up / (1.0 + e) - y)[None]
    s = s - xp.amax(s, 0)
    p = xp.exp(s)
    size = p.sum(0)
    return xp.log(size) - s[y, places(y)], minus_target(p / size, y)


def members_slope(s: Any, y: Any) -> Any:
    """p − 1_y of many members ``(M, R, n)``, in the place of their scores.

    Of two classes it is 2(p − y), from half the scores and 1 − 2y: fewer passes over them.
    """
    if s.shape[1] == 1:
        np.tanh(s, out=s)
        s += y
        return s
    s -= s.max(1, keepdims=True)
    np.exp(s, out=s)
    s *= (1.0 / s.sum(1))[:, None]
    return minus_target(s, y)


def hessian(x: Any, p: Any, w: Any = None) -> Any:
    """Σ w (diag p − ppᵀ) ⊗ xxᵀ of rows ``(n, D)``, ``(RD, RD)``."""
    (r, n), d = p.shape, x.shape[1]
    if r == 1:
        h = p[0] * (1.0 - p[0])
        root = x * ((h if w is None else h * w) ** 0.5)[:, None]
        return root.T @ root
    each = None if w is None else w**0.5
    joint = (p.T[:, :, None] * x[:, None, :]).reshape(n, r * d)
    joint = joint if each is None else joint * each[:, None]
    out = -(joint.T @ joint)
    for k in range(r):
        block = slice(k * d, (k + 1) * d)
        root = x * (p[k] ** 0.5 if each is None else p[k] ** 0.5 * each)[:, None]
        out[block, block] += root.T @ root
    return out


def pin(matrix: Any, free: Any, r: int) -> Any:
    """Give the null directions (all classes shifted alike, in the ``free`` columns) curvature."""
    d = len(matrix) // r
    scale = max(float(matrix.reshape(-1)[:: r * d + 1].mean()), 1e-12) / r
    blocks = matrix.reshape(r, d, r, d)
    for j in free:
        blocks[:, j, :, j] += scale
    return matrix
