r"""Losses of a residual, :math:`\ell = \rho(y - \eta)`: what is predicted is the score itself."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import huber_loss

from groundstate.math.losses.base import PointLoss, weighted_mean, weighted_quantile


@dataclass(frozen=True)
class SquaredError(PointLoss):
    r""":math:`\tfrac12(y - \eta)^2`, least for the mean."""

    name = "squared_error"
    code = 0

    def value(self, eta: Tensor, y: Tensor) -> Tensor:
        return 0.5 * (y - eta).square()

    def gradient(self, eta: Tensor, y: Tensor) -> Tensor:
        return eta - y

    def curvature(self, eta: Tensor, y: Tensor) -> Tensor:
        return torch.ones_like(eta)

    def constant(self, y: Tensor, weight: Tensor | None = None) -> float:
        return float(weighted_mean(y, weight))


@dataclass(frozen=True)
class Quantile(PointLoss):
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
class AbsoluteError(PointLoss):
    r""":math:`|y - \eta|`, least for the median."""

    name = "absolute_error"
    code = 10
    smooth = False
    flat = True

    def value(self, eta: Tensor, y: Tensor) -> Tensor:
        return (y - eta).abs()

    def gradient(self, eta: Tensor, y: Tensor) -> Tensor:
        return torch.sign(eta - y)

    def curvature(self, eta: Tensor, y: Tensor) -> Tensor:
        return torch.zeros_like(eta)

    def constant(self, y: Tensor, weight: Tensor | None = None) -> float:
        return weighted_quantile(y, weight, 0.5)


@dataclass(frozen=True)
class Huber(PointLoss):
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

    def value(self, eta: Tensor, y: Tensor) -> Tensor:
        if self.delta == float("inf"):
            return 0.5 * (y - eta).square()
        return huber_loss(eta, y, reduction="none", delta=self.delta)

    def gradient(self, eta: Tensor, y: Tensor) -> Tensor:
        return (eta - y).clamp(-self.delta, self.delta)

    def curvature(self, eta: Tensor, y: Tensor) -> Tensor:
        return ((y - eta).abs() <= self.delta).to(eta.dtype)


@dataclass(frozen=True)
class EpsilonInsensitive(PointLoss):
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

    def value(self, eta: Tensor, y: Tensor) -> Tensor:
        return torch.relu((y - eta).abs() - self.epsilon).square()

    def gradient(self, eta: Tensor, y: Tensor) -> Tensor:
        r = eta - y
        return 2 * torch.sign(r) * (r.abs() - self.epsilon).clamp_min(0)

    def curvature(self, eta: Tensor, y: Tensor) -> Tensor:
        return 2.0 * ((y - eta).abs() > self.epsilon).to(eta.dtype)


__all__ = [
    "AbsoluteError",
    "EpsilonInsensitive",
    "Huber",
    "Quantile",
    "SquaredEpsilonInsensitive",
    "SquaredError",
]
