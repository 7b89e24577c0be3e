r"""Exponential dispersion families, :math:`p(y) = \exp\{(y\vartheta - b(\vartheta))/\varphi + c(y, \varphi)\}`.

:math:`\mu = b'(\vartheta)` is the mean and :math:`\varphi\,b''(\vartheta) = \varphi\,V(\mu)` the variance.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.distributions import Distribution

from groundstate.errors import DataError
from groundstate.math.distributions.links import Link
from groundstate.math.distributions.operations import draw


class Family(ABC):
    r"""A distribution of y given its mean μ and its dispersion φ, elementwise on tensors of any shape.

    Attributes
    ----------
    name : what it is called in menus and messages
    code : number of the family in compiled passes; −1: only here
    scaled : whether φ is free; False: φ = 1
    whole : whether y counts (whole numbers)
    low, high : bounds of y; ``open_low`` when y must be above ``low``
    """

    name: str
    code: int = -1
    scaled: bool = False
    whole: bool = False
    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False
    says: str = "any real number"  # the support, in words

    @property
    def parameter(self) -> float:
        """The one number that compiled passes need besides the code."""
        return 0.0

    @property
    @abstractmethod
    def canonical(self) -> Link:
        r"""The link with :math:`\eta = \vartheta` (up to a factor)."""

    @abstractmethod
    def variance(self, mu: Tensor) -> Tensor:
        r""":math:`V(\mu) = b''(\vartheta)`; the variance of y is φ V(μ)."""

    @abstractmethod
    def cumulant(self, theta: Tensor) -> Tensor:
        r""":math:`b(\vartheta)`."""

    @abstractmethod
    def natural(self, mu: Tensor) -> Tensor:
        r""":math:`\vartheta(\mu)`, the inverse of :math:`b'`."""

    @abstractmethod
    def unit_deviance(self, y: Tensor, mu: Tensor) -> Tensor:
        r""":math:`d(y, \mu) = 2\varphi\,[\log p(y; y) - \log p(y; \mu)] \ge 0`, zero at y = μ."""

    @abstractmethod
    def distribution(self, mu: Tensor, phi: Tensor | float = 1.0) -> Distribution:
        """The distribution of y as a torch distribution of the shape of ``mu``."""

    @abstractmethod
    def quantile(self, q: float, mu: Tensor, phi: Tensor | float = 1.0) -> Tensor:
        """The smallest y with P(≤ y) ≥ q, of the shape of ``mu``."""

    def log_prob(self, y: Tensor, mu: Tensor, phi: Tensor | float = 1.0) -> Tensor:
        """log p(y), −inf outside the support."""
        inside = self.supports(y)
        safe = torch.where(inside, y, mu.detach())
        return torch.where(inside, self.distribution(mu, phi).log_prob(safe), -math.inf)

    def sample(
        self,
        mu: Tensor,
        phi: Tensor | float = 1.0,
        n: int = 1,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """``n`` independent draws, ``(n, *mu.shape)``."""
        return draw(self.distribution(mu, phi), n, generator)

    def supports(self, y: Tensor) -> Tensor:
        """Which values can occur; fractions of counts are allowed (quasi-likelihood)."""
        above = y > self.low if self.open_low else y >= self.low
        return above & (y <= self.high) & torch.isfinite(y)

    def check(self, y: Tensor) -> None:
        """Raise ``DataError`` (a ``ValueError``) when y leaves the support."""
        bad = ~self.supports(y)
        if bool(bad.any()):
            worst = y[bad].flatten()[0].item()
            raise DataError(
                f"some values of y are out of the valid range of the family {self.name!r}: it needs "
                f"{self.says}, got {worst:g}; choose the family by the support of y"
            )


def by_scipy(distribution: Any, q: float, like: Tensor, *arguments: Any, **named: Any) -> Tensor:
    """A quantile of one of SciPy's distributions as a tensor like ``like``."""
    plain: list[Any] = [_plain(a) for a in arguments]
    found: NDArray[Any] = distribution.ppf(q, *plain, **{k: _plain(v) for k, v in named.items()})
    return torch.as_tensor(found).to(like)


def _plain(value: Any) -> Any:
    return value.detach().double().cpu().numpy() if isinstance(value, Tensor) else value
