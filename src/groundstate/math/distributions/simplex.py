r"""Maps from energies to the simplex, as regularised minima of the mean energy.

.. math:: p = \arg\min_{p\in\Delta}\; p^\top e/T - H_\alpha(p),\qquad
    H_\alpha(p) = \frac{1}{\alpha(\alpha-1)}\sum_k (p_k - p_k^\alpha),\quad H_1 = -\sum p\log p

``alpha=1`` is softmax(−e/T), ``alpha=2`` sparsemax (the Euclidean projection of −e/T), values in
between interpolate and give exact zeros for every alpha > 1. Score = logit = −e throughout.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor


def softmax(e: Tensor, T: float = 1.0, dim: int = -1) -> Tensor:
    """``softmax(-e/T)``: the Boltzmann distribution of energies; ``+inf`` gets probability 0."""
    return torch.softmax(_scores(e, T), dim)


def sparsemax(e: Tensor, T: float = 1.0, dim: int = -1) -> Tensor:
    r"""The point of the simplex nearest to :math:`-e/T`; low energies share, high ones get 0.

    >>> sparsemax(torch.tensor([0.1, 0.5, 1.0]))
    tensor([0.7000, 0.3000, 0.0000])
    """
    return entmax(e, 2.0, T, dim)


def entmax(e: Tensor, alpha: float = 1.5, T: float = 1.0, dim: int = -1) -> Tensor:
    r"""The maximiser of :math:`-p^\top e/T + H_\alpha(p)` on the simplex, differentiable.

    Parameters
    ----------
    e : energies
    alpha : 1 is softmax, 2 sparsemax (by sorting); any other value >= 1 by bisection
    T : temperature
    dim : axis of the values

    Examples
    --------
    >>> p = entmax(torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64), alpha=1.5)
    >>> [round(float(v), 4) for v in p], round(float(p.sum()), 12)
    ([0.8307, 0.1693, 0.0], 1.0)
    """
    if not alpha >= 1:
        raise ValueError(f"alpha must be at least 1 (1 is softmax, 2 sparsemax), got {alpha}")
    scores = _scores(e, T).movedim(dim, -1)
    if alpha == 1:
        return torch.softmax(scores, -1).movedim(-1, dim)
    p: Tensor = _Entmax.apply(scores, float(alpha))
    return p.movedim(-1, dim)


class _Entmax(torch.autograd.Function):
    r"""Jacobian: :math:`\mathrm{diag}(s) - ss^\top/\|s\|_1` with :math:`s_k = p_k^{2-\alpha}`."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, alpha: float) -> Tensor:
        p = _project(scores) if alpha == 2.0 else _bisect(scores, alpha)
        ctx.save_for_backward(p)
        ctx.alpha = alpha
        return p

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (p,) = ctx.saved_tensors
        inside = p > 0
        s = torch.where(inside, torch.where(inside, p, 1.0) ** (2.0 - ctx.alpha), 0.0)
        flow = s * grad
        return flow - s * (flow.sum(-1, keepdim=True) / s.sum(-1, keepdim=True)), None


def _project(scores: Tensor) -> Tensor:
    """Euclidean projection on the simplex by sorting."""
    z = scores - scores.amax(-1, keepdim=True)
    ordered = z.sort(-1, descending=True).values
    rank = torch.arange(1, z.shape[-1] + 1, device=z.device, dtype=z.dtype)
    total = torch.where(ordered > -math.inf, ordered, 0.0).cumsum(-1) - 1.0
    support = (ordered * rank > total).sum(-1, keepdim=True)  # at least 1
    threshold = total.gather(-1, support - 1) / support
    return (z - threshold).clamp_min(0.0)


def _bisect(scores: Tensor, alpha: float) -> Tensor:
    """``p = [(alpha-1) s - tau]_+^(1/(alpha-1))`` with tau halved into place, then normalised."""
    z = (scores - scores.amax(-1, keepdim=True)) * (alpha - 1.0)
    power = 1.0 / (alpha - 1.0)
    low = torch.full_like(z[..., :1], -1.0)  # here the largest entry alone gives 1
    width = torch.full_like(low, 1.0 - z.shape[-1] ** (1.0 - alpha))  # all equal: the highest tau
    steps = 60 if z.dtype == torch.float64 else 30
    for _ in range(steps):
        width = width / 2
        middle = low + width
        enough = ((z - middle).clamp_min(0.0) ** power).sum(-1, keepdim=True) >= 1.0
        low = torch.where(enough, middle, low)
    p = (z - low).clamp_min(0.0) ** power
    return p / p.sum(-1, keepdim=True)


def tsallis(p: Tensor, alpha: float) -> Tensor:
    r"""The entropy :math:`H_\alpha(p)` of the last axis; Shannon's at ``alpha=1``."""
    if alpha == 1:
        return -torch.special.xlogy(p, p).sum(-1)
    return (p - p**alpha).sum(-1) / (alpha * (alpha - 1.0))


def fenchel_young(e: Tensor, y: Tensor, alpha: float = 1.0, T: float = 1.0) -> Tensor:
    r"""The loss :math:`L = e_y - \min_p [p^\top e - T H_\alpha(p)] \ge 0` whose distribution is entmax.

    Its gradient in e is :math:`1_y - \mathrm{entmax}_\alpha(-e/T)`. ``alpha=1`` is cross-entropy;
    for ``alpha > 1`` the loss is exactly 0 once the right value is ahead by enough.

    Parameters
    ----------
    e : energies ``(..., K)``
    y : int64 values ``(...)``, or target distributions ``(..., K)`` (then minus T times their entropy)
    alpha, T : as in ``entmax``

    Examples
    --------
    >>> e = torch.tensor([[1.0, 2.0, 3.0]])
    >>> round(float(fenchel_young(e, torch.tensor([0]))), 6)
    0.407606
    >>> float(fenchel_young(e, torch.tensor([0]), alpha=2.0))
    0.0
    """
    if y.is_floating_point():
        target = (y * torch.where(y > 0, e, 0.0)).sum(-1) - T * tsallis(y, alpha)
    else:
        target = e.gather(-1, y.unsqueeze(-1)).squeeze(-1)
    if alpha == 1:
        return target + T * torch.logsumexp(_scores(e, T), -1)
    p = entmax(e, alpha, T).detach()  # the minimiser: by the envelope theorem it is a constant
    soft_min = torch.where(p > 0, p * torch.where(p > 0, e, 0.0), 0.0).sum(-1)
    return (target - soft_min + T * tsallis(p, alpha)).clamp_min(0.0)


def _scores(e: Tensor, T: float) -> Tensor:
    if not T > 0:
        raise ValueError(f"temperature must be positive here, got T={T}; T=0 is argmin")
    if math.isinf(T):
        return torch.where(torch.isposinf(e), -math.inf, 0.0).to(e.dtype)
    return -e / T
