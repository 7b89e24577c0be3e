"""LEARN: rules (loss = e − R), penalties, solvers, the stochastic trainer and its callbacks."""

from groundstate.learn import schedules
from groundstate.learn.augmented import Augmented
from groundstate.learn.balancing import Balance, balance
from groundstate.learn.base import History, Penalty, Problem, Rule, Solver, Terms
from groundstate.learn.boltzmann import BoltzmannSGD
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
from groundstate.learn.checkpoint import Checkpoint
from groundstate.learn.closed import Closed
from groundstate.learn.committee_posterior import GibbsPosterior, ModelAverage
from groundstate.learn.crammer_singer import CrammerSinger
from groundstate.learn.diagnose import Diagnosis, Finding, diagnose
from groundstate.learn.dual_coordinate import HingeDual
from groundstate.learn.elbo import Elbo, elbo
from groundstate.learn.em import EM
from groundstate.learn.estimator_report import EstimatorRow, compare_estimators
from groundstate.learn.estimators import pathwise, score_function
from groundstate.learn.evidence import EvidenceUpdates
from groundstate.learn.factors import EigenFactors
from groundstate.learn.fit import fit, solver_for
from groundstate.learn.function_norm import FunctionNorm
from groundstate.learn.guides import Amortised, PerInstance
from groundstate.learn.hinge import SquaredHingeNewton
from groundstate.learn.hinge_l1 import SquaredHingeL1
from groundstate.learn.hold_out import HeldOut, hold_out
from groundstate.learn.irls import IRLS
from groundstate.learn.kmeans import Lloyd
from groundstate.learn.lbfgs import LBFGS
from groundstate.learn.least_squares import LeastSquares
from groundstate.learn.loss_terms import LossTerms
from groundstate.learn.lr_finder import RateCurve, find_lr
from groundstate.learn.mixture import MixtureEM
from groundstate.learn.mixture_density import MixtureDensityTraining
from groundstate.learn.nested import Nested, adapt
from groundstate.learn.newton import Newton
from groundstate.learn.noise_scoring import NoiseScoring
from groundstate.learn.online_perceptron import OnlinePerceptron
from groundstate.learn.penalties import (
    L1,
    L2,
    ElasticNet,
    SumPenalty,
)
from groundstate.learn.penalties_lp import Lp
from groundstate.learn.players import Follow, Move, Player, Players
from groundstate.learn.population import fit_population
from groundstate.learn.population_grid import learn_population
from groundstate.learn.population_result import LearnedMember, PopulationResult
from groundstate.learn.predictive import Predictive, posterior_predictive
from groundstate.learn.priors import GaussianPrior, LaplacePrior
from groundstate.learn.probe import Probe, Signals, gradient_autocorrelation, probe
from groundstate.learn.process import Conditioning, Evidence
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
from groundstate.learn.separation import is_separable
from groundstate.learn.sgld import SGLD
from groundstate.learn.sharpness import sharpness
from groundstate.learn.smo import SMO
from groundstate.learn.smo_engine import smo
from groundstate.learn.smoother import Smoothing
from groundstate.learn.snapshots import Snapshots
from groundstate.learn.sparse_logit import ProximalNewton
from groundstate.learn.spline import SplineSmoothing
from groundstate.learn.target_prop import AlternatingTargets
from groundstate.learn.theta import ParameterEnergy, ThetaDraws
from groundstate.learn.trainer import Stochastic, adam, sgd
from groundstate.learn.trainer_learn import LearnResult, learn
from groundstate.learn.trainer_optimizers import (
    OPTIMIZERS,
    adadelta,
    adagrad,
    adamw,
    momentum,
    nesterov,
    rmsprop,
)
from groundstate.learn.trainer_sources import Arrays, Items, Parquet, Source

__all__ = [
    "Callback",
    "Checkpoint",
    "Closed",
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
