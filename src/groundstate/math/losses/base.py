r"""What every loss of a score knows: value, slope, curvature, link, domain, best constant."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from groundstate.errors import DataError
from groundstate.math.distributions.links import Identity, Link

Domain = Literal["real", "nonnegative", "positive", "unit", "labels"]

DOMAINS: dict[str, tuple[str, float, bool, float]] = {  # words, low, whether open there, high
    "real": ("finite numbers", -math.inf, False, math.inf),
    "nonnegative": ("numbers of at least 0", 0.0, False, math.inf),
    "positive": ("numbers above 0", 0.0, True, math.inf),
    "unit": ("numbers from 0 to 1", 0.0, False, 1.0),
    "labels": ("labels 0, 1, 2, ...", 0.0, False, math.inf),
}


@dataclass(frozen=True)
class PointLoss(ABC):
    r"""A loss :math:`\ell(\eta, y)` of one score η and one outcome y, elementwise on tensors.

    Attributes
    ----------
    name : what it is called in tables and messages
    code : its number in compiled passes; −1: only here
    domain : which y there are, a key of ``DOMAINS``
    smooth : whether the slope is continuous
    flat : whether the curvature is zero wherever it exists (kinks between straight lines); Newton
        steps then take 1 for it and set constants by ``constant``
    link : between the score and what is predicted, :math:`\mu = g^{-1}(\eta)`
    """

    name: ClassVar[str]
    code: ClassVar[int] = -1
    domain: ClassVar[str] = "real"
    smooth: ClassVar[bool] = True
    flat: ClassVar[bool] = False

    @property
    def link(self) -> Link:
        return Identity()

    @property
    def parameter(self) -> float:
        """The one number that compiled passes need besides the code."""
        return 0.0

    @property
    def compiled(self) -> tuple[int, float, int, float] | None:
        """The four numbers by which compiled passes know this loss; None: only here."""
        return None if self.code < 0 else (self.code, self.parameter, self.link.code, 1.0)

    @abstractmethod
    def value(self, eta: Tensor, y: Tensor) -> Tensor:
        r""":math:`\ell(\eta, y)`, differentiable in η."""

    @abstractmethod
    def gradient(self, eta: Tensor, y: Tensor) -> Tensor:
        r""":math:`\partial\ell/\partial\eta`; at a kink, a point between its two sides."""

    @abstractmethod
    def curvature(self, eta: Tensor, y: Tensor) -> Tensor:
        r""":math:`\partial^2\ell/\partial\eta^2 \ge 0` (of a non-convex loss, its expectation)."""

    def derivatives(self, eta: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Gradient and curvature, where one pass gives both."""
        return self.gradient(eta, y), self.curvature(eta, y)

    def mean(self, eta: Tensor) -> Tensor:
        """What is predicted of scores."""
        return self.link.inverse(eta)

    def constant(self, y: Tensor, weight: Tensor | None = None) -> float:
        r""":math:`\arg\min_c \sum_i w_i\,\ell(c, y_i)` by bisection of its slope."""

        def slope(c: float) -> float:
            g = self.gradient(torch.full_like(y, c), y)
            return float(g.sum() if weight is None else torch.dot(g, weight))

        low, high = -1.0, 1.0
        while slope(low) > 0 and low > -1e300:
            low *= 2
        while slope(high) < 0 and high < 1e300:
            high *= 2
        for _ in range(2000):
            middle = 0.5 * (low + high)
            if not low < middle < high:
                break
            low, high = (middle, high) if slope(middle) < 0 else (low, middle)
        return high

    def check(self, y: Tensor) -> None:
        """Raise ``DataError`` where y leaves the domain."""
        words, low, is_open, high = DOMAINS[self.domain]
        good = (y > low if is_open else y >= low) & (y <= high) & torch.isfinite(y)
        if not bool(good.all()):
            worst = y[~good].reshape(-1)[0].item()
            raise DataError(
                f"the loss {self.name!r} needs {words} as y, got {worst:g}; "
                "choose the loss by the domain of y"
            )


def weighted_mean(y: Tensor, weight: Tensor | None) -> Tensor:
    return y.mean() if weight is None else torch.dot(weight, y) / weight.sum()


def weighted_quantile(values: Any, weight: Any | None, q: float, *, between: bool = True) -> float:
    """The q-quantile of weighted values; of two that share it their mean, or the first.

    Examples
    --------
    >>> weighted_quantile(np.array([3.0, 1.0, 2.0, 4.0]), None, 0.5)
    2.5
    >>> weighted_quantile(np.array([3.0, 1.0]), np.array([2.0, 1.0]), 0.5)
    3.0
    """
    v = np.asarray(values)
    order = np.argsort(v, kind="stable")
    ordered = v[order]
    below = np.arange(1.0, len(v) + 1) if weight is None else np.cumsum(np.asarray(weight)[order])
    mark, slack = q * below[-1], 1e-12 * below[-1]
    at = min(int(np.searchsorted(below, mark - slack)), len(v) - 1)
    after = at
    if between and abs(below[at] - mark) <= slack:
        rest = np.flatnonzero(below > below[at] + slack)
        after = int(rest[0]) if len(rest) else at
    return float(0.5 * (ordered[at] + ordered[after]))
