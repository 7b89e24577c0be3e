r"""Regression with a tube in the space of a kernel, by the pair steps of the machine.

.. math::
    \max_\beta\; y^\top\beta - \varepsilon\|\beta\|_1 - \tfrac12\beta^\top K\beta, \qquad
    |\beta_i| \le w_i/\lambda,\; \sum_i\beta_i = 0 .

A coefficient that rises from zero gains :math:`F - \varepsilon`, one that falls loses
:math:`F + \varepsilon`, and a step that would change a sign ends at zero.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.energy.kernels.loss import KernelLossEnergy
from groundstate.errors import NotConverged
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.penalties.function_norm import FunctionNorm
from groundstate.learn.solvers.svm.smo.engine import smo
from groundstate.learn.solvers.svm.smo.rows import canonical_rows
from groundstate.math.kernels import Precomputed
from groundstate.math.losses import EpsilonInsensitive
from groundstate.registry import solvers


def _taken(x: Tensor, index: NDArray[np.int64]) -> Tensor:
    """Some rows, on the device where they are."""
    if x.device.type == "cpu":  # in a fifth of torch's time for few rows
        return torch.from_numpy(x.numpy()[index])
    return x[torch.from_numpy(index).to(x.device)]


@solvers.register(
    formula=r"\max_\beta y^\top\beta - \varepsilon\|\beta\|_1 - \tfrac12\beta^\top K\beta",
    make=lambda energy: TubeSMO(),
)
@dataclass(frozen=True)
class TubeSMO:
    """Sequential minimal optimisation of the dual; settings as in ``SMO``."""

    tol: float = 1e-3
    max_steps: int = -1
    megabytes: float = 200.0
    shrinking: bool = True

    def reason_against(self, problem: Problem) -> str | None:
        energy, penalty = problem.energy, problem.penalty
        if not isinstance(energy, KernelLossEnergy) or type(energy.loss) is not EpsilonInsensitive:
            return "it is for a sum of kernels with the loss epsilon_insensitive"
        if not problem.is_resident or set(problem.names) != {"x", "y"}:
            return "it needs resident x and y"
        if not isinstance(penalty, FunctionNorm) or penalty.strength <= 0:
            return "it needs a FunctionNorm penalty, which bounds the coefficients"
        return None

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        start, energy, penalty = time.perf_counter(), problem.energy, problem.penalty
        assert isinstance(energy, KernelLossEnergy) and isinstance(penalty, FunctionNorm)
        assert isinstance(energy.loss, EpsilonInsensitive)
        history = History(solver="TubeSMO")
        with Monitor(problem.callbacks, Run(problem, history, 1)) as monitor:
            x, given = problem.resident["x"].detach(), problem.resident["y"].detach().cpu()
            w = problem.sample_weight
            index, weight = canonical_rows(x.cpu(), given, None if w is None else w.cpu())
            y = given.numpy()[index, 0].astype(np.float64)
            eps = float(energy.loss.epsilon)
            own = _taken(x, index)
            given_gram = isinstance(energy.kernel, Precomputed)
            rows = own.double().cpu()[:, torch.from_numpy(index)] if given_gram else own
            box = weight / penalty.strength
            found = smo(
                None if given_gram else energy.kernel, rows, y, -box, box, tol=self.tol,
                max_steps=self.max_steps, megabytes=self.megabytes, shrinking=self.shrinking,
                epsilon=eps,
            )  # fmt: skip
            beta = found.beta
            kept = np.flatnonzero(beta)
            places = torch.from_numpy(index[kept])
            centers = places[:, None].to(x.dtype) if given_gram else _taken(own, kept)
            b = torch.full((1,), found.intercept, dtype=torch.float64)
            energy.set(centers, torch.from_numpy(beta[kept]), b, places)
            history.converged = found.converged
            value = found.dual(y, eps)
            history.extra["dual"] = [value]
            history.extra["kkt"] = [float(found.violation)]
            history.objective.append(value * penalty.strength / problem.total_weight)
            history.seconds.append(time.perf_counter() - start)
            monitor.epoch(history.objective[0])
        history.n_iter = max(1, found.steps)
        history.stop = "optimal" if found.converged else "max_iter"
        if not found.converged:
            warnings.warn(
                f"the dual reached a violation of {found.violation:.2g}, not tol={self.tol}, in "
                f"{found.steps} steps; raise max_iter, lower C or scale the inputs",
                NotConverged,
                stacklevel=3,
            )
        return history
