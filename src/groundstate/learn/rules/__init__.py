"""Learning rules: the loss is e − R, and the choice of R is the choice of rule."""

from groundstate.learn.rules.margin import Margin, margin_loss
from groundstate.learn.rules.missing import drop_missing
from groundstate.learn.rules.naive import Naive
from groundstate.learn.rules.one_vs_rest import OneVsRest
from groundstate.learn.rules.perceptron import Perceptron, perceptron_loss
from groundstate.learn.rules.softmin import NLL, SoftMin, softmin_loss
from groundstate.learn.rules.zero_one import ZeroOne, random_search, zero_one

__all__ = [
    "Margin",
    "NLL",
    "Naive",
    "OneVsRest",
    "Perceptron",
    "SoftMin",
    "ZeroOne",
    "drop_missing",
    "margin_loss",
    "perceptron_loss",
    "random_search",
    "softmin_loss",
    "zero_one",
]
