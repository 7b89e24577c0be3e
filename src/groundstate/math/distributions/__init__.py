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

from typing import TYPE_CHECKING

from groundstate.lazy import lazy

if TYPE_CHECKING:
    from groundstate.math.distributions import constructions as constructions
    from groundstate.math.distributions import gaussian as gaussian
    from groundstate.math.distributions.base import Family as Family
    from groundstate.math.distributions.bayes import NormalInverseGamma as NormalInverseGamma
    from groundstate.math.distributions.bayes import Posterior as Posterior
    from groundstate.math.distributions.bayes import conjugate_update as conjugate_update
    from groundstate.math.distributions.bayes import posterior as posterior
    from groundstate.math.distributions.calculus.cumulative import cdf as cdf
    from groundstate.math.distributions.calculus.cumulative import icdf as icdf
    from groundstate.math.distributions.calculus.cumulative import log_sf as log_sf
    from groundstate.math.distributions.calculus.cumulative import prob as prob
    from groundstate.math.distributions.calculus.grid import GridDensity as GridDensity
    from groundstate.math.distributions.calculus.grid import convolve as convolve
    from groundstate.math.distributions.continuous import Gamma as Gamma
    from groundstate.math.distributions.continuous import Gaussian as Gaussian
    from groundstate.math.distributions.continuous import InverseGaussian as InverseGaussian
    from groundstate.math.distributions.discrete import Bernoulli as Bernoulli
    from groundstate.math.distributions.discrete import Categorical as Categorical
    from groundstate.math.distributions.discrete import NegativeBinomial as NegativeBinomial
    from groundstate.math.distributions.discrete import Poisson as Poisson
    from groundstate.math.distributions.empirical import Empirical as Empirical
    from groundstate.math.distributions.stable import Levy as Levy
    from groundstate.math.distributions.stable import Stable as Stable
    from groundstate.math.distributions.table import JointTable as JointTable
    from groundstate.math.distributions.tweedie import FAMILIES as FAMILIES
    from groundstate.math.distributions.tweedie import Tweedie as Tweedie
    from groundstate.math.distributions.tweedie import family_of as family_of
    from groundstate.math.distributions.von_mises_fisher import VonMisesFisher as VonMisesFisher

lazy(__name__)
