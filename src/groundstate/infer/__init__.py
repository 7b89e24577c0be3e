"""INFER: hold what is given, then minimise, marginalise or sample the rest."""

from groundstate.infer.ancestral import Ancestral
from groundstate.infer.annealed import Annealed
from groundstate.infer.base import (
    Draws,
    FreeEnergy,
    Method,
    Minimum,
    Query,
    ask,
)
from groundstate.infer.beam import Beam
from groundstate.infer.boltzmann import log_partition, posterior
from groundstate.infer.chain import Chain
from groundstate.infer.chains import Chains, run_chains
from groundstate.infer.closed import ClosedForm
from groundstate.infer.coordinate import Coordinate
from groundstate.infer.dispatch import (
    explain,
    infer,
    marginalise,
    minimise,
    sample,
)
from groundstate.infer.eliminate import Eliminate
from groundstate.infer.enumerate import Enumerate
from groundstate.infer.families import Categorical, Family, Gaussian, MeanField
from groundstate.infer.fitting import fit_proposal
from groundstate.infer.gibbs import Gibbs
from groundstate.infer.gradient import Gradient
from groundstate.infer.hmc import HMC
from groundstate.infer.importance import Importance
from groundstate.infer.kernels import Kernel, State, Target, kernel_matrix
from groundstate.infer.langevin import Langevin
from groundstate.infer.laws import ListedLaw
from groundstate.infer.metropolis import Metropolis
from groundstate.infer.monte_carlo import Expectation, expect, expect_sum
from groundstate.infer.probability import EnergyMoments, energy_moments, impute, log_likelihood
from groundstate.infer.proposal import Proposal
from groundstate.infer.proximity import Proximity, adapt
from groundstate.infer.quadrature import Quadrature
from groundstate.infer.variational import Variational

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
    "ListedLaw",
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
