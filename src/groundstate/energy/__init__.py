"""PARAMETRISE: the energy contract, spaces, abilities, and energies by form."""

from typing import TYPE_CHECKING

from groundstate.lazy import lazy

if TYPE_CHECKING:
    from groundstate.energy.abilities import Offer as Offer
    from groundstate.energy.abilities import offers as offers
    from groundstate.energy.base import Capability as Capability
    from groundstate.energy.base import Energy as Energy
    from groundstate.energy.base import batch_size as batch_size
    from groundstate.energy.base import shapes_of as shapes_of
    from groundstate.energy.basic import BilinearEnergy as BilinearEnergy
    from groundstate.energy.basic import CentroidEnergy as CentroidEnergy
    from groundstate.energy.basic import DecoderEnergy as DecoderEnergy
    from groundstate.energy.basic import LatentClassEnergy as LatentClassEnergy
    from groundstate.energy.basic import LinearEnergy as LinearEnergy
    from groundstate.energy.basic import LinearGaussianEnergy as LinearGaussianEnergy
    from groundstate.energy.basic import NetClassEnergy as NetClassEnergy
    from groundstate.energy.basic import NetEnergy as NetEnergy
    from groundstate.energy.basic import SquaredEnergy as SquaredEnergy
    from groundstate.energy.basic import TableEnergy as TableEnergy
    from groundstate.energy.basic.density import DensityEnergy as DensityEnergy
    from groundstate.energy.basic.density import space_of as space_of
    from groundstate.energy.basic.directed import DirectedEnergy as DirectedEnergy
    from groundstate.energy.basic.labels import ClassEnergy as ClassEnergy
    from groundstate.energy.basic.likelihood import BernoulliOf as BernoulliOf
    from groundstate.energy.basic.likelihood import CategoricalOf as CategoricalOf
    from groundstate.energy.basic.likelihood import LinearNormal as LinearNormal
    from groundstate.energy.basic.likelihood import PoissonOf as PoissonOf
    from groundstate.energy.basic.linear_gaussian import LinearGaussianLVM as LinearGaussianLVM
    from groundstate.energy.basic.linear_gaussian import (
        best_squared_weights as best_squared_weights,
    )
    from groundstate.energy.check import gradcheck as gradcheck
    from groundstate.energy.compose.experts import MixtureOfExperts as MixtureOfExperts
    from groundstate.energy.compose.experts import ProductOfExperts as ProductOfExperts
    from groundstate.energy.compose.operators import Given as Given
    from groundstate.energy.compose.operators import Marginal as Marginal
    from groundstate.energy.compose.operators import Minimal as Minimal
    from groundstate.energy.compose.operators import Mixture as Mixture
    from groundstate.energy.compose.operators import Scaled as Scaled
    from groundstate.energy.compose.operators import Sum as Sum
    from groundstate.energy.compose.operators import mixture as mixture
    from groundstate.energy.exact import exact_free_energy as exact_free_energy
    from groundstate.energy.exact import exact_minimum as exact_minimum
    from groundstate.energy.exact import marginal_way as marginal_way
    from groundstate.energy.exact import minimum_way as minimum_way
    from groundstate.energy.graphical.bayesian_network import (
        BayesianNetworkEnergy as BayesianNetworkEnergy,
    )
    from groundstate.energy.graphical.circuit import CircuitEnergy as CircuitEnergy
    from groundstate.energy.graphical.emissions import CategoricalEmission as CategoricalEmission
    from groundstate.energy.graphical.emissions import GaussianEmission as GaussianEmission
    from groundstate.energy.graphical.factor_graph import FactorGraphEnergy as FactorGraphEnergy
    from groundstate.energy.graphical.hidden_markov import HiddenMarkovEnergy as HiddenMarkovEnergy
    from groundstate.energy.graphical.linear_gaussian_network import (
        LinearGaussianNetworkEnergy as LinearGaussianNetworkEnergy,
    )
    from groundstate.energy.kernels.gaussian_process.exact import FieldEnergy as FieldEnergy
    from groundstate.energy.kernels.gaussian_process.exact import ProcessEnergy as ProcessEnergy
    from groundstate.energy.kernels.loss import KernelLossEnergy as KernelLossEnergy
    from groundstate.energy.kernels.machine import KernelMachineEnergy as KernelMachineEnergy
    from groundstate.energy.kernels.smoother import SmootherClassEnergy as SmootherClassEnergy
    from groundstate.energy.kernels.smoother import SmootherEnergy as SmootherEnergy
    from groundstate.energy.latent.codes import LinearCodeEnergy as LinearCodeEnergy
    from groundstate.energy.latent.codes import WhiteCodeEnergy as WhiteCodeEnergy
    from groundstate.energy.latent.deep.autoencoder import AutoencoderEnergy as AutoencoderEnergy
    from groundstate.energy.latent.deep.energy import DeepLatentEnergy as DeepLatentEnergy
    from groundstate.energy.latent.gaussian_mixture import (
        GaussianMixtureEnergy as GaussianMixtureEnergy,
    )
    from groundstate.energy.latent.kernel_codes import KernelCodeEnergy as KernelCodeEnergy
    from groundstate.energy.latent.nonnegative_codes import (
        NonnegativeCodeEnergy as NonnegativeCodeEnergy,
    )
    from groundstate.energy.latent.probabilistic_pca import (
        FactorAnalysisEnergy as FactorAnalysisEnergy,
    )
    from groundstate.energy.latent.probabilistic_pca import (
        ProbabilisticPCAEnergy as ProbabilisticPCAEnergy,
    )
    from groundstate.energy.linear.bayesian import BayesianLinearEnergy as BayesianLinearEnergy
    from groundstate.energy.linear.glm import GLMEnergy as GLMEnergy
    from groundstate.energy.linear.learned_noise import GaussianNoiseEnergy as GaussianNoiseEnergy
    from groundstate.energy.linear.loss import LinearLossEnergy as LinearLossEnergy
    from groundstate.energy.networks.adversarial import AdversarialEnergy as AdversarialEnergy
    from groundstate.energy.networks.denoiser import DenoiserEnergy as DenoiserEnergy
    from groundstate.energy.networks.detection import DetectionEnergy as DetectionEnergy
    from groundstate.energy.networks.head import DistributionHead as DistributionHead
    from groundstate.energy.networks.mixture_density import (
        MixtureDensityEnergy as MixtureDensityEnergy,
    )
    from groundstate.energy.networks.normalizing_flow import (
        NormalizingFlowEnergy as NormalizingFlowEnergy,
    )
    from groundstate.energy.networks.residual import ResidualEnergy as ResidualEnergy
    from groundstate.energy.networks.sequence import SequenceEnergy as SequenceEnergy
    from groundstate.energy.networks.targets import StackedEnergies as StackedEnergies
    from groundstate.energy.networks.targets import TargetEnergy as TargetEnergy
    from groundstate.energy.sequences.autoregressive import Autoregressive as Autoregressive
    from groundstate.energy.sequences.chain import ChainEnergy as ChainEnergy
    from groundstate.energy.sequences.chain_rule import ChainRuleEnergy as ChainRuleEnergy
    from groundstate.energy.sequences.columns import ColumnChainEnergy as ColumnChainEnergy
    from groundstate.energy.sequences.crf import CRFEnergy as CRFEnergy
    from groundstate.energy.sequences.masked_density import (
        MaskedDensityEnergy as MaskedDensityEnergy,
    )
    from groundstate.energy.sequences.pixels import PixelChainEnergy as PixelChainEnergy
    from groundstate.energy.sequences.real_chain_rule import (
        RealChainRuleEnergy as RealChainRuleEnergy,
    )
    from groundstate.energy.sequences.step import StepState as StepState
    from groundstate.energy.spaces import Binary as Binary
    from groundstate.energy.spaces import Count as Count
    from groundstate.energy.spaces import Finite as Finite
    from groundstate.energy.spaces import GraphSpace as GraphSpace
    from groundstate.energy.spaces import Levels as Levels
    from groundstate.energy.spaces import ObjectSpace as ObjectSpace
    from groundstate.energy.spaces import RaggedOf as RaggedOf
    from groundstate.energy.spaces import Real as Real
    from groundstate.energy.spaces import Sequence as Sequence
    from groundstate.energy.spaces import Simplex as Simplex
    from groundstate.energy.spaces import Space as Space
    from groundstate.energy.spaces import TextSpace as TextSpace
    from groundstate.energy.spaces import TokenSequence as TokenSequence
    from groundstate.energy.spaces import Trajectory as Trajectory
    from groundstate.energy.spaces import label_grid as label_grid
    from groundstate.energy.undirected.restricted import RestrictedEnergy as RestrictedEnergy
    from groundstate.math.info.free_energy import free_energy as free_energy

lazy(__name__)
