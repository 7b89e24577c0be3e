r"""Stochastic descent with slowing steps and averaging, for tables and for streams.

:math:`\theta_{t+1} = \theta_t - \eta_t\nabla J_t(\theta_t)` with :math:`\eta_t = \eta_0/\sqrt{1 + t}`; what is
kept is a mean of the iterates. Without a wish :math:`\eta_0 = 1/L` for the curvature L of the loss of a
batch (half of that of the squared loss for soft-min).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from groundstate.compute.foreign.torch import foreach_lerp_
from groundstate.energy.base import Energy
from groundstate.energy.spaces import Finite
from groundstate.errors import Unsupported
from groundstate.learn.base import Batch, Penalty, Rule
from groundstate.learn.solvers.linear.least_squares_sums import is_sparse, scipy_rows
from groundstate.learn.train.stochastic import Stochastic, sgd
from groundstate.math.linalg.power import largest_eigenvalue

EPOCHS = 50
BATCH = 100
SAMPLE = 2000  # rows that show how curved the loss is
POWERS = 20  # of the power iteration
RECENT = 3  # power with which later iterates count more in the mean


def rate_for(x: Tensor, energy: Energy, batch_size: int = BATCH) -> float:
    """η₀ = 1/L for batches of such rows: L is λ_max of the mean x̃x̃ᵀ plus what a batch adds to it."""
    step = max(1, x.shape[0] // SAMPLE)
    if is_sparse(x):
        rows = torch.from_numpy(scipy_rows(x)[::step].toarray()).double()
    else:
        rows = x[::step].double()
    rows = torch.cat([rows, rows.new_ones(len(rows), 1)], 1)
    largest = largest_eigenvalue(
        lambda v: rows.T @ (rows @ v) / len(rows), rows.new_ones(rows.shape[1]), n_iter=POWERS
    )
    trace = float(rows.square().sum()) / len(rows)
    curvature = 0.5 if isinstance(energy.spaces.get("y"), Finite) else 1.0
    return 1.0 / max(curvature * (largest + trace / batch_size), 1e-300)


def averaged_descent(
    x: Tensor,
    weight: Tensor | None,
    energy: Energy,
    *,
    epochs: int | None = None,
    batch_size: int = BATCH,
    lr: float | None = None,
) -> Stochastic:
    r"""The trainer with :math:`\eta_t = \eta_0/\sqrt{1+t}` and the mean of the second half of the run.

    Parameters
    ----------
    x, weight : the rows, for the scale of the step
    energy : what is learned
    epochs : passes at most, 50 by default
    batch_size : rows of a step
    lr : η₀; None takes one over a bound on the curvature

    Examples
    --------
    >>> from groundstate.energy import LinearEnergy
    >>> round(averaged_descent(torch.ones(8, 3), None, LinearEnergy(3, 2)).lr, 3)
    0.495
    """
    if is_sparse(x):
        raise Unsupported(
            "solver='sgd' cuts mini-batches out of dense rows; use the default solver or "
            "partial_fit for sparse ones"
        )
    rows = float(len(x)) if weight is None else float(weight.sum())
    steps = max(1.0, rows / batch_size)
    most = epochs or EPOCHS
    return Stochastic(
        optimizer=sgd, lr=lr or rate_for(x, energy, batch_size), batch_size=batch_size, max_epochs=most,
        tol=None, schedule=_slowing(most * steps), average=0.5,
    )  # fmt: skip


def _slowing(steps: float) -> Callable[[float], float]:
    return lambda done: float((1.0 + done * steps) ** -0.5)


@dataclass
class Stream:
    r"""Descent on rows as they come: the state that one call hands to the next.

    The rows of a call are visited once, in their order, in batches; the penalty counts as for a
    table of the rows seen so far. The learned θ is a mean of the iterates in which the weight of the
    t-th grows as :math:`t^3`, so that the start is forgotten.

    Attributes
    ----------
    lr : η₀
    steps, seen : batches and weight so far
    theta, mean : the last iterate and the mean, by parameter
    """

    lr: float
    steps: int = 0
    seen: float = 0.0
    theta: list[Tensor] = field(default_factory=list)
    mean: list[Tensor] = field(default_factory=list)

    def consume(
        self,
        energy: Energy,
        rule: Rule,
        batch: Batch,
        weight: Tensor | None = None,
        penalty: Penalty | None = None,
        batch_size: int = BATCH,
    ) -> float:
        """Learn from further rows and put the mean of the iterates into the energy."""
        parameters: list[Any] = [p for p in energy.parameters() if p.requires_grad]
        if self.theta:
            _assign(parameters, self.theta)
        rows = int(next(iter(batch.values())).shape[0])
        loss = 0.0
        for lo in range(0, rows, batch_size):
            piece = {name: cut(v, lo, lo + batch_size) for name, v in batch.items()}
            w = None if weight is None else weight[lo : lo + batch_size]
            total = float(len(piece["y"])) if w is None else float(w.sum())
            if total == 0:
                continue
            self.seen += total
            value, _ = rule.mean(energy, piece, w, total)
            if penalty is not None:
                value = value + penalty(energy) / self.seen
            gradients = torch.autograd.grad(value, parameters)
            rate = self.lr * (1.0 + self.steps) ** -0.5
            with torch.no_grad():
                for p, g in zip(parameters, gradients, strict=True):
                    p.sub_(rate * g)
            self.steps += 1
            self._average(parameters)
            loss += float(value.detach()) * total
        self.theta = [p.detach().clone() for p in parameters]
        if self.mean:
            _assign(parameters, self.mean)
        return loss / max(self.seen, 1e-300)

    def _average(self, parameters: list[Tensor]) -> None:
        values = [p.detach() for p in parameters]
        if not self.mean:
            self.mean = [v.clone() for v in values]
        foreach_lerp_(self.mean, values, (1 + RECENT) / (self.steps + RECENT))


def cut(values: Tensor, lo: int, hi: int) -> Tensor:
    """Some rows, dense."""
    if is_sparse(values):
        return torch.from_numpy(scipy_rows(values)[lo:hi].toarray())
    return values[lo:hi]


@torch.no_grad()
def _assign(parameters: list[Any], values: list[Tensor]) -> None:
    for p, v in zip(parameters, values, strict=True):
        p.copy_(v)
