r"""Losses of additive scores F: those of the one table, and what boosting asks of them besides.

.. math:: F_0 = \arg\min_\gamma \sum_i w_iL(y_i, \gamma), \qquad r = -\partial L/\partial F .

A loss of your own is a function of torch tensors, ``TorchLoss(lambda F, y: ...)``; its gradient
comes from autograd and its constants from a line search.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from scipy.optimize import minimize_scalar
from torch import Tensor

from groundstate.math.losses import (
    AbsoluteError,
    CrossEntropy,
    ExponentialLoss,
    LogLoss,
    PointLoss,
    SquaredError,
    weighted_quantile,
)
from groundstate.math.losses import Huber as PointHuber
from groundstate.math.losses import Quantile as PointQuantile
from groundstate.math.losses.deviance import poisson


@dataclass(frozen=True)
class AdditiveLoss:
    """One loss; F is ``(n, c)`` (c scores), y ``(n,)`` targets or class numbers, w ``(n,)``.

    A loss of the table names its ``point``; what is best to add to the rows of a leaf follows from
    that: a quantile of the residuals where it is flat, else one Newton step, which is exact for
    squares and, as a step of ``exp F``, for the Poisson deviance.
    """

    classes: ClassVar[bool] = False

    def point(self, c: int = 1) -> PointLoss:
        """The loss of c scores, of ``groundstate.math.losses``."""
        raise TypeError(f"{type(self).__name__} must define value(F, y) or point()")

    def value(self, F: Tensor, y: Tensor) -> Tensor:
        """L of each row, ``(n,)``."""
        return self.point(F.shape[1]).value(F if F.shape[1] > 1 else F[:, 0], y)

    def residual(self, F: Tensor, y: Tensor) -> Tensor:
        """−∂L/∂F, ``(n, c)``."""
        if F.shape[1] > 1:
            return -self.point(F.shape[1]).gradient(F, y)
        return -self.point().gradient(F[:, 0], y)[:, None]

    def outputs(self, k: int) -> int:
        """Number of scores for k classes (values: one)."""
        return 1

    def start(self, y: Tensor, w: Tensor, k: int) -> Tensor:
        """The best constant score, ``(c,)``."""
        return torch.tensor([self.point().constant(y.double(), w)], dtype=torch.float64)

    def leaf(self, F: Tensor, y: Tensor, w: Tensor, c: int) -> float:
        """The best constant to add to score c of these rows (for classes, one Newton step)."""
        above, below = self.ratio(F, y, c)
        whole = float(torch.dot(w, below))
        return float(self.finish(torch.dot(w, above) / whole)) if whole > 1e-150 else 0.0

    def ratio(self, F: Tensor, y: Tensor, c: int) -> tuple[Tensor, Tensor]:
        """Where the constant is ``finish(Σ w a / Σ w b)``: a and b of each row."""
        g, h = self.point().derivatives(F[:, 0], y)
        return -g, h

    def finish(self, value: Tensor) -> Tensor:
        return value

    def leaves(self, F: Tensor, y: Tensor, w: Tensor, c: int, at: Tensor, n: int) -> Tensor:
        """`leaf` of each of n groups of rows, numbered by ``at``, ``(n,)``."""
        if type(self).leaf is AdditiveLoss.leaf:
            above, below = (torch.bincount(at, w * p, n) for p in self.ratio(F, y, c))
            return torch.where(below > 1e-150, self.finish(above / below.clamp_min(1e-300)), 0.0)
        out = torch.zeros(n, dtype=torch.float64)
        for v in torch.unique(at[w > 0]).tolist():
            own = (at == v) & (w > 0)
            out[v] = self.leaf(F[own], y[own], w[own], c)
        return out

    def step(self, F: Tensor, y: Tensor, w: Tensor, c: int, h: Tensor) -> float:
        r"""The exact line search :math:`\arg\min_\gamma \sum_i w_iL(y_i, F_i + \gamma h_i)`."""

        def total(gamma: float) -> float:
            moved = F.clone()
            moved[:, c] += gamma * h
            return float(torch.dot(w, self.value(moved, y)))

        scale = max(float(h.abs().max()), 1e-300)
        return float(minimize_scalar(total, bracket=(0.0, 1.0 / scale), tol=1e-10).x)

    def mean(self, F: Tensor) -> Tensor:
        """What is predicted, of the shape of F."""
        return self.point().mean(F)

    def adapted(self, F: Tensor, y: Tensor, w: Tensor) -> AdditiveLoss:
        """The loss of the next step, where it depends on the residuals."""
        return self


@dataclass(frozen=True)
class Squared(AdditiveLoss):
    """½(y − F)²."""

    def point(self, c: int = 1) -> PointLoss:
        return SquaredError()

    def step(self, F: Tensor, y: Tensor, w: Tensor, c: int, h: Tensor) -> float:
        square = float(torch.dot(w, h.square()))
        return float(torch.dot(w, (y - F[:, 0]) * h)) / square if square > 0 else 0.0


@dataclass(frozen=True)
class Quantile(AdditiveLoss):
    """(y − F)(q − 1[y < F]), whose best constant is a quantile."""

    q: float = 0.5

    def point(self, c: int = 1) -> PointLoss:
        return PointQuantile(self.q)

    def leaf(self, F: Tensor, y: Tensor, w: Tensor, c: int) -> float:
        return weighted_quantile(y - F[:, 0], w, self.q, between=False)


@dataclass(frozen=True)
class Absolute(AdditiveLoss):
    """∣y − F∣, whose best constant is the median."""

    def point(self, c: int = 1) -> PointLoss:
        return AbsoluteError()

    def residual(self, F: Tensor, y: Tensor) -> Tensor:
        return torch.where(y >= F[:, 0], 1.0, -1.0).to(F.dtype)[:, None]

    def leaf(self, F: Tensor, y: Tensor, w: Tensor, c: int) -> float:
        return weighted_quantile(y - F[:, 0], w, 0.5, between=False)


@dataclass(frozen=True)
class Huber(AdditiveLoss):
    """Squared up to δ, then δ(∣y − F∣ − δ/2); δ is the α-quantile of ∣y − F∣ in every step."""

    alpha: float = 0.9
    delta: float = math.inf

    def point(self, c: int = 1) -> PointLoss:
        return PointHuber(self.delta)

    def start(self, y: Tensor, w: Tensor, k: int) -> Tensor:
        return torch.tensor([weighted_quantile(y, w, 0.5)], dtype=torch.float64)

    def leaf(self, F: Tensor, y: Tensor, w: Tensor, c: int) -> float:
        d = y - F[:, 0]
        median = weighted_quantile(d, w, 0.5, between=False)
        rest = (d - median).clamp(-self.delta, self.delta)
        return median + float(torch.dot(w, rest) / w.sum())

    def adapted(self, F: Tensor, y: Tensor, w: Tensor) -> AdditiveLoss:
        far = weighted_quantile((y - F[:, 0]).abs(), w, self.alpha, between=False)
        return replace(self, delta=max(far, 1e-300))


@dataclass(frozen=True)
class Poisson(AdditiveLoss):
    """Half the Poisson deviance of y from μ = exp F."""

    def point(self, c: int = 1) -> PointLoss:
        return poisson()

    def ratio(self, F: Tensor, y: Tensor, c: int) -> tuple[Tensor, Tensor]:
        return y, F[:, 0].exp()

    def finish(self, value: Tensor) -> Tensor:
        return value.clamp_min(1e-15).log()


@dataclass(frozen=True)
class Logistic(AdditiveLoss):
    """−log p(y) with p(1) = σ(F) for two classes, softmax(F) for more."""

    classes: ClassVar[bool] = True

    def point(self, c: int = 1) -> PointLoss:
        return LogLoss() if c == 1 else CrossEntropy()

    def outputs(self, k: int) -> int:
        return 1 if k == 2 else k

    def start(self, y: Tensor, w: Tensor, k: int) -> Tensor:
        return super().start(y, w, k) if k == 2 else CrossEntropy().constants(y, k, w)

    def ratio(self, F: Tensor, y: Tensor, c: int) -> tuple[Tensor, Tensor]:
        k = F.shape[1]
        if k == 1:
            return super().ratio(F, y, c)
        g, h = CrossEntropy().derivatives(F, y)
        return -g[:, c] * ((k - 1) / k), h[:, c]


@dataclass(frozen=True)
class Exponential(AdditiveLoss):
    """e^{−tF} with t = ±1, AdaBoost's loss; p(1) = σ(2F)."""

    classes: ClassVar[bool] = True

    def point(self, c: int = 1) -> PointLoss:
        return ExponentialLoss()

    def mean(self, F: Tensor) -> Tensor:
        return F


@dataclass(frozen=True)
class TorchLoss(AdditiveLoss):
    """Any differentiable loss of one score, ``function(F, y) -> (n,)``, both ``(n,)``.

    Examples
    --------
    >>> logcosh = TorchLoss(lambda F, y: torch.log(torch.cosh(y - F)))
    >>> F, y = torch.zeros(2, 1, dtype=torch.float64), torch.tensor([0.0, 100.0]).double()
    >>> [round(v, 3) for v in logcosh.residual(F, y)[:, 0].tolist()]
    [0.0, 1.0]
    """

    function: Callable[[Tensor, Tensor], Tensor] = Squared().value

    def value(self, F: Tensor, y: Tensor) -> Tensor:
        return self.function(F[:, 0], y)

    def residual(self, F: Tensor, y: Tensor) -> Tensor:
        with torch.enable_grad():
            leaf = F.detach().clone().requires_grad_()
            (g,) = torch.autograd.grad(self.value(leaf, y).sum(), leaf)
        return -g

    def start(self, y: Tensor, w: Tensor, k: int) -> Tensor:
        zero = torch.zeros(len(y), 1, dtype=torch.float64)
        return torch.tensor([self.leaf(zero, y, w, 0)], dtype=torch.float64)

    def leaf(self, F: Tensor, y: Tensor, w: Tensor, c: int) -> float:
        return self.step(F, y, w, c, torch.ones(len(y), dtype=torch.float64))

    def mean(self, F: Tensor) -> Tensor:
        return F
