r"""Learning a Gaussian process through inducing points."""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.compute.reduce import current
from groundstate.compute.weight_line.hashing import row_hash
from groundstate.energy.kernels.gaussian_process.exact import FieldEnergy
from groundstate.energy.kernels.gaussian_process.inducing import InducingProcessEnergy
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.solvers.gp.evidence import Evidence, merged, sketch
from groundstate.learn.solvers.gp.inducing_bound import CollapsedBound
from groundstate.math.kernels.pivots import pivoted_cholesky
from groundstate.registry import solvers

F64 = NDArray[np.float64]
CANDIDATES = 2**14  # rows that inducing points are chosen from


@solvers.register(
    formula=r"\min_\theta\ -\log N(y; 0, Q + S) + \tfrac12\operatorname{tr}S^{-1}(K - Q)",
    make=lambda energy: Inducing(),
)
@dataclass(frozen=True)
class Inducing:
    r"""Minimise the collapsed bound
    :math:`-\log N(y; 0, Q + S) + \tfrac12\operatorname{tr}S^{-1}(K - Q)`,
    :math:`Q = K_{fu}K_{uu}^{-1}K_{uf}`, over the parameters of the kernel.

    The points u are the rows that explain most of the others, chosen one after the other at the
    current kernel, and chosen again after it has been learned. Cost :math:`O(nk^2)` for k points.

    Parameters
    ----------
    noise : α, variance of each observation, a number or ``(n,)``; None takes the energy's
    n_inducing : points at most
    evidence : restarts and optimiser of the kernel's parameters
    rounds : times that points are chosen and the kernel is learned
    """

    noise: Any = None
    n_inducing: int = 512
    evidence: Evidence = dataclasses.field(default_factory=Evidence)
    rounds: int = 2

    def reason_against(self, problem: Problem) -> str | None:
        if not isinstance(problem.energy, InducingProcessEnergy):
            return "it is for a Gaussian process with inducing points"
        if not problem.is_resident or set(problem.names) != {"x", "y"} or problem.penalty:
            return "it needs resident x and y and no penalty"
        return None

    def run(self, problem: Problem) -> History:
        energy = problem.energy
        assert isinstance(energy, InducingProcessEnergy)
        history = History(solver=type(self).__name__, converged=True, stop="gradient")
        start = time.perf_counter()
        with Monitor(problem.callbacks, Run(problem, history, self._epochs())) as monitor:
            x, y = problem.resident["x"].detach(), problem.resident["y"].detach()
            noise = energy.noise if self.noise is None else self.noise
            alpha = torch.as_tensor(noise).to(x).expand(len(x))
            index, weight = merged(x, y, alpha, problem.sample_weight, ordered=True)
            field = FieldEnergy(x[index], energy.kernel, alpha[index], weight)
            y = ((y[index] - energy.shift) / energy.scale).T.contiguous()
            self._learn(field, y, problem, history, monitor)
            with torch.no_grad():
                theta = field.theta.detach().double().cpu().numpy()
                u = chosen_points(field, self.n_inducing)
                point = CollapsedBound(field, y, u).at(theta, slope=False)
            energy.know(field.learned_kernel, u, point.mu, point.root)
            history.objective.append(point.value)
            history.extra["log_marginal_likelihood"] = [-point.value]
            history.seconds.append(time.perf_counter() - start)
            if type(self) is Inducing:
                monitor.epoch(point.value / problem.total_weight)
        history.n_iter = max(1, len(history.objective))
        return history

    def _epochs(self) -> int:
        return 1

    def _start(self, field: FieldEnergy, y: Tensor, key: Key) -> bool:
        """θ from a part of a long table; whether there is anything to learn."""
        if self.evidence.optimizer is None or not field.kernel.n_dims:
            return False
        part, y_part = sketch(field, y)
        if part is None and self.evidence.restarts:  # restarts look for the right valley exactly
            part, y_part = field, y
        if part is not None:
            self.evidence.learn(part, y_part, None, key, History())
            with torch.no_grad():
                field.theta.copy_(current().broadcast(part.theta.detach()))
        return True

    def _learn(
        self, field: FieldEnergy, y: Tensor, problem: Problem, history: History, monitor: Monitor
    ) -> None:
        if not self._start(field, y, problem.key):
            return
        for _ in range(self.rounds):
            bound = CollapsedBound(field, y, chosen_points(field, self.n_inducing))
            start = field.theta.detach().double().cpu().numpy()
            theta, _ = self.evidence.minimise(bound, start, field.kernel.bounds)
            with torch.no_grad():
                field.theta.copy_(torch.as_tensor(theta))
            history.objective += bound.values


def chosen_points(field: FieldEnergy, k: int) -> Tensor:
    """Rows that explain most of the others at the field's θ, the same on every shard."""
    reduce = current()
    x = reduce.gather(field.x[: max(1, CANDIDATES // reduce.world)])
    x = x[torch.from_numpy(np.argsort(row_hash(x), kind="stable")).to(x.device)]
    at = pivoted_cholesky(field.kernel, x, k, field.theta.detach(), tol=1e-8)[1]
    return x[at]
