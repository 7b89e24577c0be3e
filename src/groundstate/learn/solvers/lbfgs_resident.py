r"""Limited-memory BFGS whose vectors stay on the energy's device."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from groundstate.compute.recorded import Recorder
from groundstate.compute.reduce import current
from groundstate.errors import NotApplicable, NotConverged
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.solvers.lbfgs import LBFGS
from groundstate.math.optim.line_search import Line
from groundstate.registry import solvers


@solvers.register(
    formula=r"\theta \leftarrow \theta - \alpha B_k\nabla J", make=lambda energy: ResidentLBFGS()
)
@dataclass(frozen=True)
class ResidentLBFGS:
    r"""Lower :math:`J(\theta)` by L-BFGS with strong Wolfe steps until
    :math:`\|\nabla J\|_\infty \le` ``tol``.

    For smooth objectives over all rows that need thousands of steps, such as those of
    physics-informed networks. θ, the gradient and the pairs (s, y) are tensors of the energy's
    device; the direction is the compact form of Byrd, Nocedal and Schnabel (1994), a few products of
    matrices for any ``memory``, and on a GPU loss and gradient are recorded as one CUDA graph.

    Parameters
    ----------
    max_iter : iterations at most
    tol : largest entry of the gradient of the mean objective at the end
    memory : correction pairs
    chunk_rows : rows of one evaluation
    """

    max_iter: int = 1000
    tol: float = 1e-9
    memory: int = 100
    chunk_rows: int = 2**18

    def reason_against(self, problem: Problem) -> str | None:
        return LBFGS().reason_against(problem)

    def run(self, problem: Problem) -> History:
        history = History(solver="ResidentLBFGS")
        run = Run(problem, history, self.max_iter)
        objective = _Objective(problem, self.chunk_rows)
        pairs = _Pairs(self.memory, objective.theta)
        value, g = objective.both(objective.theta)
        began = time.perf_counter()
        history.stop = "max_iter"
        with Monitor(problem.callbacks, run) as monitor:
            for _ in range(self.max_iter):
                if float(g.abs().max()) <= self.tol:
                    history.converged, history.stop = True, "the gradient is below tol"
                    break
                step = self._step(objective, pairs, g)
                if step is None:
                    history.converged, history.stop = True, "no step lowers the objective any more"
                    break
                value, g = step
                history.objective.append(value)
                history.seconds.append(time.perf_counter() - began)
                began = time.perf_counter()
                if monitor.epoch(value):
                    history.stop = "a callback"
                    break
        objective.end()
        history.n_iter = len(history.objective)
        if history.stop == "max_iter" and current().rank == 0:
            warnings.warn(
                f"L-BFGS stopped after {history.n_iter} iterations before the gradient reached "
                f"tol={self.tol}; raise max_iter or scale the inputs",
                NotConverged,
                stacklevel=3,
            )
        return history

    def _step(self, objective: _Objective, pairs: _Pairs, g: Tensor) -> tuple[float, Tensor] | None:
        """One step of θ; None where even the steepest descent finds no lower value."""
        for restart in (False, True):
            if restart:
                if not len(pairs):
                    return None
                pairs.clear()
            p = -pairs.times(g)
            line = Line(objective, objective.theta, p)  # type: ignore[arg-type]
            if not line.slope0 < 0:
                continue
            first = 1.0 if len(pairs) else min(1.0, 1.0 / float(g.abs().sum()))
            alpha, value, *_ = line.wolfe(first, 1e-4, 0.9)
            if alpha > 0 and value < line.value0:
                fresh = objective.move(line.x + alpha * p, value)
                pairs.add(alpha * p, fresh - g)
                return value, fresh
        return None


class _Objective:
    """J and its gradient as functions of θ as one vector, on the device of the energy."""

    def __init__(self, problem: Problem, chunk_rows: int) -> None:
        self.problem, self.chunk_rows = problem, chunk_rows
        self.parameters = [p for p in problem.energy.parameters() if p.requires_grad]
        self.total = problem.total_weight
        self.theta = torch.cat([p.detach().reshape(-1) for p in self.parameters]).double()
        self.seen: dict[float, Tensor] = {}  # gradients of one search, by value
        self.here: tuple[float, Tensor] | None = None
        alone = current().world == 1 and problem.energy.placement()[0].type == "cuda"
        self.recorder = Recorder(self._work, lambda: []) if alone else None
        self.work: Callable[[], Tensor] = self._work if self.recorder is None else self._replayed

    def both(self, theta: Tensor) -> tuple[float, Tensor]:
        """Value and gradient; those where θ is are remembered."""
        if self.here is not None and theta is self.theta:
            return self.here
        self._scatter(theta)
        found = current().sum(self.work()) / self.total
        value, g = float(found[0]), found[1:]
        self.seen = {**self.seen, value: g}
        if theta is self.theta:
            self.here = value, g
        return value, g

    def move(self, theta: Tensor, value: float) -> Tensor:
        """Go to a point of the last search, known by its value, and remember its gradient."""
        self.theta, self.here = theta, (value, self.seen[value])
        self.seen = {}
        self._scatter(theta)  # what callbacks look at
        return self.here[1]

    def end(self) -> None:
        self._scatter(self.theta)

    @torch.no_grad()
    def _scatter(self, theta: Tensor) -> None:
        at = 0
        for p in self.parameters:
            p.copy_(theta[at : at + p.numel()].view(p.shape))
            at += p.numel()

    def _replayed(self) -> Tensor:
        assert self.recorder is not None
        try:
            found: Tensor = self.recorder()
            return found
        except NotApplicable:
            self.work, self.recorder = self._work, None
            return self._work()

    def _work(self) -> Tensor:
        """Sum of losses over the rows and its gradient, ``(1 + n,)``, without a synchronisation."""
        problem, summed = self.problem, None
        with torch.enable_grad():
            for batch, weight in problem.chunks(self.chunk_rows):
                loss = problem.rule(problem.energy, batch, generator=None).loss
                one = loss.sum() if weight is None else torch.dot(loss, weight)
                flat = problem._flat(one, self.parameters)
                summed = flat if summed is None else summed + flat
            assert summed is not None
            if problem.penalty is not None:
                share = 1 / current().world
                summed = summed + share * problem._flat(
                    problem.penalty(problem.energy), self.parameters
                )
        return summed


class _Pairs:
    r"""The last steps and changes of the gradient, and :math:`B\,g` with the inverse Hessian they imply.

    .. math:: Bg = \gamma g + S^\top R^{-\top}\bigl((D + \gamma YY^\top)R^{-1}Sg - \gamma Yg\bigr)
        - \gamma Y^\top R^{-1}Sg, \qquad R_{ij} = s_i^\top y_j\ (i \le j) .
    """

    def __init__(self, memory: int, like: Tensor) -> None:
        self.memory = memory
        self.S, self.Y = (like.new_empty(memory, len(like)) for _ in range(2))
        self.SY, self.YY = (like.new_empty(memory, memory) for _ in range(2))
        self.clear()

    def __len__(self) -> int:
        return self.used

    def clear(self) -> None:
        self.used, self.gamma = 0, 1.0

    def add(self, s: Tensor, y: Tensor) -> None:
        sy, yy = torch.stack([s @ y, y @ y]).tolist()
        if not sy > 1e-10 * yy or not yy > 0:
            return
        if self.used == self.memory:
            for rows in (self.S, self.Y):
                rows[:-1] = rows[1:].clone()
            for square in (self.SY, self.YY):
                square[:-1, :-1] = square[1:, 1:].clone()
        else:
            self.used += 1
        k = self.used - 1
        self.S[k], self.Y[k] = s, y
        S, Y = self.S[: k + 1], self.Y[: k + 1]
        self.SY[: k + 1, k] = S @ y
        self.YY[: k + 1, k] = self.YY[k, : k + 1] = Y @ y
        self.gamma = sy / yy

    def times(self, g: Tensor) -> Tensor:
        k = self.used
        if not k:
            return g
        S, Y = self.S[:k], self.Y[:k]
        R = self.SY[:k, :k].triu()
        p = torch.linalg.solve_triangular(R, (S @ g)[:, None], upper=True)[:, 0]
        inner = R.diagonal() * p + self.gamma * (self.YY[:k, :k] @ p - Y @ g)
        q = torch.linalg.solve_triangular(R.T, inner[:, None], upper=False)[:, 0]
        return self.gamma * (g - p @ Y) + q @ S
