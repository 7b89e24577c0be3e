"""Monte Carlo: expectations, importance sampling, gradients, and the limit theorems behind them."""

from groundstate.math.stats.montecarlo.expectation import Expectation
from groundstate.math.stats.montecarlo.gradients import GradientEstimate, grad_mc
from groundstate.math.stats.montecarlo.importance import ImportanceEstimate, importance
from groundstate.math.stats.montecarlo.integrate import expect_mc
from groundstate.math.stats.montecarlo.limits import (
    StandardizedMeans,
    running_mean,
    standardized_means,
)

__all__ = [
    "Expectation",
    "GradientEstimate",
    "ImportanceEstimate",
    "StandardizedMeans",
    "expect_mc",
    "grad_mc",
    "importance",
    "running_mean",
    "standardized_means",
]
