r"""Learning a kernel smoother: remember the rows, and choose the bandwidth by leaving one out."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.rows.distinct import distinct_rows
from groundstate.compute.weight_line.hashing import row_hash
from groundstate.energy.kernels.smoother import Memory, SmootherClassEnergy, SmootherEnergy, safe
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.math.kernels import Geometry, Kernel
from groundstate.registry import solvers

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
MOST = 2000  # rows that the bandwidth is learned on
STARTS = tuple(0.5 * i for i in range(-6, 4))  # of the search, as changes of all logarithms


@solvers.register(
    formula=r"\min_\theta \sum_i w_i\|y_i - f_{-i}(x_i)\|^2", make=lambda energy: Smoothing()
)
@dataclass(frozen=True)
class Smoothing:
    r"""Keep the rows; where asked, minimise :math:`\sum_i w_i\|y_i - f_{-i}(x_i)\|^2` over the free
    parameters of the kernel, :math:`f_{-i}` being the smoother without one copy of row i.

    Parameters
    ----------
    leave_one_out : learn the parameters of the kernel; False keeps them
    """

    leave_one_out: bool = False

    def reason_against(self, problem: Problem) -> str | None:
        if not isinstance(problem.energy, Memory):
            return "it is for a kernel smoother"
        if not problem.is_resident or set(problem.names) != {"x", "y"}:
            return "it needs resident x and y"
        return "it takes no penalty" if problem.penalty is not None else None

    def run(self, problem: Problem) -> History:
        energy = problem.energy
        assert isinstance(energy, SmootherEnergy | SmootherClassEnergy)
        history = History(solver="Smoothing", converged=True, stop="closed form")
        start = time.perf_counter()
        with Monitor(problem.callbacks, Run(problem, history, 1)) as monitor:
            x, y = problem.resident["x"].detach(), problem.resident["y"].detach()
            values = y
            if isinstance(energy, SmootherClassEnergy):
                values = torch.nn.functional.one_hot(y, energy.m).to(x.dtype)
            w, kernel = problem.sample_weight, energy.kernel
            if self.leave_one_out and kernel.n_dims:
                kernel, value = bandwidth(kernel, x, values, w, energy.normalize)
                history.objective.append(value)
                history.stop = "gradient"
            energy.set(x, values, w, kernel)
            history.seconds.append(time.perf_counter() - start)
            monitor.epoch(history.objective[-1] if history.objective else 0.0)
        return history


def bandwidth(
    kernel: Kernel, x: Tensor, values: Tensor, weight: Tensor | None, normalize: bool = True
) -> tuple[Kernel, float]:
    """The kernel with the smallest mean squared error of leaving one out, and that error."""
    from scipy.optimize import minimize

    index, weights = distinct_rows(row_hash(x, values), weight)
    at = torch.from_numpy(index[:MOST]).to(x.device)
    w = torch.from_numpy(weights[:MOST]).to(x.device)
    x, values = x[at].double(), values[at].double()
    geometry, total, weighted = Geometry(x), float(w.sum()), w[:, None] * values

    # the search stops at a slope that is small beside one: errors are in units of the values
    unit = float((w @ (values - w @ values / total).square()).sum().div(total).sqrt()) or 1.0

    def loss(t: Tensor) -> Tensor:
        K = kernel.of(geometry, t)
        own = K.diagonal()[:, None]
        found = K @ weighted - own * values
        if normalize:
            found = found / safe(K @ w - own[:, 0])[:, None]
        return (w @ ((found - values) / unit).square().sum(1)) / total

    def value(theta: F64) -> float:
        with torch.no_grad():
            return float(loss(torch.from_numpy(theta).to(x)))

    def objective(theta: F64) -> tuple[float, F64]:
        t = torch.from_numpy(theta).to(x).requires_grad_()
        found = loss(t)
        (g,) = torch.autograd.grad(found, t)
        return float(found.detach()), g.cpu().numpy()

    bounds, theta = kernel.bounds, kernel.theta
    start = min((np.clip(theta + s, *bounds.T) for s in STARTS), key=value)
    best = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds)
    return kernel.clone_with_theta(best.x), float(best.fun) * unit**2
