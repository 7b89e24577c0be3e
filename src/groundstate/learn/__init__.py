"""LEARN: rules (loss = e − R), penalties, solvers, the stochastic trainer and its callbacks."""

from groundstate.learn.base import History, Penalty, Problem, Rule, Solver, Terms
from groundstate.learn.callbacks import (
    EMA,
    BestCheckpoint,
    Callback,
    CSVLogger,
    EarlyStopping,
    HistoryTable,
    JSONLLogger,
    Metrics,
    MLflowLogger,
    PathRecorder,
    Plateau,
    Progress,
    Regret,
    Run,
    TensorBoardLogger,
)
from groundstate.learn.diagnose.lr_finder import RateCurve, find_lr
from groundstate.learn.diagnose.probe import Probe, Signals, gradient_autocorrelation, probe
from groundstate.learn.diagnose.runs import Diagnosis, Finding, diagnose
from groundstate.learn.diagnose.separation import is_separable
from groundstate.learn.diagnose.sharpness import sharpness
from groundstate.learn.fit import fit, solver_for
from groundstate.learn.penalties.function_norm import FunctionNorm
from groundstate.learn.penalties.lp import Lp
from groundstate.learn.penalties.norms import L1, L2, ElasticNet, SumPenalty
from groundstate.learn.penalties.priors import GaussianPrior, LaplacePrior
from groundstate.learn.posterior.averaging import GibbsPosterior, ModelAverage
from groundstate.learn.posterior.elbo import Elbo, elbo
from groundstate.learn.posterior.gradient_comparison import EstimatorRow, compare_estimators
from groundstate.learn.posterior.gradient_estimators import pathwise, score_function
from groundstate.learn.posterior.guides import Amortised, PerInstance
from groundstate.learn.posterior.parameters import ParameterEnergy, ThetaDraws
from groundstate.learn.posterior.predictive import Predictive, posterior_predictive
from groundstate.learn.posterior.sgld import SGLD
from groundstate.learn.posterior.snapshots import Snapshots
from groundstate.learn.rules import (
    NCE,
    NLL,
    Adversarial,
    Affine,
    Contrast,
    ContrastiveDivergence,
    DenoisingScoreMatching,
    FenchelYoung,
    InBatch,
    Margin,
    Naive,
    OneVsOne,
    OneVsRest,
    Perceptron,
    PersistentCD,
    Phases,
    PushForward,
    Sampled,
    ScoreMatching,
    SoftMin,
    Variational,
    ZeroOne,
    bound,
    denoise,
    drop_missing,
    fenchel_young_loss,
    margin_loss,
    perceptron_loss,
    phases,
    random_search,
    softmin_loss,
    zero_one,
)
from groundstate.learn.rules.augmented import Augmented
from groundstate.learn.rules.balancing import Balance, balance
from groundstate.learn.rules.loss_terms import LossTerms
from groundstate.learn.rules.margins.one_vs_rest import OneVsRestLoss
from groundstate.learn.rules.nested import Nested, adapt
from groundstate.learn.rules.players import Follow, Move, Player, Players
from groundstate.learn.solvers.closed import Closed
from groundstate.learn.solvers.em.em import EM
from groundstate.learn.solvers.glm.irls import IRLS
from groundstate.learn.solvers.glm.learned_noise import NoiseScoring
from groundstate.learn.solvers.gp.evidence import Conditioning, Evidence
from groundstate.learn.solvers.lasso.coordinate_descent import CoordinateDescent
from groundstate.learn.solvers.latent.boltzmann import BoltzmannSGD
from groundstate.learn.solvers.latent.factors.eigen_factors import EigenFactors
from groundstate.learn.solvers.latent.factors.principal_axes import PrincipalAxes
from groundstate.learn.solvers.latent.kmeans.lloyd import Lloyd
from groundstate.learn.solvers.latent.mixtures.mixture_em import MixtureEM
from groundstate.learn.solvers.lbfgs import LBFGS
from groundstate.learn.solvers.lbfgs_dense import NetworkRows as NetworkRows
from groundstate.learn.solvers.linear.evidence import EvidenceUpdates
from groundstate.learn.solvers.linear.least_squares import LeastSquares
from groundstate.learn.solvers.linear.quantile import QuantileProgram
from groundstate.learn.solvers.linear.residuals import ResidualNewton
from groundstate.learn.solvers.linear.spline import SplineSmoothing
from groundstate.learn.solvers.logistic.lbfgs import SoftmaxRows as SoftmaxRows
from groundstate.learn.solvers.logistic.newton import Newton
from groundstate.learn.solvers.logistic.sparse import ProximalNewton
from groundstate.learn.solvers.networks.mixture_density import MixtureDensityTraining
from groundstate.learn.solvers.online_numba import OnlineDescent
from groundstate.learn.solvers.perceptron_numba import OnlinePerceptron
from groundstate.learn.solvers.proximal import Proximal
from groundstate.learn.solvers.smoother import Smoothing
from groundstate.learn.solvers.svm.crammer_singer import CrammerSinger
from groundstate.learn.solvers.svm.dual_coordinate import HingeDual
from groundstate.learn.solvers.svm.hinge.l1_numba import SquaredHingeL1
from groundstate.learn.solvers.svm.hinge.newton import SquaredHingeNewton
from groundstate.learn.solvers.svm.interior_numba import TubeInterior
from groundstate.learn.solvers.svm.smo.engine import smo
from groundstate.learn.solvers.svm.smo.solver import SMO
from groundstate.learn.solvers.svm.smo.tube import TubeSMO
from groundstate.learn.solvers.svm.tube_numba import TubeDual
from groundstate.learn.solvers.target_prop import AlternatingTargets
from groundstate.learn.train import schedules
from groundstate.learn.train.checkpoint import Checkpoint
from groundstate.learn.train.hold_out import HeldOut, hold_out
from groundstate.learn.train.learn import LearnResult, learn
from groundstate.learn.train.optimizers import (
    OPTIMIZERS,
    adadelta,
    adagrad,
    adamw,
    momentum,
    nesterov,
    rmsprop,
)
from groundstate.learn.train.population.grid import learn_population
from groundstate.learn.train.population.learn import fit_population
from groundstate.learn.train.population.result import LearnedMember, PopulationResult
from groundstate.learn.train.sources import Arrays, Items, Parquet, Source
from groundstate.learn.train.stochastic import Stochastic, adam, sgd

__all__ = [
    "Callback",
    "Checkpoint",
    "Closed",
    "CoordinateDescent",
    "CrammerSinger",
    "EarlyStopping",
    "EvidenceUpdates",
    "GibbsPosterior",
    "HingeDual",
    "History",
    "IRLS",
    "LBFGS",
    "LearnedMember",
    "LeastSquares",
    "ModelAverage",
    "Newton",
    "NoiseScoring",
    "OneVsRest",
    "OnlinePerceptron",
    "Penalty",
    "PopulationResult",
    "PrincipalAxes",
    "Problem",
    "Progress",
    "Rule",
    "Run",
    "Solver",
    "SplineSmoothing",
    "SquaredHingeL1",
    "SquaredHingeNewton",
    "Stochastic",
    "Terms",
    "adam",
    "fit",
    "fit_population",
    "learn_population",
    "sgd",
    "solver_for",
    "ElasticNet",
    "GaussianPrior",
    "L1",
    "L2",
    "LaplacePrior",
    "Lp",
    "Margin",
    "NLL",
    "Naive",
    "Perceptron",
    "SoftMin",
    "SumPenalty",
    "ZeroOne",
    "drop_missing",
    "margin_loss",
    "perceptron_loss",
    "random_search",
    "softmin_loss",
    "zero_one",
    "Adversarial",
    "Affine",
    "Contrast",
    "ContrastiveDivergence",
    "DenoisingScoreMatching",
    "FenchelYoung",
    "InBatch",
    "NCE",
    "PersistentCD",
    "Phases",
    "PushForward",
    "Sampled",
    "ScoreMatching",
    "Variational",
    "bound",
    "denoise",
    "fenchel_young_loss",
    "phases",
    "AlternatingTargets",
    "Amortised",
    "EM",
    "BoltzmannSGD",
    "EigenFactors",
    "Lloyd",
    "MixtureDensityTraining",
    "MixtureEM",
    "Elbo",
    "EstimatorRow",
    "ParameterEnergy",
    "PerInstance",
    "Predictive",
    "SGLD",
    "Snapshots",
    "ThetaDraws",
    "compare_estimators",
    "elbo",
    "pathwise",
    "posterior_predictive",
    "score_function",
    "Conditioning",
    "Evidence",
    "FunctionNorm",
    "OneVsOne",
    "SMO",
    "smo",
    "Smoothing",
    "QuantileProgram",
    "ResidualNewton",
    "OnlineDescent",
    "TubeSMO",
    "TubeInterior",
    "TubeDual",
    "OneVsRestLoss",
    "Proximal",
    "ProximalNewton",
    "is_separable",
    "Augmented",
    "Balance",
    "balance",
    "BestCheckpoint",
    "CSVLogger",
    "Diagnosis",
    "EMA",
    "Finding",
    "Follow",
    "HistoryTable",
    "JSONLLogger",
    "LossTerms",
    "MLflowLogger",
    "Metrics",
    "Move",
    "Nested",
    "PathRecorder",
    "Plateau",
    "Player",
    "Players",
    "Probe",
    "RateCurve",
    "Regret",
    "Signals",
    "TensorBoardLogger",
    "adapt",
    "diagnose",
    "find_lr",
    "gradient_autocorrelation",
    "probe",
    "schedules",
    "sharpness",
    "Arrays",
    "Items",
    "LearnResult",
    "OPTIMIZERS",
    "Parquet",
    "Source",
    "adadelta",
    "adagrad",
    "adamw",
    "learn",
    "momentum",
    "nesterov",
    "rmsprop",
    "HeldOut",
    "hold_out",
]
