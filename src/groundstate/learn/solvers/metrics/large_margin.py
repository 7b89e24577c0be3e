r"""Large margin nearest neighbours: targets are pulled, impostors within the margin pushed."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor

from groundstate.energy.neighbors.linear_metric import LinearMetricEnergy
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.solvers.metrics.neighborhood import reason_against, rows_of, set_map
from groundstate.learn.solvers.metrics.starts import first_map

F64 = NDArray[np.float64]
TILE = 2**18


@dataclass(frozen=True)
class LargeMargin:
    r"""Minimise, by L-BFGS over J,

    .. math::
        (1 - \mu)\sum_{i,\,j \in T_i}d_{ij} + \mu\sum_{i,\,j \in T_i}\ \sum_{l:\,y_l \ne y_i}
        [\,1 + d_{ij} - d_{il}\,]_+, \qquad d_{ij} = \|J(x_i - x_j)\|^2,

    where the targets :math:`T_i` are the k rows of one's class that were nearest before learning. A
    row of weight w counts as w rows, also among the targets.

    Parameters
    ----------
    n_neighbors : k
    regularization : μ
    init, max_iter, tol : as in `NeighborhoodComponents`
    """

    n_neighbors: int = 3
    regularization: float = 0.5
    init: Any = "auto"
    max_iter: int = 100
    tol: float = 1e-5

    def reason_against(self, problem: Problem) -> str | None:
        return reason_against(problem)

    def run(self, problem: Problem) -> History:
        energy = problem.energy
        assert isinstance(energy, LinearMetricEnergy)
        start = time.perf_counter()
        history = History(solver="LargeMargin")
        x, y, w = rows_of(problem)
        p = energy.J.shape[0]
        J = first_map(self.init, x.cpu().numpy(), y.cpu().numpy(), w.cpu().numpy(), p, problem.key)
        objective = Margins(x, y, w, self.n_neighbors, self.regularization)
        energy.remember(problem.resident["x"], problem.resident["y"], problem.sample_weight)
        with Monitor(problem.callbacks, Run(problem, history, self.max_iter)) as monitor:

            def step(intermediate_result: Any) -> None:
                set_map(energy, intermediate_result.x)
                history.objective.append(float(intermediate_result.fun))
                history.seconds.append(time.perf_counter() - start)
                if monitor.epoch(float(intermediate_result.fun)):
                    raise StopIteration

            found = minimize(
                objective, J.ravel(), jac=True, method="L-BFGS-B", tol=self.tol,
                options={"maxiter": self.max_iter}, callback=step,
            )  # fmt: skip
            set_map(energy, found.x)
        history.n_iter = int(found.nit)
        history.converged = bool(found.success)
        history.stop = str(found.message)
        return history


class Margins:
    """The objective of `LargeMargin` and its gradient, some rows at a time."""

    def __init__(self, x: Tensor, y: Tensor, w: Tensor, k: int, mu: float) -> None:
        self.x, self.y, self.w, self.mu = x - x.mean(0), y, w, mu
        self.index, self.share = targets(x, y, w, k)  # (n, k), (n, k)

    def __call__(self, J: F64) -> tuple[float, F64]:
        x, y, w = self.x, self.y, self.w
        z = x @ torch.from_numpy(J).to(x).reshape(-1, x.shape[1]).T
        gap = z[:, None] - z[self.index]  # (n, k, p)
        near = gap.square().sum(-1)  # (n, k)
        pull = w[:, None] * self.share  # weights of pairs (i, j)
        total = (1 - self.mu) * (pull * near).sum()
        weight = (1 - self.mu) * pull
        square = z.square().sum(1)
        pushed, column = torch.zeros_like(z), torch.zeros_like(square)
        row = torch.zeros_like(square)
        for part in torch.arange(len(x), device=x.device).split(max(8, TILE // len(x))):
            far = torch.addmm(square, z[part], z.T, alpha=-2) + square[part][:, None]
            other = (y[part][:, None] != y) * w  # (rows, n)
            counts = torch.zeros_like(far)
            for t in range(self.index.shape[1]):
                slack = 1 + near[part, t][:, None] - far
                active = (slack > 0) * other
                total = total + self.mu * (pull[part, t] * (slack * active).sum(1)).sum()
                each = self.mu * pull[part, t][:, None] * active
                weight[part, t] += each.sum(1)
                counts += each
            pushed[part] += counts @ z
            pushed += counts.T @ z[part]
            column += counts.sum(0)
            row[part] += counts.sum(1)
        # Σ C_il (z_i − z_l)(x_i − x_l)ᵀ = ((row + column) z − CZ − CᵀZ)ᵀ X
        push = ((row + column)[:, None] * z - pushed).T @ x
        steps = x[:, None] - x[self.index]
        pulled = torch.einsum("nk,nkp,nkd->pd", weight, gap, steps)
        return float(total), (2 * (pulled - push)).cpu().numpy().ravel()


def targets(x: Tensor, y: Tensor, w: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The nearest rows of one's class and how many of k neighbours each of them is, ``(n, k)``.

    Twins of a row come first; of a row of weight w, as many as are still wanted count.
    """
    n = len(x)
    index = torch.zeros(n, k, dtype=torch.int64, device=x.device)
    share = torch.zeros(n, k, dtype=x.dtype, device=x.device)
    for c in y.unique():
        mine = (y == c).nonzero()[:, 0]
        d = torch.cdist(x[mine], x[mine], compute_mode="donot_use_mm_for_euclid_dist")
        d.fill_diagonal_(-1.0)
        many = min(k + 1, len(mine))
        order = torch.argsort(d, dim=1, stable=True)[:, :many]
        mass = w[mine][order]
        mass[:, 0] = (mass[:, 0] - 1).clamp(min=0)  # the row itself
        before = mass.cumsum(1) - mass
        taken = torch.minimum(mass, (k - before).clamp(min=0))
        rank = torch.argsort(taken, dim=1, descending=True, stable=True)[:, :k]
        index[mine, : rank.shape[1]] = mine[order.gather(1, rank)]
        share[mine, : rank.shape[1]] = taken.gather(1, rank)
    return index, share
