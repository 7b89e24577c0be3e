r"""Stochastic gradient Langevin dynamics: learning that ends in draws of θ."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.learn.base import History, Problem
from groundstate.learn.train.stochastic import Stochastic
from groundstate.registry import solvers


@solvers.register(
    formula=r"\theta \leftarrow \theta - \tfrac\epsilon2\bigl(\nabla\Omega + \tfrac Nn\textstyle"
    r"\sum_{batch}\nabla L\bigr) + N(0, \epsilon T)",
    make=lambda energy: SGLD(),
)
@dataclass(frozen=True)
class SGLD:
    r"""Draw θ from the Gibbs posterior :math:`\propto e^{-(\sum L + \Omega)/T}` by noisy gradient
    steps, :math:`\theta \leftarrow \theta - \tfrac\epsilon2\bigl(\nabla\Omega +
    \tfrac Nn\sum_{batch}\nabla L\bigr) + N(0, \epsilon T)`.

    Collect the draws with ``Snapshots``. The step is not corrected by a rejection: on a quadratic
    with curvature c the variance is :math:`\tfrac{T/c}{1-\epsilon c/4}`, and mini-batches add theirs.
    It is ``Stochastic`` with another step, so schedules, streams, shards and exact resume are its.

    Parameters
    ----------
    step_size : ε
    T : temperature of the draws; 0 is gradient descent
    batch_size : rows (units of weight) of a step; None takes all rows
    max_epochs : passes over the data
    schedule : factor on ε as a function of the finished fraction of the run

    Examples
    --------
    >>> from groundstate.energy import CentroidEnergy
    >>> from groundstate.learn import L2, Naive, Snapshots, fit
    >>> x, z = torch.tensor([[1.0], [2.0], [6.0]]), torch.zeros(3, dtype=torch.int64)
    >>> snapshots, solver = Snapshots(start=100), SGLD(0.1, max_epochs=500)
    >>> history = fit(CentroidEnergy(1, 1), {"x": x, "z": z}, Naive(), solver,
    ...               callbacks=[snapshots], random_state=0)
    >>> len(snapshots.draws), bool(2 < snapshots.draws.theta.mean() < 4)
    (400, True)
    """

    step_size: float = 1e-3
    T: float = 1.0
    batch_size: int | None = 256
    max_epochs: int = 100
    schedule: Callable[[float], float] | None = None

    def __post_init__(self) -> None:
        if not self.step_size > 0:
            raise ValueError(f"step_size must be positive, got {self.step_size}")
        if not 0 <= self.T < float("inf"):
            raise ValueError(f"temperature must be in [0, inf), got T={self.T}")

    def reason_against(self, problem: Problem) -> str | None:
        if not problem.is_resident and iter(problem.data) is problem.data:
            return "a stream that can be read once does not say how many rows N it has"
        return Stochastic().reason_against(problem)

    def run(self, problem: Problem) -> History:
        total = problem.total_weight if problem.is_resident else _stream_weight(problem)

        def langevin(parameters: Sequence[Tensor], lr: float) -> torch.optim.Optimizer:
            return _Langevin(parameters, lr, total, self.T, problem.key.fold("langevin"))

        trainer = Stochastic(
            optimizer=langevin,
            lr=self.step_size,
            batch_size=self.batch_size,
            max_epochs=self.max_epochs,
            tol=None,
            schedule=self.schedule,
        )
        history = trainer.run(problem)
        history.solver = "SGLD"
        return history


def _stream_weight(problem: Problem) -> float:
    total = 0.0
    for batch, weight in problem.chunks(0):
        rows = len(next(iter(batch.values())))
        total += rows if weight is None else float(weight.sum())
    return total


class _Langevin(torch.optim.Optimizer):
    """The step on the mean objective J, whose gradient times N is that of ΣL + Ω.

    The noise is a function of the step's number, so a resumed run draws the same.
    """

    def __init__(
        self, parameters: Sequence[Tensor], lr: float, total: float, T: float, key: Key
    ) -> None:
        super().__init__(list(parameters), {"lr": lr})
        self.total, self.T, self.key = total, T, key

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            eps = group["lr"]
            generator: torch.Generator | None = None
            for p in group["params"]:
                state = self.state[p]
                t = int(state["step"]) if "step" in state else 0
                state["step"] = torch.tensor(t + 1)
                if generator is None:
                    generator = self.key.fold(t).torch(p.device)
                if p.grad is not None:
                    p.add_(p.grad, alpha=-0.5 * eps * self.total)
                noise = torch.randn(p.shape, generator=generator, device=p.device, dtype=p.dtype)
                p.add_(noise, alpha=(eps * self.T) ** 0.5)
