r"""Neighbourhood components: the map under which a random neighbour is most often of one's own class."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor

from groundstate.compute.rows.distinct import distinct_rows
from groundstate.compute.tiles import over_slices
from groundstate.compute.weight_line.hashing import row_hash
from groundstate.energy.neighbors.linear_metric import LinearMetricEnergy
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.solvers.metrics.starts import first_map

F64 = NDArray[np.float64]
TILE = 2**17  # probabilities of one tile: it stays in cache
SLICE, SLICES = 256, 32  # rows whose sums are taken together at least, and parts at most
NARROW = 16  # directions up to which compiled loops are faster than products of matrices
LEAST = 1e-260  # sum of the chances of a row, below which digits are lost


def reason_against(problem: Problem) -> str | None:
    """Why a metric cannot be learned from this problem."""
    if not isinstance(problem.energy, LinearMetricEnergy):
        return "it is for a linear metric with remembered rows"
    if not problem.is_resident or set(problem.names) != {"x", "y"}:
        return "it needs resident x and y"
    return "it takes no penalty" if problem.penalty is not None else None


@dataclass(frozen=True)
class NeighborhoodComponents:
    r"""Maximise the expected number of right neighbours,
    :math:`f(J) = \sum_iw_i\sum_{j \ne i:\,y_j = y_i}p_{ij}`, with
    :math:`p_{ij} \propto w_j\,e^{-\|J(x_i - x_j)\|^2}`, by L-BFGS.

    Rows are sorted by class and probabilities computed row by row or tile by tile: no n × n matrix exists.

    Parameters
    ----------
    init : a name of `starts.STARTS` or an array
    max_iter, tol : of L-BFGS
    callback : called with the entries of J and the number of the step
    """

    init: Any = "auto"
    max_iter: int = 50
    tol: float = 1e-5
    callback: Callable[[F64, int], Any] | None = None

    def reason_against(self, problem: Problem) -> str | None:
        return reason_against(problem)

    def run(self, problem: Problem) -> History:
        energy = problem.energy
        assert isinstance(energy, LinearMetricEnergy)
        start = time.perf_counter()
        history = History(solver="NeighborhoodComponents")
        x, y, w = rows_of(problem)
        p = energy.J.shape[0]
        J = first_map(self.init, x.cpu().numpy(), y.cpu().numpy(), w.cpu().numpy(), p, problem.key)
        objective = Neighbors(x, y, w)
        energy.remember(problem.resident["x"], problem.resident["y"], problem.sample_weight)
        with Monitor(problem.callbacks, Run(problem, history, self.max_iter)) as monitor:

            def step(intermediate_result: Any) -> None:
                set_map(energy, intermediate_result.x)
                history.objective.append(float(intermediate_result.fun))
                history.seconds.append(time.perf_counter() - start)
                if self.callback is not None:
                    self.callback(intermediate_result.x, len(history.objective))
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


@torch.no_grad()
def set_map(energy: LinearMetricEnergy, J: F64) -> None:
    energy.J.copy_(torch.from_numpy(np.ascontiguousarray(J)).reshape(energy.J.shape))


def rows_of(problem: Problem) -> tuple[Tensor, Tensor, Tensor]:
    """Different rows in float64 with summed weights, in the order of their content: ties between
    neighbours do not depend on the order in which rows came."""
    x, y = problem.resident["x"].detach(), problem.resident["y"].detach()
    index, weights = distinct_rows(row_hash(x, y), problem.sample_weight)
    at = torch.from_numpy(index).to(x.device)
    return x[at].double(), y[at], torch.from_numpy(weights).to(x.device)


class Neighbors:
    r"""−f(J) and its gradient
    :math:`-2\,(WZ + W^\top Z - cZ)^\top X`, where :math:`W_{ij} = w_ip_{ij}([y_i = y_j] - p_i)`,
    :math:`p_i = \sum_{j:\,y_j = y_i}p_{ij}`, Z = XJᵀ and c the sums of the columns of W.

    Parameters
    ----------
    x, y, w : rows, class numbers and weights
    """

    def __init__(self, x: Tensor, y: Tensor, w: Tensor) -> None:
        order = torch.argsort(y, stable=True)
        y = y[order]
        self.x, self.w = x[order] - x.mean(0), w[order]
        counts = torch.bincount(y)
        edges = torch.cat([counts.new_zeros(1), counts.cumsum(0)]).tolist()
        self.classes = [(a, b) for a, b in pairwise(edges) if b > a]
        self.logw = None if bool((w == 1).all()) else self.w.log()
        self.own = (
            (self.w - 1).clamp(min=0).log()
        )  # a row of weight 3 has two twins, of weight 1 none
        sizes = [b - a for a, b in self.classes]
        self.bounds = tuple(np.repeat(edge, sizes) for edge in np.transpose(self.classes))

    def __call__(self, J: F64) -> tuple[float, F64]:
        narrow = len(J) <= NARROW * self.x.shape[1]
        return self._loops(J) if narrow and self.x.device.type == "cpu" else self._tiles(J)

    def _loops(self, J: F64) -> tuple[float, F64]:
        """By compiled loops over pairs of rows."""
        from groundstate.learn.solvers.metrics.neighborhood_numba import neighborhood

        x, w = self.x.numpy(), self.w.numpy()
        z = J.reshape(-1, x.shape[1]) @ x.T

        def part(low: int, high: int) -> tuple[float, F64]:
            out = np.zeros_like(z)
            return neighborhood(z, w, *self.bounds, low, high, out), out

        n = len(x)
        size = max(SLICE, -(-n // SLICES))
        parts = [part(0, n)] if n <= size else over_slices(part, n, size)
        total, pulled = map(sum, zip(*parts, strict=True))
        return -total, (2 * pulled @ x).ravel()

    def _tiles(self, J: F64) -> tuple[float, F64]:
        """By products of matrices, some rows of one class at a time."""
        x = self.x
        z = torch.from_numpy(J).to(x).reshape(-1, x.shape[1]) @ x.T  # (p, n): products are fast so
        square, one = z.square().sum(0, keepdim=True), torch.ones_like(z[:1])
        left, right = torch.cat([z, -square, -one]).T, torch.cat([2 * z, one, square])
        z1 = torch.cat([z, one])
        pulled, total = torch.zeros_like(z1), 0.0
        step = max(8, TILE // z1.shape[1])
        for low, high in self.classes:
            for a in range(low, high, step):
                b = min(high, a + step)
                U, taken = self._chances(left, right, z1, a, b)
                own = U[:, low:high]
                mine, scale, rows = _pulled(taken, z1[:, low:high] @ own.T, self.w[a:b])
                scaled = scale * z1[:, a:b]
                pulled[:, a:b] += rows
                pulled[:, low:high] += scaled @ own
                pulled -= (mine * scaled) @ U
                total += float(self.w[a:b] @ mine)
        gradient = (pulled[:-1] - pulled[-1] * z) @ x
        return -total, (-2 * gradient).cpu().numpy().ravel()

    def _chances(
        self, left: Tensor, right: Tensor, z1: Tensor, a: int, b: int
    ) -> tuple[Tensor, Tensor]:
        """U proportional to the chance that row i takes row j, ``(b - a, n)``, and (Z, 1)Uᵀ."""
        for shifted in (False, True):
            U = left[a:b] @ right
            if self.logw is not None:
                U += self.logw
            U[:, a:b].diagonal().copy_(self.own[a:b])
            if shifted:
                U -= U.amax(1, keepdim=True).clamp(min=-1e300)
            taken = z1 @ U.exp_().T
            if not float(taken[-1].min()) < LEAST:  # else the chances of a row were lost
                break
        return U, taken


def _pulled(taken: Tensor, own: Tensor, w: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """p, w over the sums of U, and (Z, 1)Wᵀ, from (Z, 1)Uᵀ and its part of the own class."""
    whole = taken[-1].clamp_min(torch.finfo(w.dtype).tiny)
    mine, scale = own[-1] / whole, w / whole
    return mine, scale, scale * (own - mine * taken)
