r"""Score matching: shape the slope of the energy, no normaliser needed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import torch
from torch import Tensor
from torch.distributions import Distribution

from groundstate.energy.base import Energy
from groundstate.energy.spaces import Real, Sequence, Simplex, Space
from groundstate.infer.base import Method
from groundstate.learn.base import Batch, Latent, Terms
from groundstate.learn.rules.common import ContrastRule, Plan
from groundstate.learn.rules.inner import replace, suggested
from groundstate.math.distributions.operations import draw as seeded_draw
from groundstate.registry import rules

METHODS = ("exact", "hutchinson", "sliced")
Sigma = float | tuple[float, float] | Distribution | Callable[[int, Any], Tensor]


class _ScoreRule(ContrastRule):
    """Common part: real contrasted variables, and gradients in them that are differentiable."""

    needs_gradient = True

    def reason_against(self, energy: Energy, batch: Batch) -> str | None:
        reason = self._names_reason(energy, batch)
        if reason is not None:
            return reason
        for name in self.contrasted(energy):
            space = energy.spaces[name]
            if not space.is_real:
                return f"{name!r} lives in {space!r}, which has no slope; scores need real values"
            reason = self._space_reason(name, space)
            if reason is not None:
                return reason
        return self._latent_reason(energy, batch)

    def _space_reason(self, name: str, space: Space) -> str | None:
        if isinstance(space, Simplex):
            return f"{name!r} lives in {space!r}, where only some directions exist"
        return None


@rules.register(
    formula=r"L = \tfrac12\|\nabla_x e\|^2 - \Delta_x e", make=lambda energy: ScoreMatching()
)
class ScoreMatching(_ScoreRule):
    r""":math:`L = \tfrac12\|\nabla_x e\|^2 - \Delta_x e`. Lowers the slope of e at the data and
    raises its curvature there: data lie at the bottom of wells.

    Up to a constant of the data, the mean of L is half the Fisher divergence
    :math:`E\|\nabla\log p_{\text{data}} + \nabla e\|^2`; the normaliser drops out. Needs an energy
    that is twice differentiable in x (no ReLU) and an exact sum over latents.

    Parameters
    ----------
    method : {"exact", "hutchinson", "sliced"}
        How the Laplacian is found: all d second derivatives; :math:`v^\top\nabla^2 e\,v` with
        random signs v; or along random directions, with :math:`\tfrac12(v^\top\nabla e)^2` too.
    n : int, default=1
        Random directions per row.
    over, latent, approximate
        See ``ContrastRule``.

    Examples
    --------
    >>> from groundstate.energy import Energy, Real
    >>> class Bowl(Energy):
    ...     def forward(self, x):
    ...         return 0.5 * x.square().sum(-1)
    >>> ScoreMatching()(Bowl(x=Real(2)), {"x": torch.tensor([[1.0, 2.0]])}).loss.tolist()
    [0.5]
    """

    def __init__(
        self,
        method: Literal["exact", "hutchinson", "sliced"] = "exact",
        n: int = 1,
        *,
        over: str | tuple[str, ...] | None = None,
        latent: Latent = "marginalise",
    ) -> None:
        super().__init__(over=over, latent=latent)
        if method not in METHODS:
            raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
        self.method, self.n = method, n

    def forward(
        self, energy: Energy, batch: Batch, *, generator: torch.Generator | None = None
    ) -> Terms:
        plan = self.plan(energy, batch)
        with torch.enable_grad():
            x, g = slope(plan, batch, generator)
            if self.method == "exact":
                positive, curvature = 0.5 * g.square().sum(1), laplacian(x, g)
            else:
                positive, curvature = self._projected(x, g, generator)
        if not torch.is_grad_enabled():
            positive, curvature = positive.detach(), curvature.detach()
        return Terms(positive - curvature, lambda: (positive, curvature), exact=plan.exact)

    def _projected(
        self, x: list[Tensor], g: Tensor, generator: torch.Generator | None
    ) -> tuple[Tensor, Tensor]:
        slopes, curves = [], []
        for _ in range(self.n):
            v = torch.randn(g.shape, generator=generator, device=g.device, dtype=g.dtype)
            if self.method == "hutchinson":
                v = torch.where(v >= 0, 1.0, -1.0).to(g.dtype)
            along = (g * v).sum(1)
            curves.append((_again(along, x) * v).sum(1))
            slopes.append(0.5 * (g.square().sum(1) if self.method == "hutchinson" else along**2))
        return torch.stack(slopes).mean(0), torch.stack(curves).mean(0)

    def _space_reason(self, name: str, space: Space) -> str | None:
        inner = space.item if isinstance(space, Sequence) else space
        if isinstance(inner, Real) and (inner.low is not None or inner.high is not None):
            return (
                f"{name!r} has a boundary ({inner!r}), where integration by parts fails; use "
                "DenoisingScoreMatching"
            )
        return super()._space_reason(name, space)

    def _latent_reason(self, energy: Energy, batch: Batch) -> str | None:
        reason = super()._latent_reason(energy, batch)
        if reason is not None and self.variational is None:
            return f"second derivatives need the exact sum over latents, and {reason}; use " + (
                "DenoisingScoreMatching"
            )
        return reason

    def _route(self, plan: Plan, energy: Energy) -> Plan:
        return replace(plan, route="score", exact=plan.exact and self.method == "exact")


@rules.register(
    formula=r"L = \tfrac12\|\sigma\nabla e(x+\sigma\epsilon) - \epsilon\|^2",
    make=lambda energy: DenoisingScoreMatching(approximate=suggested(energy)),
)
class DenoisingScoreMatching(_ScoreRule):
    r""":math:`L = \tfrac12\|\sigma\nabla e(x+\sigma\epsilon) - \epsilon\|^2`. Lowers the slope of e
    around the data and raises e in the directions that lead away from it.

    Learns the score :math:`-\nabla e` of the data smoothed by :math:`N(0, \sigma^2)`; only first
    derivatives in x are needed. ``denoise`` gives the posterior mean by Tweedie's formula.

    Parameters
    ----------
    sigma : float, (low, high), distribution or function, default=0.1
        Noise level. A pair is log-uniform between the two, a distribution or a function
        ``(n, generator) -> (n,)`` is drawn from for every row.
    over, latent, approximate
        See ``ContrastRule``.

    Examples
    --------
    >>> from groundstate.energy import Energy, Real
    >>> class Bowl(Energy):
    ...     def forward(self, x):
    ...         return 0.5 * x.square().sum(-1)
    >>> rule = DenoisingScoreMatching(sigma=1.0)
    >>> x = torch.zeros(1000, 1)  # then e(x + noise) = noise^2 / 2, the slope is the noise
    >>> rule(Bowl(x=Real(1)), {"x": x}).loss.detach().max()
    tensor(0.)
    """

    def __init__(
        self,
        sigma: Sigma = 0.1,
        *,
        over: str | tuple[str, ...] | None = None,
        latent: Latent = "marginalise",
        approximate: Method | Iterable[Method] = (),
    ) -> None:
        super().__init__(over=over, latent=latent, approximate=approximate)
        lowest = sigma[0] if isinstance(sigma, tuple) else sigma
        if isinstance(lowest, (int, float)) and not lowest > 0:
            raise ValueError(f"sigma must be positive, got {sigma}")
        self.sigma: Any = sigma

    def forward(
        self, energy: Energy, batch: Batch, *, generator: torch.Generator | None = None
    ) -> Terms:
        plan = self.plan(energy, batch)
        first = batch[plan.over[0]]
        sigma = self.draw_sigma(first, generator)  # (B, 1)
        noise, shifted = [], dict(batch)
        for name in plan.over:
            x = batch[name]
            eps = torch.randn(x.shape, generator=generator, device=x.device, dtype=x.dtype)
            shifted[name] = x + sigma.reshape(-1, *(1,) * (x.ndim - 1)) * eps
            noise.append(eps.flatten(1))
        if "sigma" in energy.context:  # an energy of every noise level takes which one it is
            shifted["sigma"] = sigma[:, 0]
        eps = torch.cat(noise, 1)  # (B, D)
        with torch.enable_grad():
            _, g = slope(plan, shifted, generator)
        g = g if torch.is_grad_enabled() else g.detach()
        scaled = sigma * g
        loss = 0.5 * (scaled - eps).square().sum(1)

        def parts() -> tuple[Tensor, Tensor]:
            positive = 0.5 * (scaled.square() + eps.square()).sum(1)
            return positive, (scaled * eps).sum(1)

        return Terms(loss, parts, exact=plan.exact)

    def draw_sigma(self, like: Tensor, generator: torch.Generator | None) -> Tensor:
        """Noise level of every row, ``(B, 1)``."""
        n, sigma = like.shape[0], self.sigma
        if isinstance(sigma, (int, float)):
            return like.new_full((n, 1), float(sigma))
        if isinstance(sigma, tuple):
            low, high = math.log(sigma[0]), math.log(sigma[1])
            u = torch.rand(n, 1, generator=generator, device=like.device, dtype=like.dtype)
            return (low + (high - low) * u).exp()
        if isinstance(sigma, Distribution):
            drawn = seeded_draw(sigma, n, generator)
        else:
            drawn = sigma(n, generator)
        return drawn.to(like).reshape(n, 1)

    def _route(self, plan: Plan, energy: Energy) -> Plan:
        return replace(plan, route="score")


def slope(
    plan: Plan, batch: Batch, generator: torch.Generator | None
) -> tuple[list[Tensor], Tensor]:
    """The contrasted values and the gradient of e in them, ``(B, D)``, with its graph."""
    x = [batch[name].detach().requires_grad_() for name in plan.over]
    values = {**batch, **dict(zip(plan.over, x, strict=True))}
    e = plan.positive(values, generator)
    return x, _again(e, x)


def _again(value: Tensor, x: list[Tensor]) -> Tensor:
    """Row-wise gradient ``(B, D)`` of ``value`` ``(B,)``; zero where it does not depend on x."""
    if not value.requires_grad:
        return torch.cat([torch.zeros_like(v).flatten(1) for v in x], 1)
    grads = torch.autograd.grad(value.sum(), x, create_graph=True, allow_unused=True)
    flat = [torch.zeros_like(v) if g is None else g for g, v in zip(grads, x, strict=True)]
    return torch.cat([g.flatten(1) for g in flat], 1)


def laplacian(x: list[Tensor], g: Tensor) -> Tensor:
    """Sum of the second derivatives, ``(B,)``, one backward pass per coordinate."""
    total = torch.zeros_like(g[:, 0])
    for j in range(g.shape[1]):
        total = total + _again(g[:, j], x)[:, j]
    return total


def denoise(
    energy: Energy,
    x: Tensor,
    sigma: float | Tensor,
    given: Mapping[str, Tensor] | None = None,
    *,
    variable: str = "x",
) -> Tensor:
    r"""Tweedie's formula, :math:`E[x_0 \mid x] = x - \sigma^2\nabla e(x)`, ``(B, *event)``.

    Parameters
    ----------
    energy : an energy of the smoothed data, as ``DenoisingScoreMatching`` learns it
    x : noisy values
    sigma : noise level, or one per row ``(B,)``
    given : other variables of the energy

    Examples
    --------
    Data from N(0, 1) with unit noise are smoothed to N(0, 2), whose energy is x²/4:

    >>> from groundstate.energy import Energy, Real
    >>> class Smoothed(Energy):
    ...     def forward(self, x):
    ...         return 0.25 * x.square().sum(-1)
    >>> denoise(Smoothed(x=Real(1)), torch.tensor([[2.0]]), 1.0)
    tensor([[1.]])
    """
    with torch.enable_grad():
        at = x.detach().requires_grad_()
        (g,) = torch.autograd.grad(energy(**{**(given or {}), variable: at}).sum(), at)
    scale = torch.as_tensor(sigma, device=x.device, dtype=x.dtype)
    scale = scale.reshape(-1, *(1,) * (x.ndim - 1)) if scale.ndim else scale
    return x.detach() - scale.square() * g
