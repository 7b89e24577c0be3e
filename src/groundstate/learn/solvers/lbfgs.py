r"""Limited-memory BFGS on the full objective."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor

from groundstate.compute.device import same_convolutions
from groundstate.compute.reduce import current
from groundstate.compute.rows import elements
from groundstate.errors import NotConverged
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.solvers.table import WRITTEN, serving
from groundstate.registry import solvers

MAX_CELLS = 10_000_000


class WrittenObjective(Protocol):
    """An objective with its gradient written out, on θ as one vector of float64."""

    def __init__(self, problem: Problem) -> None: ...

    @staticmethod
    def takes(problem: Problem) -> bool:
        """Whether it is the objective of this problem."""

    def start(self) -> NDArray[np.float64]:
        """θ as it is."""

    def scatter(self, flat: NDArray[np.float64]) -> None:
        """Give θ to the energy."""

    def value_and_gradient(self, flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """The objective and its gradient at θ."""


@solvers.register(formula=r"\theta \leftarrow \theta - B_k \nabla J", make=lambda energy: LBFGS())
@dataclass(frozen=True)
class LBFGS:
    r"""Lower :math:`J(\theta)` by L-BFGS until :math:`\|\nabla J\|_\infty \le` ``tol``.

    The objective and its gradient are sums over rows, computed on the energy's device in chunks
    and added over shards; the optimiser's vectors live on the host in float64.

    Parameters
    ----------
    max_iter : iterations at most
    tol : largest entry of the gradient of the mean objective at the end
    memory : correction pairs
    chunk_rows : rows of one evaluation
    max_fun : evaluations of the objective at most
    ftol : also stop when a step lowers the objective by less than this share of it
    """

    max_iter: int = 200
    tol: float = 1e-5
    memory: int = 10
    chunk_rows: int = 2**18
    max_fun: int = 15_000
    ftol: float = 64 * 2.0**-52

    def reason_against(self, problem: Problem) -> str | None:
        rule = problem.rule
        if not problem.is_resident:
            return "the data is a stream and L-BFGS needs all rows at once"
        if not rule.is_objective:
            return f"{type(rule).__name__} gives a gradient but no objective"
        if not rule.smooth:
            return f"the loss of {type(rule).__name__} has kinks"
        if not problem.energy.smooth:
            return (
                f"{type(problem.energy).__name__} has kinks in its parameters, where it would stop"
            )
        if not rule.is_exact(problem.energy, problem.resident):
            return f"{type(rule).__name__} is not exact on this energy, so its loss is noisy"
        if any(p.requires_grad for p in rule.parameters()):
            return f"{type(rule).__name__} has parameters of its own"
        if not any(p.requires_grad for p in problem.energy.parameters()):
            return f"{type(problem.energy).__name__} has no parameters to learn by gradients"
        if problem.penalty is not None and not problem.penalty.smooth:
            return f"the penalty {type(problem.penalty).__name__} has kinks"
        return None

    def fits(self, problem: Problem) -> bool:
        """Small enough to be the default choice."""
        return problem.rows * sum(map(elements, problem.resident.values())) <= MAX_CELLS

    def run(self, problem: Problem) -> History:
        history = History(solver="LBFGS")
        run = Run(problem, history, self.max_iter)
        parameters: list[Tensor] = [p for p in problem.energy.parameters() if p.requires_grad]
        seen = [time.perf_counter()]
        fused = _written(problem)

        def scatter(theta: NDArray[np.float64]) -> None:
            if fused is None:
                _scatter(theta, parameters)
            else:
                fused.scatter(theta)

        def value_and_gradient(theta: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            if fused is not None:
                return fused.value_and_gradient(theta)
            _scatter(theta, parameters)
            value, gradient = problem.value_and_gradient(parameters, self.chunk_rows)
            return value, gradient.double().cpu().numpy()

        class Stop(Exception):
            pass

        with same_convolutions(), Monitor(problem.callbacks, run) as monitor:

            def each(intermediate_result: object) -> None:
                theta = intermediate_result.x  # type: ignore[attr-defined]
                value = float(intermediate_result.fun)  # type: ignore[attr-defined]
                if problem.callbacks or fused is None:
                    scatter(theta)
                history.objective.append(value)
                history.seconds.append(time.perf_counter() - seen[0])
                seen[0] = time.perf_counter()
                if monitor.epoch(value):
                    raise Stop

            try:
                result = minimize(
                    value_and_gradient,
                    _gather(parameters) if fused is None else fused.start(),
                    jac=True,
                    method="L-BFGS-B",
                    callback=each,
                    options={
                        "maxiter": self.max_iter,
                        "maxfun": self.max_fun,
                        "maxcor": self.memory,
                        "gtol": self.tol,
                        "ftol": self.ftol,
                        "maxls": 50,
                    },
                )
            except Stop:
                return history
        scatter(result.x)
        history.converged = result.status == 0
        history.stop = str(result.message)
        if result.status == 1 and current().rank == 0:
            warnings.warn(
                f"L-BFGS stopped after {result.nit} iterations before the gradient reached "
                f"tol={self.tol}; raise max_iter or scale the inputs",
                NotConverged,
                stacklevel=3,
            )
        return history


def _gather(parameters: list[Tensor]) -> NDArray[np.float64]:
    flat = [p.detach().reshape(-1).double().cpu() for p in parameters]
    vector: NDArray[np.float64] = torch.cat(flat).numpy() if flat else np.empty(0)
    return vector


def _written(problem: Problem) -> WrittenObjective | None:
    """The objective written out for this problem, None where there is none."""
    kinds: Iterator[type[WrittenObjective]] = serving(WRITTEN, problem.energy, problem.rule)
    return next((kind(problem) for kind in kinds if kind.takes(problem)), None)


@torch.no_grad()
def _scatter(theta: NDArray[np.float64], parameters: list[Tensor]) -> None:
    at = 0
    for p in parameters:
        piece = torch.from_numpy(theta[at : at + p.numel()])
        p.copy_(piece.reshape(p.shape))
        at += p.numel()
