r"""Gaussian processes: the prior of a function at given inputs, and its distribution given observations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import Distribution

from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.kernels.gaussian_process.predictive import ProcessDistribution
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Real
from groundstate.math.kernels import RBF, Geometry, Kernel, White
from groundstate.math.kernels.fields import matheron
from groundstate.math.linalg.gaussian_process import cholesky, joint_normal

FieldPullback = Callable[[Tensor, float], Tensor]


def _field() -> FieldEnergy:
    x = torch.tensor([[0.0], [0.7]], dtype=torch.float32)
    return FieldEnergy(x, RBF(1.0) + White(0.5))


@registered(r"e(y) = \tfrac12 y^\top K_\theta^{-1} y + \tfrac12\log|2\pi K_\theta|", _field)
class FieldEnergy(Energy):
    r"""A Gaussian process at n inputs,
    :math:`e(y) = \tfrac12 y^\top K_\theta^{-1}y + \tfrac12\log|2\pi K_\theta|`; its negative is the
    log marginal likelihood of θ.

    One row is one draw of the whole function. An observation of weight w stands for w equal ones:
    its noise is divided by w, and the density of the other w − 1 is added.

    Parameters
    ----------
    x : inputs ``(n, d)``
    kernel : covariance; its free parameters are θ
    noise : variance added to each observation, a number or ``(n,)``
    weight : of each observation, ``(n,)``; None is one each

    Attributes
    ----------
    theta : Parameter, logarithms of the free parameters of the kernel

    Examples
    --------
    >>> e = FieldEnergy(torch.tensor([[0.0], [1.0]]).double(), RBF(1.0), 0.1)
    >>> round(-e(y=torch.tensor([[0.0, 1.0]]).double()).item(), 6)
    -2.405074
    """

    normalised = frozenset({"y"})
    gaussian = frozenset({"y"})
    x: Tensor
    noise: Tensor
    weight: Tensor | None

    def __init__(
        self, x: Tensor, kernel: Kernel, noise: float | Tensor = 0.0, weight: Tensor | None = None
    ) -> None:
        super().__init__(y=Real(len(x)))
        self.kernel = kernel
        self.register_buffer("x", x)
        self.register_buffer("noise", torch.as_tensor(noise).to(x).expand(len(x)).clone())
        self.register_buffer("weight", weight)
        self.theta = nn.Parameter(torch.as_tensor(kernel.theta).to(x))
        self._geometry: Geometry | None = None

    def config(self) -> dict[str, Any]:
        empty = torch.zeros_like
        weight = None if self.weight is None else empty(self.weight)
        return {"x": empty(self.x), "kernel": self.kernel, "noise": 0.0, "weight": weight}

    @property
    def learned_kernel(self) -> Kernel:
        """The kernel at θ."""
        return self.kernel.clone_with_theta(self.theta.detach().cpu().double().numpy())

    def geometry(self) -> Geometry:
        """Pairs of the inputs; distances are kept, since only θ changes."""
        kept = self._geometry
        if kept is None or kept.x is not self.x:
            kept = self._geometry = Geometry(self.x)
        return kept

    def covariance(self, theta: Tensor | None = None) -> Tensor:
        """K of the observations, with their noise, ``(n, n)``."""
        K, extra = self.parts(self.theta if theta is None else theta)
        return K + torch.diag(extra)

    def parts(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        """The kernel's matrix ``(n, n)`` and what the diagonal has on top of it ``(n,)``."""
        return self.kernel.of(self.geometry(), theta), self.extra(theta)

    def pulled(self, theta: Tensor) -> tuple[Tensor, Tensor, Tensor, FieldPullback]:
        """`parts` and `repeats`, and what slopes in K and in the repeats are in θ, ``(len(θ),)``."""
        if self.weight is None:
            K, pull = self.kernel.pulled(self.geometry(), theta)
            return K, self.extra(theta), self.repeats(theta), lambda W, total: pull(W)
        leaf = theta.detach().requires_grad_()
        with torch.enable_grad():
            outputs = (*self.parts(leaf), self.repeats(leaf))

        def pull_all(W: Tensor, total: float) -> Tensor:
            slopes = (W, W.diagonal(), torch.full_like(outputs[2], total))
            moving = [pair for pair in zip(outputs, slopes, strict=True) if pair[0].requires_grad]
            values, grads = zip(*moving, strict=True)
            return torch.autograd.grad(values, leaf, grads)[0]

        K, extra, repeats = (value.detach() for value in outputs)
        return K, extra, repeats, pull_all

    def extra(self, theta: Tensor) -> Tensor:
        """What is added to the diagonal of the kernel's matrix, ``(n,)``."""
        if self.weight is None:
            return self.noise
        own = self.own_noise(theta)
        return (own + self.noise) / self.weight - own

    def spread(self, theta: Tensor) -> Tensor:
        """Variance of each observation about the function, ``(n,)``."""
        total = self.own_noise(theta) + self.noise
        return total if self.weight is None else total / self.weight

    def own_noise(self, theta: Tensor) -> Tensor:
        """The part of the variance that two observations at one input do not share, ``(n,)``."""
        with_noise = self.kernel.diagonal(self.x, theta)
        return with_noise - self.kernel.diagonal(self.x, theta, noise=False)

    def repeats(self, theta: Tensor | None = None) -> Tensor:
        """Energy of the equal observations that a weight stands for, a scalar."""
        if self.weight is None:
            return self.theta.new_zeros(())
        theta = self.theta if theta is None else theta
        noise = (self.own_noise(theta) + self.noise).clamp(min=torch.finfo(theta.dtype).tiny)
        more = (self.weight - 1) * (2 * math.pi * noise).log()
        return 0.5 * (more + self.weight.log()).sum()

    def forward(self, y: Tensor) -> Tensor:
        L = cholesky(self.covariance())
        white = torch.linalg.solve_triangular(L, y.T, upper=False)  # (n, B)
        constant = L.diagonal().log().sum() + 0.5 * len(L) * math.log(2 * math.pi)
        return 0.5 * white.square().sum(0) + constant + self.repeats()

    @offers.conditional("y", when=lambda energy: energy.weight is None)
    def distribution(self, T: float = 1.0) -> Distribution:
        L = cholesky(self.covariance()) * math.sqrt(T)
        return joint_normal(L.new_zeros(1, len(L)), L[None])


def _posterior() -> ProcessEnergy:
    x = torch.tensor([[0.0], [1.0], [2.5]])
    energy = ProcessEnergy(1, 1, RBF(1.0) + White(0.1))
    energy.observe(FieldEnergy(x, energy.kernel, 1e-3), torch.tensor([[0.0, 1.0, -1.0]]))
    return energy


@registered(r"e(x, y) = -\log N(y;\, m(x),\, v(x) + \alpha)", _posterior)
class ProcessEnergy(ProcessDistribution):
    r"""The distribution of a new observation, :math:`e(x, y) = -\log N(y;\, m(x),\, v(x) + \alpha)`, with
    :math:`m(x) = k_x^\top K^{-1}y` and :math:`v(x) = k(x,x) - k_x^\top K^{-1}k_x`.

    Without observations it is the prior: m = 0, v = k(x, x).

    Parameters
    ----------
    d, m : numbers of inputs and outputs
    kernel : covariance; its free parameters are θ
    n : observations
    noise : α, variance of the noise of a new observation

    Attributes
    ----------
    theta : Parameter, logarithms of the free parameters of the kernel
    x : buffer, ``(n, d)``
    y : buffer, ``(n, m)``, after centring and scaling
    a : buffer, ``(n, m)``, :math:`K^{-1}y`
    shift, scale : buffers, ``(m,)``, that turn outputs back

    Examples
    --------
    >>> e = ProcessEnergy(1, 1, RBF(1.0))
    >>> x = torch.tensor([[0.0], [1.0]]).double()
    >>> e.observe(FieldEnergy(x, RBF(1.0)), torch.tensor([[0.0, 1.0]]).double())
    >>> m, v = e.double().predict(torch.tensor([[0.5]]).double())
    >>> round(m.item(), 6), round(v.item(), 6)
    (0.549318, 0.030456)
    """

    x: Tensor
    y: Tensor
    a: Tensor
    solved: Tensor
    spread: Tensor

    def __init__(self, d: int, m: int, kernel: Kernel, n: int = 0, noise: float = 0.0) -> None:
        super().__init__(d, m, kernel, noise)
        self.register_buffer("x", torch.zeros(n, d))
        self.register_buffer("y", torch.zeros(n, m))
        self.register_buffer("a", torch.zeros(n, m))
        self.register_buffer("solved", self.theta.detach().clone())  # θ of ``a``
        self.register_buffer("spread", torch.zeros(n))  # added to the diagonal of K
        self._factor: Tensor | None = None

    def config(self) -> dict[str, Any]:
        return {**super().config(), "n": len(self.x)}

    @torch.no_grad()
    def observe(self, field: FieldEnergy, y: Tensor, factor: Tensor | None = None) -> None:
        """Condition on outputs ``(m, n)`` at the inputs of a field, with the field's θ."""
        self.kernel = field.learned_kernel
        self.theta = nn.Parameter(field.theta.detach().clone())
        self.x, self.y = field.x, y.T.contiguous()
        self.spread = field.extra(self.theta).clone()
        self._factor = cholesky(field.covariance()) if factor is None else factor
        self.a = torch.cholesky_solve(self.y, self._factor)
        self.solved = self.theta.detach().clone()

    def _solve(self) -> tuple[Tensor, Tensor]:
        """The factor of K ``(n, n)`` and :math:`K^{-1}y` ``(n, m)``; kept while θ stays.

        The factor is not stored, but made again when it is needed.
        """
        learning = torch.is_grad_enabled() and self.theta.requires_grad and self.theta.numel() > 0
        L, same = self._factor, torch.equal(self.solved, self.theta)
        if L is not None and (L.dtype != self.x.dtype or L.device != self.x.device):
            L, same = None, False  # what was solved in other digits is solved again
        if learning or L is None or not same:
            K = self.kernel.of(Geometry(self.x), self.theta) + torch.diag(self.spread)
            L = cholesky(K)
            if learning:
                return L, torch.cholesky_solve(self.y, L)
            self._factor = L = L.detach()
            if not same:
                self.a = torch.cholesky_solve(self.y, L).detach()
                self.solved = self.theta.detach().clone()
        return L, self.a

    def factor(self) -> Tensor:
        r"""L with :math:`LL^\top = K`, ``(n, n)``."""
        with torch.no_grad():
            return self._solve()[0]

    def mean(self, x: Tensor) -> Tensor:
        """m(x), ``(B, m)``."""
        if not len(self.x):
            return self.shift.expand(len(x), self.m)
        learning = torch.is_grad_enabled() and self.theta.requires_grad
        a = self.a if torch.equal(self.solved, self.theta) and not learning else self._solve()[1]
        return self.kernel.of(Geometry(x, self.x), self.theta) @ a * self.scale + self.shift

    def _explained(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Mean before scaling ``(B, m)``, and :math:`L^{-1}k_x` ``(n, B)``."""
        L, a = self._solve()
        K = self.kernel.of(Geometry(x, self.x), self.theta)  # (B, n)
        return K @ a, torch.linalg.solve_triangular(L, K.mT, upper=False)

    def predict(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """m(x) and v(x), both ``(B, m)``."""
        v = self.kernel.diagonal(x, self.theta)
        if not len(self.x):
            return self.mean(x), v[:, None] * self.scale.square()
        mean, known = self._explained(x)
        v = (v - known.square().sum(0)).clamp(min=0.0)
        return mean * self.scale + self.shift, v[:, None] * self.scale.square()

    def joint(self, x: Tensor) -> Tensor:
        """Covariance of the function at these inputs, before scaling, ``(B, B)``."""
        prior = self.prior(x)
        if not len(self.x):
            return prior
        known = self._explained(x)[1]
        return prior - known.mT @ known

    @torch.no_grad()
    def functions(self, x: Tensor, n: int, generator: torch.Generator | None = None) -> Tensor:
        """Draws of the function by Matheron's rule, ``(n, B, m)``."""
        if not len(self.x):
            return super().functions(x, n, generator)
        found = matheron(self.kernel, x, self.x, self.a, self.factor(), self.spread, n, generator)
        return found * self.scale + self.shift
