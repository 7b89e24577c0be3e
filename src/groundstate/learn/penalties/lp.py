r"""Powers of the entries, :math:`\Omega(\theta) = s\sum_j|\theta_j|^p`."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.distributions import Distribution

from groundstate.errors import Unsupported
from groundstate.learn.penalties.norms import Select, SeparablePenalty, _lasso_distance, _strength
from groundstate.registry import penalties

_STEPS = 60  # Newton from the right of a convex function: monotone, far fewer are used


@penalties.register(formula=r"s\sum_j|\theta_j|^p", make=lambda energy: Lp(0.5, 0.5))
class Lp(SeparablePenalty):
    r""":math:`\Omega(\theta) = s\sum_j|\theta_j|^p`, convex from p = 1 on.

    The proximal map solves :math:`u + \text{step}\cdot s\,p\,u^{p-1} = |\theta|` and, below p = 1,
    compares that point with zero: small entries become exactly zero and large ones hardly shrink.

    Parameters
    ----------
    strength : float, default=1.0
        :math:`s`.
    p : float > 0, default=1.0
    select, intercept
        Which parameters; see ``SeparablePenalty``.

    Attributes
    ----------
    convex : bool

    Examples
    --------
    >>> Lp(1.0, 0.5).prox_of(torch.tensor([3.0, -1.0]), 1.0)
    tensor([2.6955, -0.0000])
    """

    smooth = False

    def __init__(
        self,
        strength: float | Tensor = 1.0,
        p: float = 1.0,
        *,
        select: Select = None,
        intercept: bool = False,
    ) -> None:
        super().__init__(select=select, intercept=intercept)
        if not p > 0:
            raise ValueError(f"p must be positive, got {p}")
        self.strength, self.p = _strength(strength), float(p)

    @property
    def convex(self) -> bool:
        """Whether Ω is convex, so that a stationary point is a minimum."""
        return self.p >= 1

    def value_of(self, theta: Tensor) -> Tensor:
        return self.strength * theta.abs().pow(self.p).sum()

    def prox_of(self, theta: Tensor, step: float | Tensor) -> Tensor:
        t, p = theta.abs(), self.p
        c = torch.as_tensor(step * self.strength, dtype=t.dtype, device=t.device)
        if p == 1:
            return torch.sign(theta) * (t - c).clamp_min(0)
        if p > 1:
            return torch.sign(theta) * _convex_root(t, c * p, p)
        # u + cpu^{p-1} falls, then grows: its growing part begins where its slope is zero
        low = (c * p * (1 - p)).pow(1 / (2 - p))
        u = torch.maximum(t, low)
        for _ in range(_STEPS):
            slope = 1 + c * p * (p - 1) * u.pow(p - 2)
            u = torch.maximum(u - (u + c * p * u.pow(p - 1) - t) / slope.clamp_min(1e-12), low)
        reached = low + c * p * low.pow(p - 1) <= t
        gain = reached & (0.5 * (u - t).square() + c * u.pow(p) < 0.5 * t.square())
        return torch.sign(theta) * torch.where(gain, u, torch.zeros_like(u))

    def distance_of(self, theta: Tensor, gradient: Tensor, scale: float = 1.0) -> Tensor:
        if self.p == 1:
            return _lasso_distance(theta, gradient, scale * self.strength)
        t = theta.abs()
        pull = scale * self.strength * self.p * torch.sign(theta) * t.pow(self.p - 1)
        if self.p > 1:
            return (gradient + pull).abs()
        # infinitely steep at zero: every gradient is balanced there
        return torch.where(t > 0, (gradient + pull).abs(), torch.zeros_like(t))

    def alpha_max(self, gradient: Tensor) -> float:
        if self.p != 1:
            raise Unsupported(
                f"with p={self.p} zero is {'never' if self.p > 1 else 'always locally'} optimal, "
                "so there is no least strength; use p=1"
            )
        return float(gradient.abs().max())

    def prior(self) -> Distribution:
        """The exponential-power prior is known to torch for p = 1 and p = 2 alone."""
        from torch.distributions import Laplace, Normal

        s = torch.as_tensor(self.strength, dtype=torch.get_default_dtype())
        if self.p == 1:
            return Laplace(torch.zeros_like(s), 1 / s)
        if self.p == 2:
            return Normal(torch.zeros_like(s), (2 * s).rsqrt())
        raise Unsupported(
            f"torch has no distribution exp(-s|θ|^p) with p={self.p}; p=1 and p=2 have one"
        )


def _convex_root(t: Tensor, c: Tensor, p: float) -> Tensor:
    """u ≥ 0 with u + c u^{p-1} = t, for p > 1, by Newton from the right of a convex function."""
    if p >= 2:
        u = t.clone()
        for _ in range(_STEPS):
            u = (u - (u + c * u.pow(p - 1) - t) / (1 + c * (p - 1) * u.pow(p - 2))).clamp_min(0)
        return u
    q = 1 / (p - 1)  # in w = u^{p-1}: w^q + cw = t is convex
    w = t.pow(p - 1)
    for _ in range(_STEPS):
        slope = (q * w.pow(q - 1) + c).clamp_min(torch.finfo(t.dtype).tiny)
        w = (w - (w.pow(q) + c * w - t) / slope).clamp_min(0)
    return w.pow(q)
