"""INFER: hold what is given, then minimise, marginalise or sample the rest."""

from groundstate.infer.base import (
    Draws,
    FreeEnergy,
    Method,
    Minimum,
    Query,
    ask,
)
from groundstate.infer.boltzmann import log_partition, posterior
from groundstate.infer.dispatch import (
    explain,
    infer,
    marginalise,
    minimise,
    sample,
)
from groundstate.infer.exact.chain import Chain
from groundstate.infer.exact.closed import ClosedForm
from groundstate.infer.exact.eliminate import Eliminate
from groundstate.infer.exact.enumerate import Enumerate
from groundstate.infer.exact.finite_distributions import ListedDistribution
from groundstate.infer.exact.quadrature import Quadrature
from groundstate.infer.optimise.coordinate import Coordinate
from groundstate.infer.optimise.gradient import Gradient
from groundstate.infer.optimise.proximity import Proximity, adapt
from groundstate.infer.probability import EnergyMoments, energy_moments, impute, log_likelihood
from groundstate.infer.sampling.ancestral import Ancestral
from groundstate.infer.sampling.annealed import Annealed
from groundstate.infer.sampling.chains import Chains, run_chains
from groundstate.infer.sampling.fitted_proposals import fit_proposal
from groundstate.infer.sampling.gibbs import Gibbs
from groundstate.infer.sampling.hmc import HMC
from groundstate.infer.sampling.importance import Importance
from groundstate.infer.sampling.langevin import Langevin
from groundstate.infer.sampling.metropolis import Metropolis
from groundstate.infer.sampling.monte_carlo import Expectation, expect, expect_sum
from groundstate.infer.sampling.proposals import Proposal
from groundstate.infer.sampling.transitions import Kernel, State, Target, kernel_matrix
from groundstate.infer.search.beam import Beam
from groundstate.infer.variational.families import Categorical, Family, Gaussian, MeanField
from groundstate.infer.variational.variational import Variational

__all__ = [
    "Ancestral",
    "Annealed",
    "Beam",
    "Categorical",
    "Chain",
    "Chains",
    "ClosedForm",
    "Coordinate",
    "Draws",
    "Eliminate",
    "EnergyMoments",
    "Enumerate",
    "Expectation",
    "Family",
    "FreeEnergy",
    "Gaussian",
    "Gibbs",
    "Gradient",
    "HMC",
    "Importance",
    "Kernel",
    "Langevin",
    "ListedDistribution",
    "MeanField",
    "Method",
    "Metropolis",
    "Minimum",
    "Proposal",
    "Proximity",
    "Quadrature",
    "Query",
    "State",
    "Target",
    "Variational",
    "adapt",
    "ask",
    "energy_moments",
    "expect",
    "expect_sum",
    "explain",
    "fit_proposal",
    "impute",
    "infer",
    "kernel_matrix",
    "log_likelihood",
    "log_partition",
    "marginalise",
    "minimise",
    "posterior",
    "run_chains",
    "sample",
]
