"""Learning rules: the loss is e − R, and the choice of R is the choice of rule."""

from typing import TYPE_CHECKING

from groundstate.lazy import lazy

if TYPE_CHECKING:
    from groundstate.learn.losses.energies import margin_loss as margin_loss
    from groundstate.learn.losses.energies import perceptron_loss as perceptron_loss
    from groundstate.learn.rules.adversarial import Adversarial as Adversarial
    from groundstate.learn.rules.adversarial import Game as Game
    from groundstate.learn.rules.adversarial import ReverseKL as ReverseKL
    from groundstate.learn.rules.assigned import BalancedSample as BalancedSample
    from groundstate.learn.rules.bounds.negative_elbo import NegativeELBO as NegativeELBO
    from groundstate.learn.rules.codes.reconstruction import Reconstruction as Reconstruction
    from groundstate.learn.rules.contrast import Contrast as Contrast
    from groundstate.learn.rules.contrastive import ContrastiveDivergence as ContrastiveDivergence
    from groundstate.learn.rules.contrastive import PersistentCD as PersistentCD
    from groundstate.learn.rules.contrastive import ReplayCD as ReplayCD
    from groundstate.learn.rules.denoising.diffusion import Diffusion as Diffusion
    from groundstate.learn.rules.fenchel import FenchelYoung as FenchelYoung
    from groundstate.learn.rules.fenchel import fenchel_young_loss as fenchel_young_loss
    from groundstate.learn.rules.margins.margin import Margin as Margin
    from groundstate.learn.rules.margins.one_vs_one import OneVsOne as OneVsOne
    from groundstate.learn.rules.margins.one_vs_rest import OneVsRest as OneVsRest
    from groundstate.learn.rules.margins.perceptron import Perceptron as Perceptron
    from groundstate.learn.rules.masks import MaskLoss as MaskLoss
    from groundstate.learn.rules.members import MemberLoss as MemberLoss
    from groundstate.learn.rules.missing import drop_missing as drop_missing
    from groundstate.learn.rules.naive import Naive as Naive
    from groundstate.learn.rules.negatives.generators import Affine as Affine
    from groundstate.learn.rules.negatives.generators import PushForward as PushForward
    from groundstate.learn.rules.negatives.pseudo_likelihood import (
        PseudoLikelihood as PseudoLikelihood,
    )
    from groundstate.learn.rules.paths import VelocityMatching as VelocityMatching
    from groundstate.learn.rules.phases import Phases as Phases
    from groundstate.learn.rules.phases import phases as phases
    from groundstate.learn.rules.sampled import NCE as NCE
    from groundstate.learn.rules.sampled import InBatch as InBatch
    from groundstate.learn.rules.sampled import Sampled as Sampled
    from groundstate.learn.rules.score import DenoisingScoreMatching as DenoisingScoreMatching
    from groundstate.learn.rules.score import ScoreMatching as ScoreMatching
    from groundstate.learn.rules.score import denoise as denoise
    from groundstate.learn.rules.softmin import NLL as NLL
    from groundstate.learn.rules.softmin import SoftMin as SoftMin
    from groundstate.learn.rules.softmin import softmin_loss as softmin_loss
    from groundstate.learn.rules.variational import Variational as Variational
    from groundstate.learn.rules.variational import bound as bound
    from groundstate.learn.rules.zero_one import ZeroOne as ZeroOne
    from groundstate.learn.rules.zero_one import random_search as random_search
    from groundstate.learn.rules.zero_one import zero_one as zero_one

lazy(__name__)
