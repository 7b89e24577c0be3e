"""Monte Carlo: expectations, importance sampling, gradients, and the limit theorems behind them."""

from typing import TYPE_CHECKING

from groundstate.lazy import lazy

if TYPE_CHECKING:
    from groundstate.math.stats.montecarlo.expectation import Expectation as Expectation
    from groundstate.math.stats.montecarlo.gradients import GradientEstimate as GradientEstimate
    from groundstate.math.stats.montecarlo.gradients import grad_mc as grad_mc
    from groundstate.math.stats.montecarlo.importance import (
        ImportanceEstimate as ImportanceEstimate,
    )
    from groundstate.math.stats.montecarlo.importance import importance as importance
    from groundstate.math.stats.montecarlo.integrate import expect_mc as expect_mc
    from groundstate.math.stats.montecarlo.limits import StandardizedMeans as StandardizedMeans
    from groundstate.math.stats.montecarlo.limits import running_mean as running_mean
    from groundstate.math.stats.montecarlo.limits import standardized_means as standardized_means

lazy(__name__)
