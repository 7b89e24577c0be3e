"""Families of generalised linear models by name."""

from __future__ import annotations

from typing import Any

from groundstate.errors import Unsupported
from groundstate.math.distributions.base import Family
from groundstate.math.distributions.continuous import Gamma, Gaussian, InverseGaussian
from groundstate.math.distributions.discrete import (
    Bernoulli,
    Categorical,
    NegativeBinomial,
    Poisson,
)
from groundstate.math.distributions.tweedie import Tweedie

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
