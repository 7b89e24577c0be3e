r"""Tweedie's families, :math:`V(\mu) = \mu^p`: one knob from Gaussian over counts to gamma; all by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution

from groundstate.errors import Unsupported
from groundstate.math.distributions.base import Family
from groundstate.math.distributions.continuous import Gamma, Gaussian, InverseGaussian
from groundstate.math.distributions.discrete import (
    Bernoulli,
    Categorical,
    NegativeBinomial,
    Poisson,
)
from groundstate.math.distributions.families import TweedieDistribution
from groundstate.math.distributions.links import Identity, Link, Log

_NAMED: dict[float, type[Family]] = {0.0: Gaussian, 1.0: Poisson, 2.0: Gamma, 3.0: InverseGaussian}


@dataclass(frozen=True)
class Tweedie(Family):
    r""":math:`V(\mu) = \mu^p`; p = 0, 1, 2, 3 are Gaussian, Poisson, gamma, inverse Gaussian.

    Between 1 and 2 lies a distribution with an atom at zero, such as rainfall or the cost of
    claims. ``canonical`` is the customary link: identity for p ≤ 0, else log.

    Parameters
    ----------
    power : p; no distribution exists between 0 and 1

    >>> Tweedie(1.5).variance(torch.tensor(4.0)).item()
    8.0
    """

    name = "tweedie"
    power: float = 1.5

    def __post_init__(self) -> None:
        p = float(self.power)
        if 0 < p < 1:
            raise ValueError(f"no Tweedie distribution has a power between 0 and 1, got {p}")
        named = _NAMED.get(p)
        set_ = object.__setattr__  # frozen: these follow from the power
        set_(self, "code", 6 if named is None else named.code)
        set_(self, "scaled", True if named is None else named.scaled)
        set_(self, "whole", p == 1)
        set_(self, "low", 0.0 if p >= 1 else Family.low)
        set_(self, "open_low", p >= 2)
        words = "numbers above 0" if p >= 2 else "numbers of at least 0"
        set_(self, "says", words if p >= 1 else Family.says)

    @property
    def named(self) -> Family | None:
        """The family of that power which has a name of its own."""
        cls = _NAMED.get(float(self.power))
        return None if cls is None else cls()

    @property
    def parameter(self) -> float:
        return float(self.power)

    @property
    def canonical(self) -> Link:
        return Identity() if self.power <= 0 else Log()

    def variance(self, mu: Tensor) -> Tensor:
        return mu**self.power

    def cumulant(self, theta: Tensor) -> Tensor:
        if self.named is not None:
            return self.named.cumulant(theta)
        p = self.power
        return ((1 - p) * theta) ** ((2 - p) / (1 - p)) / (2 - p)

    def natural(self, mu: Tensor) -> Tensor:
        if self.named is not None:
            return self.named.natural(mu)
        return mu ** (1 - self.power) / (1 - self.power)

    def unit_deviance(self, y: Tensor, mu: Tensor) -> Tensor:
        if self.named is not None:
            return self.named.unit_deviance(y, mu)
        p = self.power
        own = y.clamp_min(0) ** (2 - p) / ((1 - p) * (2 - p))  # negative y only where p < 0
        return 2 * (own - y * mu ** (1 - p) / (1 - p) + mu ** (2 - p) / (2 - p))

    def distribution(self, mu: Tensor, phi: Tensor | float = 1.0) -> Distribution:
        if self.named is not None:
            return self.named.distribution(mu, phi)
        phi = torch.as_tensor(phi, dtype=mu.dtype, device=mu.device).expand_as(mu)
        return TweedieDistribution(mu, phi, self.power)

    def quantile(self, q: float, mu: Tensor, phi: Tensor | float = 1.0) -> Tensor:
        if self.named is not None:
            return self.named.quantile(q, mu, phi)
        distribution = self.distribution(mu, phi)
        assert isinstance(distribution, TweedieDistribution)
        return distribution.quantile(q)


FAMILIES: dict[str, type[Family]] = {
    cls.name: cls
    for cls in (
        Gaussian, Bernoulli, Categorical, Poisson, NegativeBinomial, Gamma, InverseGaussian, Tweedie,
    )
}  # fmt: skip


def family_of(family: Any) -> Family:
    """A family by name, with its default parameters, or the object itself.

    >>> family_of("poisson")
    Poisson()
    """
    if isinstance(family, Family):
        return family
    if isinstance(family, str) and family in FAMILIES:
        return FAMILIES[family]()
    raise Unsupported(
        f"family {family!r} is not known; use one of {', '.join(FAMILIES)} or a Family object"
    )
