"""Learning rules: the loss is e − R, and the choice of R is the choice of rule."""

from groundstate.learn.rules.adversarial import Adversarial
from groundstate.learn.rules.contrast import Contrast
from groundstate.learn.rules.contrastive import ContrastiveDivergence, PersistentCD
from groundstate.learn.rules.fenchel import FenchelYoung, fenchel_young_loss
from groundstate.learn.rules.margins.margin import Margin, margin_loss
from groundstate.learn.rules.margins.one_vs_one import OneVsOne
from groundstate.learn.rules.margins.one_vs_rest import OneVsRest
from groundstate.learn.rules.margins.perceptron import Perceptron, perceptron_loss
from groundstate.learn.rules.missing import drop_missing
from groundstate.learn.rules.naive import Naive
from groundstate.learn.rules.negatives.generators import Affine, PushForward
from groundstate.learn.rules.phases import Phases, phases
from groundstate.learn.rules.sampled import NCE, InBatch, Sampled
from groundstate.learn.rules.score import DenoisingScoreMatching, ScoreMatching, denoise
from groundstate.learn.rules.softmin import NLL, SoftMin, softmin_loss
from groundstate.learn.rules.variational import Variational, bound
from groundstate.learn.rules.zero_one import ZeroOne, random_search, zero_one

__all__ = [
    "NCE",
    "NLL",
    "Adversarial",
    "Affine",
    "Contrast",
    "ContrastiveDivergence",
    "DenoisingScoreMatching",
    "FenchelYoung",
    "InBatch",
    "Margin",
    "Naive",
    "OneVsOne",
    "OneVsRest",
    "Perceptron",
    "PersistentCD",
    "Phases",
    "PushForward",
    "Sampled",
    "ScoreMatching",
    "SoftMin",
    "Variational",
    "ZeroOne",
    "bound",
    "denoise",
    "drop_missing",
    "fenchel_young_loss",
    "margin_loss",
    "perceptron_loss",
    "phases",
    "random_search",
    "softmin_loss",
    "zero_one",
]
