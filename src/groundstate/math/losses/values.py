r"""Losses of a residual, :math:`\ell = \rho(y - \eta)`: what is predicted is the score itself."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import huber_loss

from groundstate.math.losses.base import PointLoss, weighted_mean, weighted_quantile


@dataclass(frozen=True)
class Noise:
    r"""The distribution :math:`e^{-\rho(r)/T}/Z` of a residual r: a centre up to ±edge, and two tails.

    ``masses`` of left tail, centre and right tail, not normalised; ``spread`` is the standard
    deviation of the normal that the centre is cut from, infinite for an even one; tails fall
    exponentially with these scales (left, right), or as a normal of this deviation where ``normal``.
    """

    masses: tuple[float, float, float]
    edge: float = 0.0
    spread: float = math.inf
    scales: tuple[float, float] = (1.0, 1.0)
    normal: bool = False

    @property
    def log_constant(self) -> float:
        """log Z."""
        return math.log(sum(self.masses))

    def draw(self, u: Tensor, v: Tensor) -> Tensor:
        """A residual from two uniform numbers: which piece, and where in it."""
        left, centre, _ = (m / sum(self.masses) for m in self.masses)
        side = torch.where(u < left, -1.0, 1.0).to(u.dtype)
        scale = torch.where(u < left, self.scales[0], self.scales[1]).to(u.dtype)
        far = torch.erfinv(v) * math.sqrt(2) if self.normal else -torch.log1p(-v)
        inside = (2 * v - 1) * self.edge
        if math.isfinite(self.spread) and self.edge:
            wide = math.sqrt(2) * self.spread
            inside = wide * torch.erfinv((2 * v - 1) * math.erf(self.edge / wide))
        in_centre = (u >= left) & (u < left + centre)
        return torch.where(in_centre, inside, side * (self.edge + scale * far))


class ResidualLoss(PointLoss):
    r"""A loss of a residual, :math:`\rho(y - \eta)`: :math:`\int e^{-\rho/T}dy` is free of η."""

    def noise(self, T: float = 1.0) -> Noise:
        """The distribution of the residual at temperature T."""
        raise TypeError(f"{type(self).__name__} must define noise(T)")


@dataclass(frozen=True)
class SquaredError(ResidualLoss):
    r""":math:`\tfrac12(y - \eta)^2`, least for the mean."""

    name = "squared_error"
    code = 0

    def noise(self, T: float = 1.0) -> Noise:
        half = math.sqrt(0.5 * math.pi * T)
        return Noise((half, 0.0, half), scales=(math.sqrt(T), math.sqrt(T)), normal=True)

    def value(self, eta: Tensor, y: Tensor) -> Tensor:
        return 0.5 * (y - eta).square()

    def gradient(self, eta: Tensor, y: Tensor) -> Tensor:
        return eta - y

    def curvature(self, eta: Tensor, y: Tensor) -> Tensor:
        return torch.ones_like(eta)

    def constant(self, y: Tensor, weight: Tensor | None = None) -> float:
        return float(weighted_mean(y, weight))


@dataclass(frozen=True)
class Quantile(ResidualLoss):
    r""":math:`(y - \eta)(q - 1[y < \eta])`, least for the q-quantile.

    Parameters
    ----------
    q : in (0, 1)
    """

    name = "quantile"
    code = 11
    smooth = False
    flat = True
    q: float = 0.5

    def __post_init__(self) -> None:
        if not 0 < self.q < 1:
            raise ValueError(f"q must lie in (0, 1), got {self.q}; 0.9 is the 90 % quantile")

    @property
    def parameter(self) -> float:
        return float(self.q)

    def noise(self, T: float = 1.0) -> Noise:
        scales = T / (1 - self.q), T / self.q
        return Noise((scales[0], 0.0, scales[1]), scales=scales)

    def value(self, eta: Tensor, y: Tensor) -> Tensor:
        r = y - eta
        return torch.maximum(self.q * r, (self.q - 1) * r)

    def gradient(self, eta: Tensor, y: Tensor) -> Tensor:
        return (y < eta).to(eta.dtype) - self.q

    def curvature(self, eta: Tensor, y: Tensor) -> Tensor:
        return torch.zeros_like(eta)

    def constant(self, y: Tensor, weight: Tensor | None = None) -> float:
        return weighted_quantile(y, weight, self.q)


@dataclass(frozen=True)
class AbsoluteError(ResidualLoss):
    r""":math:`|y - \eta|`, least for the median."""

    name = "absolute_error"
    code = 10
    smooth = False
    flat = True

    def noise(self, T: float = 1.0) -> Noise:
        return Noise((T, 0.0, T), scales=(T, T))

    def value(self, eta: Tensor, y: Tensor) -> Tensor:
        return (y - eta).abs()

    def gradient(self, eta: Tensor, y: Tensor) -> Tensor:
        return torch.sign(eta - y)

    def curvature(self, eta: Tensor, y: Tensor) -> Tensor:
        return torch.zeros_like(eta)

    def constant(self, y: Tensor, weight: Tensor | None = None) -> float:
        return weighted_quantile(y, weight, 0.5)


@dataclass(frozen=True)
class Huber(ResidualLoss):
    r""":math:`\tfrac12r^2` where :math:`|r| \le \delta`, else :math:`\delta(|r| - \tfrac12\delta)`.

    Parameters
    ----------
    delta : residuals beyond it count linearly
    """

    name = "huber"
    code = 12
    delta: float = 1.0

    def __post_init__(self) -> None:
        if not self.delta > 0:
            raise ValueError(f"delta must be positive, got {self.delta}")

    @property
    def parameter(self) -> float:
        return float(self.delta)

    def noise(self, T: float = 1.0) -> Noise:
        d, root = self.delta, math.sqrt(T)
        tail = T / d * math.exp(-d * d / (2 * T))
        centre = math.sqrt(2 * math.pi) * root * math.erf(d / (math.sqrt(2) * root))
        return Noise((tail, centre, tail), d, root, (T / d, T / d))

    def value(self, eta: Tensor, y: Tensor) -> Tensor:
        if self.delta == float("inf"):
            return 0.5 * (y - eta).square()
        return huber_loss(eta, y, reduction="none", delta=self.delta)

    def gradient(self, eta: Tensor, y: Tensor) -> Tensor:
        return (eta - y).clamp(-self.delta, self.delta)

    def curvature(self, eta: Tensor, y: Tensor) -> Tensor:
        return ((y - eta).abs() <= self.delta).to(eta.dtype)


@dataclass(frozen=True)
class EpsilonInsensitive(ResidualLoss):
    r""":math:`\max(0, |y - \eta| - \varepsilon)`: residuals up to ε are free.

    Parameters
    ----------
    epsilon : half the width of the tube
    """

    name = "epsilon_insensitive"
    code = 13
    smooth = False
    flat = True
    epsilon: float = 0.1

    @property
    def parameter(self) -> float:
        return float(self.epsilon)

    def noise(self, T: float = 1.0) -> Noise:
        return Noise((T, 2 * self.epsilon, T), self.epsilon, scales=(T, T))

    def value(self, eta: Tensor, y: Tensor) -> Tensor:
        return torch.relu((y - eta).abs() - self.epsilon)

    def gradient(self, eta: Tensor, y: Tensor) -> Tensor:
        r = eta - y
        return torch.sign(r) * (r.abs() > self.epsilon)

    def curvature(self, eta: Tensor, y: Tensor) -> Tensor:
        return torch.zeros_like(eta)


@dataclass(frozen=True)
class SquaredEpsilonInsensitive(EpsilonInsensitive):
    r""":math:`\max(0, |y - \eta| - \varepsilon)^2`."""

    name = "squared_epsilon_insensitive"
    code = 14
    smooth = True
    flat = False

    def noise(self, T: float = 1.0) -> Noise:
        half, scale = 0.5 * math.sqrt(math.pi * T), math.sqrt(0.5 * T)
        return Noise((half, 2 * self.epsilon, half), self.epsilon, math.inf, (scale, scale), True)

    def value(self, eta: Tensor, y: Tensor) -> Tensor:
        return torch.relu((y - eta).abs() - self.epsilon).square()

    def gradient(self, eta: Tensor, y: Tensor) -> Tensor:
        r = eta - y
        return 2 * torch.sign(r) * (r.abs() - self.epsilon).clamp_min(0)

    def curvature(self, eta: Tensor, y: Tensor) -> Tensor:
        return 2.0 * ((y - eta).abs() > self.epsilon).to(eta.dtype)
