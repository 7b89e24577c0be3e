r"""Distributions: families for generalised linear models, and what torch.distributions lacks.

torch's own distributions are used as they are; here are stable and Lévy distributions, directions, tables,
empirical and gridded ones, distribution functions with gradients, Bayes' rule and the algebra of
Gaussians (``distributions.gaussian``). Of the families for a generalised linear model choose one by the
support of y:

==================  ====================  ==============  ===============
family              y                     V(μ)            canonical link
==================  ====================  ==============  ===============
Gaussian            real                  1               identity
Bernoulli           0, 1                  μ(1 − μ)        logit
Categorical         one of K labels       diag μ − μμᵀ    softmax
Poisson             counts                μ               log
NegativeBinomial    counts, overspread    μ + αμ²         log (customary)
Gamma               above 0               μ²              inverse
InverseGaussian     above 0               μ³              inverse square
Tweedie             0 and above           μᵖ              log (customary)
==================  ====================  ==============  ===============
"""

from __future__ import annotations

from typing import Any

from groundstate.errors import Unsupported
from groundstate.math.distributions import constructions, gaussian
from groundstate.math.distributions.base import Family
from groundstate.math.distributions.bayes import (
    NormalInverseGamma,
    Posterior,
    conjugate_update,
    posterior,
)
from groundstate.math.distributions.calculus.cumulative import cdf, icdf, log_sf, prob
from groundstate.math.distributions.calculus.grid import GridDensity, convolve
from groundstate.math.distributions.continuous import Gamma, Gaussian, InverseGaussian
from groundstate.math.distributions.discrete import (
    Bernoulli,
    Categorical,
    NegativeBinomial,
    Poisson,
)
from groundstate.math.distributions.empirical import Empirical
from groundstate.math.distributions.stable import Levy, Stable
from groundstate.math.distributions.table import JointTable
from groundstate.math.distributions.tweedie import Tweedie
from groundstate.math.distributions.von_mises_fisher import VonMisesFisher

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


__all__ = [
    "FAMILIES",
    "Bernoulli",
    "Categorical",
    "Empirical",
    "Family",
    "Gamma",
    "Gaussian",
    "GridDensity",
    "InverseGaussian",
    "JointTable",
    "Levy",
    "NegativeBinomial",
    "NormalInverseGamma",
    "Poisson",
    "Posterior",
    "Stable",
    "Tweedie",
    "VonMisesFisher",
    "cdf",
    "conjugate_update",
    "constructions",
    "convolve",
    "family_of",
    "gaussian",
    "icdf",
    "log_sf",
    "posterior",
    "prob",
]
