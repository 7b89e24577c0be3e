"""PARAMETRISE: the energy contract, spaces, abilities, and energies by form."""

from groundstate.energy.base import Capability, Energy, batch_size, shapes_of
from groundstate.energy.bayes_linear import BayesianLinearEnergy
from groundstate.energy.check import gradcheck
from groundstate.energy.compose import Given, Marginal, Minimal, Mixture, Scaled, Sum, mixture
from groundstate.energy.density import DensityEnergy, space_of
from groundstate.energy.directed import DirectedEnergy
from groundstate.energy.exact import exact_free_energy, exact_minimum, marginal_way, minimum_way
from groundstate.energy.gaussian_mixture import GaussianMixtureEnergy
from groundstate.energy.glm import GLMEnergy
from groundstate.energy.head import DistributionHead
from groundstate.energy.kernel_machine import KernelMachineEnergy
from groundstate.energy.likelihood import BernoulliOf, CategoricalOf, LinearNormal, PoissonOf
from groundstate.energy.local import ChainRuleEnergy
from groundstate.energy.mixture_density import MixtureDensityEnergy
from groundstate.energy.noise import GaussianNoiseEnergy
from groundstate.energy.offers import Offer, offers
from groundstate.energy.probabilistic_pca import ProbabilisticPCAEnergy
from groundstate.energy.process import FieldEnergy, ProcessEnergy
from groundstate.energy.reference import (
    BilinearEnergy,
    CentroidEnergy,
    ChainEnergy,
    DecoderEnergy,
    LatentClassEnergy,
    LinearEnergy,
    LinearGaussianEnergy,
    NetClassEnergy,
    NetEnergy,
    SquaredEnergy,
    TableEnergy,
)
from groundstate.energy.smoother import SmootherClassEnergy, SmootherEnergy
from groundstate.energy.spaces import Binary, Count, Finite, Real, Sequence, Simplex, Space
from groundstate.energy.step import StepState
from groundstate.energy.targets import StackedEnergies, TargetEnergy
from groundstate.math.free import free_energy

__all__ = [
    "BayesianLinearEnergy",
    "BernoulliOf",
    "BilinearEnergy",
    "Binary",
    "Capability",
    "CategoricalOf",
    "CentroidEnergy",
    "ChainEnergy",
    "ChainRuleEnergy",
    "Count",
    "DecoderEnergy",
    "DensityEnergy",
    "DirectedEnergy",
    "DistributionHead",
    "Energy",
    "FieldEnergy",
    "Finite",
    "GLMEnergy",
    "GaussianMixtureEnergy",
    "GaussianNoiseEnergy",
    "Given",
    "KernelMachineEnergy",
    "LatentClassEnergy",
    "LinearEnergy",
    "LinearGaussianEnergy",
    "LinearNormal",
    "Marginal",
    "Minimal",
    "Mixture",
    "MixtureDensityEnergy",
    "NetClassEnergy",
    "NetEnergy",
    "Offer",
    "PoissonOf",
    "ProcessEnergy",
    "ProbabilisticPCAEnergy",
    "Real",
    "Scaled",
    "Sequence",
    "Simplex",
    "SmootherClassEnergy",
    "SmootherEnergy",
    "Space",
    "SquaredEnergy",
    "StackedEnergies",
    "StepState",
    "Sum",
    "TableEnergy",
    "TargetEnergy",
    "batch_size",
    "exact_free_energy",
    "exact_minimum",
    "free_energy",
    "gradcheck",
    "marginal_way",
    "minimum_way",
    "mixture",
    "offers",
    "shapes_of",
    "space_of",
]
