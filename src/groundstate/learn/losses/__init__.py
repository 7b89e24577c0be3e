"""Losses per row: one contract, by family, by name, and as the end of a network.

Names of torch (``MSELoss``, ``CrossEntropyLoss``, ...) are torch's own classes with torch's defaults,
among them the mean over all elements; ours first add the outputs of a row.
"""

from torch.nn import (
    BCELoss,
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    GaussianNLLLoss,
    HuberLoss,
    KLDivLoss,
    L1Loss,
    MSELoss,
    MultiMarginLoss,
    NLLLoss,
    PoissonNLLLoss,
    TripletMarginLoss,
)

from groundstate.learn.losses.binary import bce, bce_from_probability
from groundstate.learn.losses.categorical import cross_entropy, kl_divergence, nll
from groundstate.learn.losses.contract import reduce
from groundstate.learn.losses.heads import LossHead
from groundstate.learn.losses.margin import (
    hinge,
    multiclass_margin,
    perceptron,
    squared_hinge,
    zero_one,
)
from groundstate.learn.losses.overlap import dice, focal, jaccard
from groundstate.learn.losses.regression import absolute, huber, quantile, squared
from groundstate.learn.losses.simplex import brier, squared_onehot
from groundstate.learn.losses.table import LOSSES, LossRow, head_for, head_of
from groundstate.learn.losses.triplet import mine_triplets, triplet, triplet_batch
from groundstate.nn.heads.base import DistributionHead, Head
from groundstate.nn.heads.multi import MultiHead
from groundstate.nn.heads.normal import NormalHead

__all__ = [
    "LOSSES",
    "BCELoss",
    "BCEWithLogitsLoss",
    "CrossEntropyLoss",
    "DistributionHead",
    "GaussianNLLLoss",
    "Head",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "LossHead",
    "LossRow",
    "MSELoss",
    "MultiHead",
    "MultiMarginLoss",
    "NLLLoss",
    "NormalHead",
    "PoissonNLLLoss",
    "TripletMarginLoss",
    "absolute",
    "bce",
    "bce_from_probability",
    "brier",
    "cross_entropy",
    "dice",
    "focal",
    "head_for",
    "head_of",
    "hinge",
    "huber",
    "jaccard",
    "kl_divergence",
    "mine_triplets",
    "multiclass_margin",
    "nll",
    "perceptron",
    "quantile",
    "reduce",
    "squared",
    "squared_hinge",
    "squared_onehot",
    "triplet",
    "triplet_batch",
    "zero_one",
]
