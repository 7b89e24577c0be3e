"""INFER: hold what is given, then minimise, marginalise or sample the rest."""

from typing import TYPE_CHECKING

from groundstate.lazy import lazy

if TYPE_CHECKING:
    from groundstate.infer.base import Draws as Draws
    from groundstate.infer.base import FreeEnergy as FreeEnergy
    from groundstate.infer.base import Method as Method
    from groundstate.infer.base import Minimum as Minimum
    from groundstate.infer.base import Query as Query
    from groundstate.infer.base import ask as ask
    from groundstate.infer.boltzmann import log_partition as log_partition
    from groundstate.infer.boltzmann import posterior as posterior
    from groundstate.infer.dispatch import explain as explain
    from groundstate.infer.dispatch import infer as infer
    from groundstate.infer.dispatch import marginalise as marginalise
    from groundstate.infer.dispatch import minimise as minimise
    from groundstate.infer.dispatch import sample as sample
    from groundstate.infer.exact.by_value import ByValue as ByValue
    from groundstate.infer.exact.chain import Chain as Chain
    from groundstate.infer.exact.closed import ClosedForm as ClosedForm
    from groundstate.infer.exact.eliminate import Eliminate as Eliminate
    from groundstate.infer.exact.enumerate import Enumerate as Enumerate
    from groundstate.infer.exact.finite_distributions import (
        ListedDistribution as ListedDistribution,
    )
    from groundstate.infer.exact.quadrature import Quadrature as Quadrature
    from groundstate.infer.latent_variable_model import LatentVariableModel as LatentVariableModel
    from groundstate.infer.optimise.coordinate import Coordinate as Coordinate
    from groundstate.infer.optimise.gradient import Gradient as Gradient
    from groundstate.infer.optimise.proximity import Proximity as Proximity
    from groundstate.infer.optimise.proximity import adapt as adapt
    from groundstate.infer.probability import EnergyMoments as EnergyMoments
    from groundstate.infer.probability import energy_moments as energy_moments
    from groundstate.infer.probability import impute as impute
    from groundstate.infer.probability import log_likelihood as log_likelihood
    from groundstate.infer.sampling.ancestral import Ancestral as Ancestral
    from groundstate.infer.sampling.annealed import Annealed as Annealed
    from groundstate.infer.sampling.chains import Chains as Chains
    from groundstate.infer.sampling.chains import run_chains as run_chains
    from groundstate.infer.sampling.fitted_proposals import fit_proposal as fit_proposal
    from groundstate.infer.sampling.gibbs import Gibbs as Gibbs
    from groundstate.infer.sampling.hmc import HMC as HMC
    from groundstate.infer.sampling.importance import Importance as Importance
    from groundstate.infer.sampling.langevin import Langevin as Langevin
    from groundstate.infer.sampling.metropolis import Metropolis as Metropolis
    from groundstate.infer.sampling.monte_carlo import Expectation as Expectation
    from groundstate.infer.sampling.monte_carlo import expect as expect
    from groundstate.infer.sampling.monte_carlo import expect_sum as expect_sum
    from groundstate.infer.sampling.proposals import Proposal as Proposal
    from groundstate.infer.sampling.transitions import Kernel as Kernel
    from groundstate.infer.sampling.transitions import State as State
    from groundstate.infer.sampling.transitions import Target as Target
    from groundstate.infer.sampling.transitions import kernel_matrix as kernel_matrix
    from groundstate.infer.search.beam import Beam as Beam
    from groundstate.infer.search.decode import Decoded as Decoded
    from groundstate.infer.search.decode import decode as decode
    from groundstate.infer.search.draw_tree import draw_tree as draw_tree
    from groundstate.infer.variational.families import Categorical as Categorical
    from groundstate.infer.variational.families import Family as Family
    from groundstate.infer.variational.families import Gaussian as Gaussian
    from groundstate.infer.variational.families import MeanField as MeanField
    from groundstate.infer.variational.variational import Variational as Variational

lazy(__name__)
