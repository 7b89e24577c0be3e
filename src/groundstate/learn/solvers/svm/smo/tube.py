r"""Regression with a tube in the space of a kernel, by the pair steps of the machine.

.. math::
    \max_\beta\; y^\top\beta - \varepsilon\|\beta\|_1 - \tfrac12\beta^\top K\beta, \qquad
    |\beta_i| \le w_i/\lambda,\; \sum_i\beta_i = 0 .

:math:`\beta = \beta^+ + \beta^-` with a positive and a negative part of their own is a machine with
twice the rows, whose errors begin at :math:`y - \varepsilon` and :math:`y + \varepsilon`.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass

import numpy as np
import torch

from groundstate.energy.kernels.loss import KernelLossEnergy
from groundstate.errors import NotConverged
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.fit import solver_for
from groundstate.learn.penalties.function_norm import FunctionNorm
from groundstate.learn.rules.naive import Naive
from groundstate.learn.solvers.svm.smo.engine import in_one_piece, smo
from groundstate.learn.solvers.svm.smo.rows import canonical_rows, gram
from groundstate.math.kernels import Precomputed
from groundstate.math.losses import EpsilonInsensitive
from groundstate.registry import solvers


@solvers.register(
    formula=r"\max_\beta y^\top\beta - \varepsilon\|\beta\|_1 - \tfrac12\beta^\top K\beta",
    make=lambda energy: TubeSMO(),
)
@solver_for(KernelLossEnergy, Naive)
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
            y, n = given.double().numpy()[index, 0], len(index)
            at, eps = torch.from_numpy(index), energy.loss.epsilon
            own = x[at.to(x.device)]
            if isinstance(energy.kernel, Precomputed):
                matrix = own.double().cpu()[:, at]
            elif in_one_piece(2 * n, self.megabytes) and x.device.type == "cpu":
                matrix = torch.from_numpy(gram(energy.kernel, own))
            else:
                matrix = None
            if matrix is None:
                rows = own.repeat(2, 1)
            else:
                twice = np.empty((2, n, 2, n))
                twice[...] = matrix.numpy()[None, :, None, :]
                rows = torch.from_numpy(twice.reshape(2 * n, 2 * n))
            targets = np.concatenate([y - eps, y + eps])
            box, zero = weight / penalty.strength, np.zeros(n)
            found = smo(
                energy.kernel if matrix is None else None, rows, targets,
                np.concatenate([zero, -box]), np.concatenate([box, zero]), tol=self.tol,
                max_steps=self.max_steps, megabytes=self.megabytes, shrinking=self.shrinking,
            )  # fmt: skip
            beta = found.beta[:n] + found.beta[n:]
            kept = np.flatnonzero(beta)
            places = torch.from_numpy(index[kept])
            centers = (
                places[:, None].to(x.dtype)
                if isinstance(energy.kernel, Precomputed)
                else x[places.to(x.device)]
            )
            energy.set(
                centers, torch.from_numpy(beta[kept]), torch.tensor([found.intercept]), places
            )
            history.converged = found.converged
            value = found.dual(targets)
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
