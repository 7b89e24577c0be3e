"""Penalties: priors on θ, on the scale of the summed loss."""

from groundstate.learn.penalties.function_norm import FunctionNorm
from groundstate.learn.penalties.lp import Lp
from groundstate.learn.penalties.norms import L1, L2, ElasticNet, SeparablePenalty, SumPenalty
from groundstate.learn.penalties.priors import GaussianPrior, LaplacePrior

__all__ = [
    "ElasticNet",
    "FunctionNorm",
    "GaussianPrior",
    "L1",
    "L2",
    "LaplacePrior",
    "Lp",
    "SeparablePenalty",
    "SumPenalty",
]
