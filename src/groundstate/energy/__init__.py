"""PARAMETRISE: the energy contract, spaces, abilities, and energies by form."""

from groundstate.energy.abilities import Offer, offers
from groundstate.energy.base import Capability, Energy, batch_size, shapes_of
from groundstate.energy.basic import (
    BilinearEnergy,
    CentroidEnergy,
    DecoderEnergy,
    LatentClassEnergy,
    LinearEnergy,
    LinearGaussianEnergy,
    NetClassEnergy,
    NetEnergy,
    SquaredEnergy,
    TableEnergy,
)
from groundstate.energy.basic.density import DensityEnergy, space_of
from groundstate.energy.basic.directed import DirectedEnergy
from groundstate.energy.basic.labels import ClassEnergy
from groundstate.energy.basic.likelihood import BernoulliOf, CategoricalOf, LinearNormal, PoissonOf
from groundstate.energy.check import gradcheck
from groundstate.energy.compose.operators import (
    Given,
    Marginal,
    Minimal,
    Mixture,
    Scaled,
    Sum,
    mixture,
)
from groundstate.energy.exact import exact_free_energy, exact_minimum, marginal_way, minimum_way
from groundstate.energy.kernels.gaussian_process.exact import FieldEnergy, ProcessEnergy
from groundstate.energy.kernels.loss import KernelLossEnergy
from groundstate.energy.kernels.machine import KernelMachineEnergy
from groundstate.energy.kernels.smoother import SmootherClassEnergy, SmootherEnergy
from groundstate.energy.latent.codes import LinearCodeEnergy, WhiteCodeEnergy
from groundstate.energy.latent.gaussian_mixture import GaussianMixtureEnergy
from groundstate.energy.latent.kernel_codes import KernelCodeEnergy
from groundstate.energy.latent.probabilistic_pca import (
    FactorAnalysisEnergy,
    ProbabilisticPCAEnergy,
)
from groundstate.energy.linear.bayesian import BayesianLinearEnergy
from groundstate.energy.linear.glm import GLMEnergy
from groundstate.energy.linear.learned_noise import GaussianNoiseEnergy
from groundstate.energy.linear.loss import LinearLossEnergy
from groundstate.energy.networks.head import DistributionHead
from groundstate.energy.networks.mixture_density import MixtureDensityEnergy
from groundstate.energy.networks.residual import ResidualEnergy
from groundstate.energy.networks.sequence import SequenceEnergy
from groundstate.energy.networks.targets import StackedEnergies, TargetEnergy
from groundstate.energy.sequences.chain import ChainEnergy
from groundstate.energy.sequences.chain_rule import ChainRuleEnergy
from groundstate.energy.sequences.step import StepState
from groundstate.energy.spaces import (
    Binary,
    Count,
    Finite,
    GraphSpace,
    RaggedOf,
    Real,
    Sequence,
    Simplex,
    Space,
    TextSpace,
    TokenSequence,
    Trajectory,
    label_grid,
)
from groundstate.math.info.free_energy import free_energy

__all__ = [
    "Trajectory",
    "TokenSequence",
    "TextSpace",
    "RaggedOf",
    "GraphSpace",
    "BayesianLinearEnergy",
    "BernoulliOf",
    "BilinearEnergy",
    "Binary",
    "Capability",
    "CategoricalOf",
    "CentroidEnergy",
    "ChainEnergy",
    "ChainRuleEnergy",
    "ClassEnergy",
    "Count",
    "DecoderEnergy",
    "DensityEnergy",
    "DirectedEnergy",
    "DistributionHead",
    "Energy",
    "FactorAnalysisEnergy",
    "FieldEnergy",
    "Finite",
    "GLMEnergy",
    "GaussianMixtureEnergy",
    "GaussianNoiseEnergy",
    "Given",
    "KernelCodeEnergy",
    "KernelLossEnergy",
    "KernelMachineEnergy",
    "LatentClassEnergy",
    "LinearCodeEnergy",
    "LinearEnergy",
    "LinearGaussianEnergy",
    "LinearLossEnergy",
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
    "ResidualEnergy",
    "Scaled",
    "Sequence",
    "SequenceEnergy",
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
    "WhiteCodeEnergy",
    "batch_size",
    "exact_free_energy",
    "exact_minimum",
    "free_energy",
    "gradcheck",
    "label_grid",
    "marginal_way",
    "minimum_way",
    "mixture",
    "offers",
    "shapes_of",
    "space_of",
]
