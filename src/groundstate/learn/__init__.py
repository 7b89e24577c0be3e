"""LEARN: rules (loss = e − R), penalties, solvers, the stochastic trainer and its callbacks."""

from typing import TYPE_CHECKING

from groundstate.lazy import lazy

if TYPE_CHECKING:
    from groundstate.learn.base import History as History
    from groundstate.learn.base import Penalty as Penalty
    from groundstate.learn.base import Problem as Problem
    from groundstate.learn.base import Rule as Rule
    from groundstate.learn.base import Solver as Solver
    from groundstate.learn.base import Terms as Terms
    from groundstate.learn.callbacks import EMA as EMA
    from groundstate.learn.callbacks import BestCheckpoint as BestCheckpoint
    from groundstate.learn.callbacks import Callback as Callback
    from groundstate.learn.callbacks import CSVLogger as CSVLogger
    from groundstate.learn.callbacks import EarlyStopping as EarlyStopping
    from groundstate.learn.callbacks import HistoryTable as HistoryTable
    from groundstate.learn.callbacks import JSONLLogger as JSONLLogger
    from groundstate.learn.callbacks import Metrics as Metrics
    from groundstate.learn.callbacks import MLflowLogger as MLflowLogger
    from groundstate.learn.callbacks import PathRecorder as PathRecorder
    from groundstate.learn.callbacks import Plateau as Plateau
    from groundstate.learn.callbacks import Progress as Progress
    from groundstate.learn.callbacks import Regret as Regret
    from groundstate.learn.callbacks import Run as Run
    from groundstate.learn.callbacks import TensorBoardLogger as TensorBoardLogger
    from groundstate.learn.diagnose.lr_finder import RateCurve as RateCurve
    from groundstate.learn.diagnose.lr_finder import find_lr as find_lr
    from groundstate.learn.diagnose.probe import Probe as Probe
    from groundstate.learn.diagnose.probe import Signals as Signals
    from groundstate.learn.diagnose.probe import (
        gradient_autocorrelation as gradient_autocorrelation,
    )
    from groundstate.learn.diagnose.probe import probe as probe
    from groundstate.learn.diagnose.runs import Diagnosis as Diagnosis
    from groundstate.learn.diagnose.runs import Finding as Finding
    from groundstate.learn.diagnose.runs import diagnose as diagnose
    from groundstate.learn.diagnose.separation import is_separable as is_separable
    from groundstate.learn.diagnose.sharpness import sharpness as sharpness
    from groundstate.learn.fit import fit as fit
    from groundstate.learn.fit import solver_for as solver_for
    from groundstate.learn.penalties.function_norm import FunctionNorm as FunctionNorm
    from groundstate.learn.penalties.lp import Lp as Lp
    from groundstate.learn.penalties.norms import L1 as L1
    from groundstate.learn.penalties.norms import L2 as L2
    from groundstate.learn.penalties.norms import ElasticNet as ElasticNet
    from groundstate.learn.penalties.norms import SumPenalty as SumPenalty
    from groundstate.learn.penalties.priors import GaussianPrior as GaussianPrior
    from groundstate.learn.penalties.priors import LaplacePrior as LaplacePrior
    from groundstate.learn.posterior.averaging import GibbsPosterior as GibbsPosterior
    from groundstate.learn.posterior.averaging import ModelAverage as ModelAverage
    from groundstate.learn.posterior.elbo import Elbo as Elbo
    from groundstate.learn.posterior.elbo import elbo as elbo
    from groundstate.learn.posterior.gradient_comparison import EstimatorRow as EstimatorRow
    from groundstate.learn.posterior.gradient_comparison import (
        compare_estimators as compare_estimators,
    )
    from groundstate.learn.posterior.gradient_estimators import pathwise as pathwise
    from groundstate.learn.posterior.gradient_estimators import score_function as score_function
    from groundstate.learn.posterior.guides import Amortised as Amortised
    from groundstate.learn.posterior.guides import PerInstance as PerInstance
    from groundstate.learn.posterior.parameters import ParameterEnergy as ParameterEnergy
    from groundstate.learn.posterior.parameters import ThetaDraws as ThetaDraws
    from groundstate.learn.posterior.predictive import Predictive as Predictive
    from groundstate.learn.posterior.predictive import posterior_predictive as posterior_predictive
    from groundstate.learn.posterior.sgld import SGLD as SGLD
    from groundstate.learn.posterior.snapshots import Snapshots as Snapshots
    from groundstate.learn.pretrain import pretrain_layers as pretrain_layers
    from groundstate.learn.rules import NCE as NCE
    from groundstate.learn.rules import NLL as NLL
    from groundstate.learn.rules import Adversarial as Adversarial
    from groundstate.learn.rules import Affine as Affine
    from groundstate.learn.rules import Contrast as Contrast
    from groundstate.learn.rules import ContrastiveDivergence as ContrastiveDivergence
    from groundstate.learn.rules import DenoisingScoreMatching as DenoisingScoreMatching
    from groundstate.learn.rules import Diffusion as Diffusion
    from groundstate.learn.rules import FenchelYoung as FenchelYoung
    from groundstate.learn.rules import Game as Game
    from groundstate.learn.rules import InBatch as InBatch
    from groundstate.learn.rules import Margin as Margin
    from groundstate.learn.rules import MaskLoss as MaskLoss
    from groundstate.learn.rules import MemberLoss as MemberLoss
    from groundstate.learn.rules import Naive as Naive
    from groundstate.learn.rules import NegativeELBO as NegativeELBO
    from groundstate.learn.rules import OneVsOne as OneVsOne
    from groundstate.learn.rules import OneVsRest as OneVsRest
    from groundstate.learn.rules import Perceptron as Perceptron
    from groundstate.learn.rules import PersistentCD as PersistentCD
    from groundstate.learn.rules import Phases as Phases
    from groundstate.learn.rules import PseudoLikelihood as PseudoLikelihood
    from groundstate.learn.rules import PushForward as PushForward
    from groundstate.learn.rules import Reconstruction as Reconstruction
    from groundstate.learn.rules import ReplayCD as ReplayCD
    from groundstate.learn.rules import ReverseKL as ReverseKL
    from groundstate.learn.rules import Sampled as Sampled
    from groundstate.learn.rules import ScoreMatching as ScoreMatching
    from groundstate.learn.rules import SoftMin as SoftMin
    from groundstate.learn.rules import Variational as Variational
    from groundstate.learn.rules import ZeroOne as ZeroOne
    from groundstate.learn.rules import bound as bound
    from groundstate.learn.rules import denoise as denoise
    from groundstate.learn.rules import drop_missing as drop_missing
    from groundstate.learn.rules import fenchel_young_loss as fenchel_young_loss
    from groundstate.learn.rules import margin_loss as margin_loss
    from groundstate.learn.rules import perceptron_loss as perceptron_loss
    from groundstate.learn.rules import phases as phases
    from groundstate.learn.rules import random_search as random_search
    from groundstate.learn.rules import softmin_loss as softmin_loss
    from groundstate.learn.rules import zero_one as zero_one
    from groundstate.learn.rules.augmented import Augmented as Augmented
    from groundstate.learn.rules.balancing import Balance as Balance
    from groundstate.learn.rules.balancing import balance as balance
    from groundstate.learn.rules.loss_terms import LossTerms as LossTerms
    from groundstate.learn.rules.margins.one_vs_rest import OneVsRestLoss as OneVsRestLoss
    from groundstate.learn.rules.nested import Nested as Nested
    from groundstate.learn.rules.nested import adapt as adapt
    from groundstate.learn.rules.players import Follow as Follow
    from groundstate.learn.rules.players import Move as Move
    from groundstate.learn.rules.players import Player as Player
    from groundstate.learn.rules.players import Players as Players
    from groundstate.learn.rules.tokens import NextToken as NextToken
    from groundstate.learn.solvers.closed import Closed as Closed
    from groundstate.learn.solvers.em.em import EM as EM
    from groundstate.learn.solvers.glm.irls import IRLS as IRLS
    from groundstate.learn.solvers.glm.learned_noise import NoiseScoring as NoiseScoring
    from groundstate.learn.solvers.gp.evidence import Conditioning as Conditioning
    from groundstate.learn.solvers.gp.evidence import Evidence as Evidence
    from groundstate.learn.solvers.lasso.coordinate_descent import (
        CoordinateDescent as CoordinateDescent,
    )
    from groundstate.learn.solvers.latent.boltzmann import BoltzmannSGD as BoltzmannSGD
    from groundstate.learn.solvers.latent.factors.eigen_factors import EigenFactors as EigenFactors
    from groundstate.learn.solvers.latent.factors.principal_axes import (
        PrincipalAxes as PrincipalAxes,
    )
    from groundstate.learn.solvers.latent.kmeans.lloyd import Lloyd as Lloyd
    from groundstate.learn.solvers.latent.mixtures.mixture_em import MixtureEM as MixtureEM
    from groundstate.learn.solvers.lbfgs import LBFGS as LBFGS
    from groundstate.learn.solvers.lbfgs_dense import NetworkRows as NetworkRows
    from groundstate.learn.solvers.lbfgs_resident import ResidentLBFGS as ResidentLBFGS
    from groundstate.learn.solvers.linear.evidence import EvidenceUpdates as EvidenceUpdates
    from groundstate.learn.solvers.linear.least_squares import LeastSquares as LeastSquares
    from groundstate.learn.solvers.linear.quantile import QuantileProgram as QuantileProgram
    from groundstate.learn.solvers.linear.residuals import ResidualNewton as ResidualNewton
    from groundstate.learn.solvers.linear.spline import SplineSmoothing as SplineSmoothing
    from groundstate.learn.solvers.logistic.lbfgs import SoftmaxRows as SoftmaxRows
    from groundstate.learn.solvers.logistic.newton import Newton as Newton
    from groundstate.learn.solvers.logistic.sparse import ProximalNewton as ProximalNewton
    from groundstate.learn.solvers.networks.mixture_density import (
        MixtureDensityTraining as MixtureDensityTraining,
    )
    from groundstate.learn.solvers.online_numba import OnlineDescent as OnlineDescent
    from groundstate.learn.solvers.perceptron_numba import OnlinePerceptron as OnlinePerceptron
    from groundstate.learn.solvers.proximal import Proximal as Proximal
    from groundstate.learn.solvers.smoother import Smoothing as Smoothing
    from groundstate.learn.solvers.svm.crammer_singer import CrammerSinger as CrammerSinger
    from groundstate.learn.solvers.svm.dual_coordinate import HingeDual as HingeDual
    from groundstate.learn.solvers.svm.hinge.l1_numba import SquaredHingeL1 as SquaredHingeL1
    from groundstate.learn.solvers.svm.hinge.newton import SquaredHingeNewton as SquaredHingeNewton
    from groundstate.learn.solvers.svm.interior_numba import TubeInterior as TubeInterior
    from groundstate.learn.solvers.svm.smo.engine import smo as smo
    from groundstate.learn.solvers.svm.smo.solver import SMO as SMO
    from groundstate.learn.solvers.svm.smo.tube import TubeSMO as TubeSMO
    from groundstate.learn.solvers.svm.tube_numba import TubeDual as TubeDual
    from groundstate.learn.solvers.target_prop import AlternatingTargets as AlternatingTargets
    from groundstate.learn.train import schedules as schedules
    from groundstate.learn.train.checkpoint import Checkpoint as Checkpoint
    from groundstate.learn.train.hold_out import HeldOut as HeldOut
    from groundstate.learn.train.hold_out import hold_out as hold_out
    from groundstate.learn.train.learn import LearnResult as LearnResult
    from groundstate.learn.train.learn import learn as learn
    from groundstate.learn.train.optimizers import OPTIMIZERS as OPTIMIZERS
    from groundstate.learn.train.optimizers import adadelta as adadelta
    from groundstate.learn.train.optimizers import adagrad as adagrad
    from groundstate.learn.train.optimizers import adamw as adamw
    from groundstate.learn.train.optimizers import momentum as momentum
    from groundstate.learn.train.optimizers import nesterov as nesterov
    from groundstate.learn.train.optimizers import rmsprop as rmsprop
    from groundstate.learn.train.population.grid import learn_population as learn_population
    from groundstate.learn.train.population.learn import fit_population as fit_population
    from groundstate.learn.train.population.result import LearnedMember as LearnedMember
    from groundstate.learn.train.population.result import PopulationResult as PopulationResult
    from groundstate.learn.train.sources import Arrays as Arrays
    from groundstate.learn.train.sources import Items as Items
    from groundstate.learn.train.sources import Parquet as Parquet
    from groundstate.learn.train.sources import Source as Source
    from groundstate.learn.train.stochastic import Stochastic as Stochastic
    from groundstate.learn.train.stochastic import adam as adam
    from groundstate.learn.train.stochastic import sgd as sgd

lazy(__name__)
