r"""Losses of class scores: of one score for two classes (y is 0 or 1, s = ±1), or of one for each."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from groundstate.math.distributions.links import Link, Logit, Softmax
from groundstate.math.losses.base import PointLoss, weighted_mean

TINY = 1e-15  # least probability that a constant may give


@dataclass(frozen=True)
class LogLoss(PointLoss):
    r""":math:`\log(1 + e^\eta) - y\eta`: minus the log probability of y under :math:`\sigma(\eta)`."""

    name = "log_loss"
    code = 4
    domain = "unit"

    @property
    def link(self) -> Link:
        return Logit()

    def value(self, eta: Tensor, y: Tensor) -> Tensor:
        return binary_cross_entropy_with_logits(eta, y.to(eta.dtype), reduction="none")

    def gradient(self, eta: Tensor, y: Tensor) -> Tensor:
        return torch.sigmoid(eta) - y

    def curvature(self, eta: Tensor, y: Tensor) -> Tensor:
        return torch.sigmoid(eta) * torch.sigmoid(-eta)

    def derivatives(self, eta: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        p = torch.sigmoid(eta)
        return p - y, p * (1 - p)

    def constant(self, y: Tensor, weight: Tensor | None = None) -> float:
        p = float(weighted_mean(y.double(), weight))
        high, low = min(max(p, TINY), 1.0), min(max(1 - p, TINY), 1.0)
        return math.log(high) - math.log(low)


@dataclass(frozen=True)
class ExponentialLoss(PointLoss):
    r""":math:`e^{-s\eta}`, AdaBoost's loss; :math:`p(1) = \sigma(2\eta)`."""

    name = "exponential"
    code = 18
    domain = "unit"

    def value(self, eta: Tensor, y: Tensor) -> Tensor:
        return torch.exp(-(2 * y - 1) * eta)

    def gradient(self, eta: Tensor, y: Tensor) -> Tensor:
        s = 2 * y - 1
        return -s * torch.exp(-s * eta)

    def curvature(self, eta: Tensor, y: Tensor) -> Tensor:
        return self.value(eta, y)

    def mean(self, eta: Tensor) -> Tensor:
        return torch.sigmoid(2 * eta)

    def constant(self, y: Tensor, weight: Tensor | None = None) -> float:
        return 0.5 * LogLoss().constant(y, weight)


@dataclass(frozen=True)
class Hinge(PointLoss):
    r""":math:`\max(0, m - s\eta)`; a margin of zero is the perceptron's loss.

    Parameters
    ----------
    margin : m
    """

    name = "hinge"
    code = 15
    domain = "unit"
    smooth = False
    flat = True
    margin: float = 1.0

    @property
    def parameter(self) -> float:
        return float(self.margin)

    def value(self, eta: Tensor, y: Tensor) -> Tensor:
        return torch.relu(self.margin - (2 * y - 1) * eta)

    def gradient(self, eta: Tensor, y: Tensor) -> Tensor:
        s = 2 * y - 1
        return -s * (s * eta <= self.margin).to(eta.dtype)  # a perceptron at zero moves

    def curvature(self, eta: Tensor, y: Tensor) -> Tensor:
        return torch.zeros_like(eta)


@dataclass(frozen=True)
class SquaredHinge(Hinge):
    r""":math:`\max(0, m - s\eta)^2`."""

    name = "squared_hinge"
    code = 16
    smooth = True
    flat = False

    def value(self, eta: Tensor, y: Tensor) -> Tensor:
        return super().value(eta, y).square()

    def gradient(self, eta: Tensor, y: Tensor) -> Tensor:
        s = 2 * y - 1
        return -2 * s * (self.margin - s * eta).clamp_min(0)

    def curvature(self, eta: Tensor, y: Tensor) -> Tensor:
        return 2.0 * ((2 * y - 1) * eta < self.margin).to(eta.dtype)


@dataclass(frozen=True)
class ModifiedHuber(PointLoss):
    r""":math:`\max(0, 1 - s\eta)^2` where :math:`s\eta \ge -1`, else :math:`-4s\eta`."""

    name = "modified_huber"
    code = 17
    domain = "unit"

    def value(self, eta: Tensor, y: Tensor) -> Tensor:
        z = (2 * y - 1) * eta
        return torch.where(z < -1, -4 * z, torch.relu(1 - z).square())

    def gradient(self, eta: Tensor, y: Tensor) -> Tensor:
        s = 2 * y - 1
        return -2 * s * (1 - s * eta).clamp(0, 2)

    def curvature(self, eta: Tensor, y: Tensor) -> Tensor:
        z = (2 * y - 1) * eta
        return 2.0 * ((z < 1) & (z >= -1)).to(eta.dtype)

    def mean(self, eta: Tensor) -> Tensor:
        return (0.5 * (eta + 1)).clamp(0, 1)


@dataclass(frozen=True)
class CrossEntropy(PointLoss):
    r""":math:`\log\sum_k e^{\eta_k} - \eta_y` of scores ``(n, k)`` and labels ``(n,)``.

    Gradients are ``(n, k)``; the curvature is the diagonal :math:`p_k(1 - p_k)`.
    """

    name = "cross_entropy"
    domain = "labels"

    @property
    def link(self) -> Link:
        return Softmax()

    def value(self, eta: Tensor, y: Tensor) -> Tensor:
        return cross_entropy(eta, y, reduction="none")

    def gradient(self, eta: Tensor, y: Tensor) -> Tensor:
        return self.derivatives(eta, y)[0]

    def curvature(self, eta: Tensor, y: Tensor) -> Tensor:
        return self.derivatives(eta, y)[1]

    def derivatives(self, eta: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        scores = eta.T.contiguous()  # (k, n), quicker than row by row
        p = (scores - scores.amax(0)).exp_()
        p /= p.sum(0)
        h = p * (1 - p)
        p[y, torch.arange(len(y), device=y.device)] -= 1
        return p.T, h.T

    def constants(self, y: Tensor, k: int, weight: Tensor | None = None) -> Tensor:
        """The best constant scores of k classes, ``(k,)``, of mean zero."""
        w = torch.ones(len(y), dtype=torch.float64) if weight is None else weight.double()
        mass = torch.zeros(k, dtype=torch.float64, device=w.device).index_add(0, y, w)
        log_p = (mass / mass.sum()).clamp(TINY, 1.0).log()
        return log_p - log_p.mean()
