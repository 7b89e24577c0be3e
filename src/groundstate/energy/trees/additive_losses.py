r"""Losses of additive scores F: value, negative gradient, best constant.

.. math:: F_0 = \arg\min_\gamma \sum_i w_iL(y_i, \gamma), \qquad r = -\partial L/\partial F .

A loss of your own is a function of torch tensors, ``TorchLoss(lambda F, y: ...)``; its gradient
comes from autograd and its constants from a line search.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from torch import Tensor
from torch.nn.functional import cross_entropy, softplus


@dataclass(frozen=True)
class AdditiveLoss:
    """One loss; F is ``(n, c)`` (c scores), y ``(n,)`` targets or class numbers, w ``(n,)``."""

    classes: ClassVar[bool] = False

    def value(self, F: Tensor, y: Tensor) -> Tensor:
        """L of each row, ``(n,)``."""
        raise TypeError(f"{type(self).__name__} must define value(F, y)")

    def residual(self, F: Tensor, y: Tensor) -> Tensor:
        """−∂L/∂F, ``(n, c)``."""
        with torch.enable_grad():
            leaf = F.detach().clone().requires_grad_()
            (g,) = torch.autograd.grad(self.value(leaf, y).sum(), leaf)
        return -g

    def outputs(self, k: int) -> int:
        """Number of scores for k classes (values: one)."""
        return 1

    def start(self, y: Tensor, w: Tensor, k: int) -> Tensor:
        """The best constant score, ``(c,)``."""
        zero = torch.zeros(len(y), self.outputs(k), dtype=torch.float64)
        return torch.tensor([self.leaf(zero, y, w, 0)], dtype=torch.float64)

    def leaf(self, F: Tensor, y: Tensor, w: Tensor, c: int) -> float:
        """The best constant to add to score c of these rows (for classes, one Newton step)."""
        parts = self.ratio(F, y, c)
        if parts is None:
            return self.step(F, y, w, c, torch.ones(len(y), dtype=torch.float64))
        below = float(torch.dot(w, parts[1]))
        return float(self.finish(torch.dot(w, parts[0]) / below)) if below > 1e-150 else 0.0

    def ratio(self, F: Tensor, y: Tensor, c: int) -> tuple[Tensor, Tensor] | None:
        """Where the constant is ``finish(Σ w a / Σ w b)``: a and b of each row."""
        return None

    def finish(self, value: Tensor) -> Tensor:
        return value

    def leaves(self, F: Tensor, y: Tensor, w: Tensor, c: int, at: Tensor, n: int) -> Tensor:
        """`leaf` of each of n groups of rows, numbered by ``at``, ``(n,)``."""
        parts = self.ratio(F, y, c)
        if parts is not None:
            above, below = (torch.bincount(at, w * p, n) for p in parts)
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
        return F

    def adapted(self, F: Tensor, y: Tensor, w: Tensor) -> AdditiveLoss:
        """The loss of the next step, where it depends on the residuals."""
        return self


def quantile(values: Tensor, w: Tensor, q: float, between: bool = False) -> float:
    """The q-quantile of weighted values; of two that share it the first, or what is between."""
    order = torch.argsort(values, stable=True)
    v, below = values[order].numpy(), torch.cumsum(w[order], 0).numpy()
    mark, slack = q * below[-1], 1e-12 * below[-1]
    at = min(int(np.searchsorted(below, mark - slack)), len(v) - 1)
    after = at
    if between and abs(below[at] - mark) <= slack:
        rest = np.flatnonzero(below > below[at] + slack)
        after = int(rest[0]) if len(rest) else at
    return float(0.5 * (v[at] + v[after]))


@dataclass(frozen=True)
class Squared(AdditiveLoss):
    """½(y − F)²."""

    def value(self, F: Tensor, y: Tensor) -> Tensor:
        return 0.5 * (y - F[:, 0]).square()

    def residual(self, F: Tensor, y: Tensor) -> Tensor:
        return (y - F[:, 0])[:, None]

    def ratio(self, F: Tensor, y: Tensor, c: int) -> tuple[Tensor, Tensor]:
        return y - F[:, 0], torch.ones_like(y)

    def step(self, F: Tensor, y: Tensor, w: Tensor, c: int, h: Tensor) -> float:
        square = float(torch.dot(w, h.square()))
        return float(torch.dot(w, (y - F[:, 0]) * h)) / square if square > 0 else 0.0


@dataclass(frozen=True)
class Quantile(AdditiveLoss):
    """(y − F)(q − 1[y < F]), whose best constant is a quantile."""

    q: float = 0.5

    def value(self, F: Tensor, y: Tensor) -> Tensor:
        d = y - F[:, 0]
        return d * (self.q - (d < 0).to(d.dtype))

    def residual(self, F: Tensor, y: Tensor) -> Tensor:
        return (self.q - (y < F[:, 0]).to(F.dtype))[:, None]

    def start(self, y: Tensor, w: Tensor, k: int) -> Tensor:
        return torch.tensor([quantile(y, w, self.q, True)], dtype=torch.float64)

    def leaf(self, F: Tensor, y: Tensor, w: Tensor, c: int) -> float:
        return quantile(y - F[:, 0], w, self.q)


@dataclass(frozen=True)
class Absolute(AdditiveLoss):
    """∣y − F∣, whose best constant is the median."""

    def value(self, F: Tensor, y: Tensor) -> Tensor:
        return (y - F[:, 0]).abs()

    def residual(self, F: Tensor, y: Tensor) -> Tensor:
        return torch.where(y >= F[:, 0], 1.0, -1.0).to(F.dtype)[:, None]

    def start(self, y: Tensor, w: Tensor, k: int) -> Tensor:
        return torch.tensor([quantile(y, w, 0.5, True)], dtype=torch.float64)

    def leaf(self, F: Tensor, y: Tensor, w: Tensor, c: int) -> float:
        return quantile(y - F[:, 0], w, 0.5)


@dataclass(frozen=True)
class Huber(AdditiveLoss):
    """Squared up to δ, then δ(∣y − F∣ − δ/2); δ is the α-quantile of ∣y − F∣ in every step."""

    alpha: float = 0.9
    delta: float = math.inf

    def value(self, F: Tensor, y: Tensor) -> Tensor:
        d = (y - F[:, 0]).abs()
        far = self.delta * (d - 0.5 * self.delta)
        return torch.where(d <= self.delta, 0.5 * d.square(), far)

    def residual(self, F: Tensor, y: Tensor) -> Tensor:
        return (y - F[:, 0]).clamp(-self.delta, self.delta)[:, None]

    def start(self, y: Tensor, w: Tensor, k: int) -> Tensor:
        return torch.tensor([quantile(y, w, 0.5, True)], dtype=torch.float64)

    def leaf(self, F: Tensor, y: Tensor, w: Tensor, c: int) -> float:
        d = y - F[:, 0]
        median = quantile(d, w, 0.5)
        rest = (d - median).clamp(-self.delta, self.delta)
        return median + float(torch.dot(w, rest) / w.sum())

    def adapted(self, F: Tensor, y: Tensor, w: Tensor) -> AdditiveLoss:
        return replace(self, delta=max(quantile((y - F[:, 0]).abs(), w, self.alpha), 1e-300))


@dataclass(frozen=True)
class Poisson(AdditiveLoss):
    """Half the Poisson deviance of y from μ = exp F."""

    def value(self, F: Tensor, y: Tensor) -> Tensor:
        return torch.special.xlogy(y, y) - y * F[:, 0] - y + F[:, 0].exp()

    def residual(self, F: Tensor, y: Tensor) -> Tensor:
        return (y - F[:, 0].exp())[:, None]

    def ratio(self, F: Tensor, y: Tensor, c: int) -> tuple[Tensor, Tensor]:
        return y, F[:, 0].exp()

    def finish(self, value: Tensor) -> Tensor:
        return value.clamp_min(1e-15).log()

    def mean(self, F: Tensor) -> Tensor:
        return F.exp()


@dataclass(frozen=True)
class Logistic(AdditiveLoss):
    """−log p(y) with p(1) = σ(F) for two classes, softmax(F) for more."""

    classes: ClassVar[bool] = True

    def value(self, F: Tensor, y: Tensor) -> Tensor:
        if F.shape[1] == 1:
            return softplus(F[:, 0]) - y * F[:, 0]
        return cross_entropy(F, y, reduction="none")

    def residual(self, F: Tensor, y: Tensor) -> Tensor:
        if F.shape[1] == 1:
            return (y - torch.sigmoid(F[:, 0]))[:, None]
        r = -torch.softmax(F, 1)
        r[torch.arange(len(y)), y] += 1
        return r

    def outputs(self, k: int) -> int:
        return 1 if k == 2 else k

    def start(self, y: Tensor, w: Tensor, k: int) -> Tensor:
        mass = torch.zeros(max(k, 2), dtype=torch.float64).index_add(0, y, w)
        p = (mass / mass.sum()).clamp(2.3e-16, 1 - 2.3e-16)
        return (p[1] / p[0]).log()[None] if self.outputs(k) == 1 else p.log() - p.log().mean()

    def ratio(self, F: Tensor, y: Tensor, c: int) -> tuple[Tensor, Tensor]:
        k = F.shape[1]
        p = torch.sigmoid(F[:, 0]) if k == 1 else torch.softmax(F, 1)[:, c]
        is_c = y if k == 1 else (y == c).to(F.dtype)
        return (is_c - p) * (1.0 if k == 1 else (k - 1) / k), p * (1 - p)


@dataclass(frozen=True)
class Exponential(AdditiveLoss):
    """e^{−tF} with t = ±1, AdaBoost's loss; p(1) = σ(2F)."""

    classes: ClassVar[bool] = True

    def value(self, F: Tensor, y: Tensor) -> Tensor:
        return torch.exp(-(2 * y - 1) * F[:, 0])

    def residual(self, F: Tensor, y: Tensor) -> Tensor:
        t = 2 * y - 1
        return (t * torch.exp(-t * F[:, 0]))[:, None]

    def start(self, y: Tensor, w: Tensor, k: int) -> Tensor:
        return 0.5 * Logistic().start(y, w, k)

    def ratio(self, F: Tensor, y: Tensor, c: int) -> tuple[Tensor, Tensor]:
        r = self.residual(F, y)[:, 0]
        return r, r.abs()


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


__all__ = ["Absolute", "AdditiveLoss", "Exponential", "Huber", "Logistic", "Poisson", "Quantile",
           "Squared", "TorchLoss", "quantile"]  # fmt: skip
