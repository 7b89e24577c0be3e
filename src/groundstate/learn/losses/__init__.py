"""Losses per row: one contract, by family, by name, and as the end of a network.

Names of torch (``MSELoss``, ``CrossEntropyLoss``, ...) are torch's own classes with torch's defaults,
among them the mean over all elements; ours first add the outputs of a row.
"""

from typing import TYPE_CHECKING

from groundstate.lazy import lazy

if TYPE_CHECKING:
    from torch.nn import BCELoss as BCELoss
    from torch.nn import BCEWithLogitsLoss as BCEWithLogitsLoss
    from torch.nn import CrossEntropyLoss as CrossEntropyLoss
    from torch.nn import GaussianNLLLoss as GaussianNLLLoss
    from torch.nn import HuberLoss as HuberLoss
    from torch.nn import KLDivLoss as KLDivLoss
    from torch.nn import L1Loss as L1Loss
    from torch.nn import MSELoss as MSELoss
    from torch.nn import MultiMarginLoss as MultiMarginLoss
    from torch.nn import NLLLoss as NLLLoss
    from torch.nn import PoissonNLLLoss as PoissonNLLLoss
    from torch.nn import TripletMarginLoss as TripletMarginLoss

    from groundstate.learn.losses.binary import bce as bce
    from groundstate.learn.losses.binary import bce_from_probability as bce_from_probability
    from groundstate.learn.losses.categorical import cross_entropy as cross_entropy
    from groundstate.learn.losses.categorical import kl_divergence as kl_divergence
    from groundstate.learn.losses.categorical import nll as nll
    from groundstate.learn.losses.contract import reduce as reduce
    from groundstate.learn.losses.contrastive import contrastive_pair as contrastive_pair
    from groundstate.learn.losses.contrastive import info_nce as info_nce
    from groundstate.learn.losses.contrastive import nt_xent as nt_xent
    from groundstate.learn.losses.contrastive import supcon as supcon
    from groundstate.learn.losses.diffusion import diffusion as diffusion
    from groundstate.learn.losses.gan import GANLoss as GANLoss
    from groundstate.learn.losses.gan import gan as gan
    from groundstate.learn.losses.heads import LossHead as LossHead
    from groundstate.learn.losses.margin import hinge as hinge
    from groundstate.learn.losses.margin import multiclass_margin as multiclass_margin
    from groundstate.learn.losses.margin import perceptron as perceptron
    from groundstate.learn.losses.margin import squared_hinge as squared_hinge
    from groundstate.learn.losses.margin import zero_one as zero_one
    from groundstate.learn.losses.overlap import dice as dice
    from groundstate.learn.losses.overlap import focal as focal
    from groundstate.learn.losses.overlap import jaccard as jaccard
    from groundstate.learn.losses.regression import absolute as absolute
    from groundstate.learn.losses.regression import huber as huber
    from groundstate.learn.losses.regression import quantile as quantile
    from groundstate.learn.losses.regression import squared as squared
    from groundstate.learn.losses.simplex import brier as brier
    from groundstate.learn.losses.simplex import squared_onehot as squared_onehot
    from groundstate.learn.losses.table import LOSSES as LOSSES
    from groundstate.learn.losses.table import LossRow as LossRow
    from groundstate.learn.losses.table import head_for as head_for
    from groundstate.learn.losses.table import head_of as head_of
    from groundstate.learn.losses.triplet import mine_triplets as mine_triplets
    from groundstate.learn.losses.triplet import triplet as triplet
    from groundstate.learn.losses.triplet import triplet_batch as triplet_batch
    from groundstate.math.divergences.kl import kl_gaussian as kl_gaussian
    from groundstate.nn.heads.base import DistributionHead as DistributionHead
    from groundstate.nn.heads.base import Head as Head
    from groundstate.nn.heads.multi import MultiHead as MultiHead
    from groundstate.nn.heads.normal import NormalHead as NormalHead

lazy(__name__)
