r"""The distribution that assumes least: largest entropy under energies or given means."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from groundstate.errors import ShapeError
from groundstate.math.arrays import takes_arrays

_STEPS = 100


class MaxEnt(NamedTuple):
    r"""Solution of a maximum-entropy problem.

    Attributes
    ----------
    p : (..., K) the distribution
    gamma : (...) multiplier of :math:`\sum_k p_k = 1`
    value : (...) the maximum
    coefficients : (m,) multipliers of the feature means, where there are any
    """

    p: Tensor
    gamma: Tensor
    value: Tensor
    coefficients: Tensor | None = None

    def stationarity(self, a: Tensor, beta: float = 1.0) -> Tensor:
        r"""Gradient of the Lagrangian, :math:`-a_k - (\log p_k + 1)/\beta + \gamma`: zero at the
        solution. The multipliers of :math:`p_k \ge 0` are 0, because every :math:`p_k` is positive.
        """
        return -a - (self.p.log() + 1) / beta + self.gamma.unsqueeze(-1)


@takes_arrays("a", "targets")
def maxent(a: Any, targets: Any = None, beta: float = 1.0) -> MaxEnt:
    r"""Maximise :math:`-a^\top p + H(p)/\beta` on the simplex; or H(p) with :math:`E_p[f] = t`.

    With energies a the Lagrangian :math:`-a^\top p + H(p)/\beta + \gamma(\sum_k p_k - 1)` gives
    :math:`p = \mathrm{softmax}(-\beta a)`, the value :math:`\tfrac1\beta\log\sum_k e^{-\beta a_k}`
    and :math:`\gamma = 1/\beta` − value. With features f and targets t the answer is the
    exponential family :math:`p_k \propto e^{\lambda^\top f_k}`, whose λ minimises the convex dual
    :math:`\log Z(\lambda) - \lambda^\top t`: damped Newton, differentiable in t and f by the
    implicit function theorem.

    Parameters
    ----------
    a : energies ``(..., K)``; with ``targets`` the features of the K values, ``(K, m)`` or ``(K,)``
    targets : means of the features ``(m,)``, strictly inside what the K values can reach
    beta : weight of the energies against the entropy, 1/T

    Examples
    --------
    >>> s = maxent([1.0, 2.0, 3.0])
    >>> s.p.round(6).tolist(), round(s.value, 6), round(s.gamma, 6)
    ([0.665241, 0.244728, 0.090031], -0.592394, 1.592394)
    >>> die = maxent([1, 2, 3, 4, 5, 6], targets=4.5)
    >>> die.p.round(4).tolist()
    [0.0544, 0.0788, 0.1142, 0.1654, 0.2398, 0.3475]
    """
    if not beta > 0:
        raise ValueError(f"beta must be positive, got {beta!r}")
    if targets is None:
        if a.ndim == 0:
            raise ShapeError("energies must be an array (..., K), got a number")
        value = torch.logsumexp(-beta * a, -1) / beta
        return MaxEnt(torch.softmax(-beta * a, -1), 1 / beta - value, value)
    f = a[:, None] if a.ndim == 1 else a
    t = targets.reshape(-1).to(f.dtype)
    if f.ndim != 2 or f.shape[1] != len(t):
        raise ShapeError(
            f"features must be (K, m) with one target for each of the m columns, got "
            f"{tuple(a.shape)} and {len(t)} targets"
        )
    with torch.no_grad():
        coefficients = _dual_newton(f, t)
    if f.requires_grad or t.requires_grad:
        p = torch.softmax(f.detach() @ coefficients, -1)
        gap = t - torch.softmax(f @ coefficients, -1) @ f
        coefficients = coefficients + torch.linalg.pinv(_covariance(f.detach(), p)) @ gap
    p = torch.softmax(f @ coefficients, -1)
    log_z = torch.logsumexp(f @ coefficients, -1)
    return MaxEnt(p, (1 - log_z) / beta, (log_z - coefficients @ t) / beta, coefficients / beta)


def _covariance(f: Tensor, p: Tensor) -> Tensor:
    centred = f - p @ f
    return (centred * p[:, None]).mT @ centred


def _dual_newton(f: Tensor, t: Tensor) -> Tensor:
    shift = f.mean(0)
    scale = (f - shift).abs().amax(0)
    scale = torch.where(scale > 0, scale, 1.0)
    f, t = (f - shift) / scale, (t - shift) / scale

    def dual(x: Tensor) -> Tensor:
        return torch.logsumexp(f @ x, -1) - x @ t

    x = torch.zeros_like(t)
    value, tiny = dual(x), 100 * torch.finfo(f.dtype).eps
    for _ in range(_STEPS):
        p = torch.softmax(f @ x, -1)
        gap = t - p @ f
        if float(gap.abs().max()) <= tiny:
            return x / scale
        step = torch.linalg.pinv(_covariance(f, p), hermitian=True) @ gap
        rate = 1.0
        while rate > 1e-10 and float(dual(x + rate * step)) > float(
            value - 1e-4 * rate * (step @ gap) + tiny
        ):
            rate /= 2
        x = x + rate * step
        value = dual(x)
        if float(x.abs().max()) > 1e4:
            break
    gap = t - torch.softmax(f @ x, -1) @ f
    if float(gap.abs().max()) <= tiny**0.5 and float(x.abs().max()) <= 1e4:
        return x / scale
    raise ValueError(
        "no distribution of full support has these feature means; move targets strictly inside "
        "the hull of the features"
    )
