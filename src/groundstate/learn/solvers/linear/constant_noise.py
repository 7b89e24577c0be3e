r"""A linear mean with one noise for all rows: least squares, then the mean square of what is left."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from groundstate.compute.reduce import current
from groundstate.energy.basic import SquaredEnergy
from groundstate.energy.linear.learned_noise import GaussianNoiseEnergy
from groundstate.learn.base import History, Problem
from groundstate.learn.rules.naive import Naive
from groundstate.learn.solvers.linear.least_squares import LeastSquares
from groundstate.learn.solvers.passes import at_once
from groundstate.registry import solvers


@solvers.register(
    formula=r"W = (X^\top w X)^{-1}X^\top w Y, \quad \sigma^2 = \overline{r^2}",
    make=lambda energy: ConstantNoise(),
)
@dataclass(frozen=True)
class ConstantNoise:
    r"""The exact minimiser of :math:`\sum_iw_i\{\tfrac12\log 2\pi\sigma^2 + r_i^2/2\sigma^2\}`.

    W and b are those of ``LeastSquares``, on the device of the rows; then
    :math:`\sigma^2 = \sum_iw_ir_i^2/\sum_iw_i`, not below :math:`e^{-60}`.
    """

    def reason_against(self, problem: Problem) -> str | None:
        energy = problem.energy
        if not isinstance(energy, GaussianNoiseEnergy) or energy.net is not None:
            return "it is for a linear mean"
        if energy.noise != "constant":
            return "it is for one noise for all rows"
        if not problem.rule.contrast_is_constant(energy):
            return f"the contrast of {type(problem.rule).__name__} depends on θ"
        if not problem.is_resident or set(problem.names) != {"x", "y"}:
            return "it needs resident x and y"
        if problem.penalty is not None:
            return "it knows no penalty"
        return None

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        energy = problem.energy
        assert isinstance(energy, GaussianNoiseEnergy)
        with at_once(problem, "ConstantNoise") as history:
            x, y = problem.resident["x"], problem.resident["y"]
            twin = SquaredEnergy(energy.d, energy.m, bias=energy.bias).to(x.device, x.dtype)
            LeastSquares().run(replace(problem, energy=twin, rule=Naive(), callbacks=()))
            energy.W.copy_(twin.W)
            if energy.b is not None and twin.b is not None:
                energy.b.copy_(twin.b)
            square = (y - energy.scores(x)[0]).double().square()  # (n, m)
            if problem.sample_weight is not None:
                square = square * problem.sample_weight.double()[:, None]
            level = current().sum(square.sum(0)) / problem.total_weight
            score = level.log() if energy.link == "log" else level.sqrt()
            energy.c.copy_(score.clamp_min(-60.0) if energy.link == "log" else score)
        return history
