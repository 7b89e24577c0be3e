"""Penalties: priors on θ, on the scale of the summed loss."""

from typing import TYPE_CHECKING

from groundstate.lazy import lazy

if TYPE_CHECKING:
    from groundstate.learn.penalties.function_norm import FunctionNorm as FunctionNorm
    from groundstate.learn.penalties.lp import Lp as Lp
    from groundstate.learn.penalties.norms import L1 as L1
    from groundstate.learn.penalties.norms import L2 as L2
    from groundstate.learn.penalties.norms import ElasticNet as ElasticNet
    from groundstate.learn.penalties.norms import SeparablePenalty as SeparablePenalty
    from groundstate.learn.penalties.norms import SumPenalty as SumPenalty
    from groundstate.learn.penalties.priors import GaussianPrior as GaussianPrior
    from groundstate.learn.penalties.priors import LaplacePrior as LaplacePrior

lazy(__name__)
