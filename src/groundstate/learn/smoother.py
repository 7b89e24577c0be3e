r"""Learning a kernel smoother: remember the rows, and choose the bandwidth by leaving one out."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.energy.smoother import Memory, SmootherClassEnergy, SmootherEnergy, safe
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.fit import solver_for
from groundstate.learn.rules.naive import Naive
from groundstate.learn.rules.softmin import SoftMin
from groundstate.learn.smo_rows import canonical_rows
from groundstate.math.kernels import Geometry, Kernel
from groundstate.registry import solvers

MOST = 2000  # rows that the bandwidth is learned on
STARTS = (-2.0, -1.0, 0.0, 1.0)  # further starts, as changes of all logarithms


@solvers.register(
    formula=r"\min_\theta \sum_i w_i\|y_i - f_{-i}(x_i)\|^2", make=lambda energy: Smoothing()
)
@solver_for(SmootherEnergy, Naive)
@solver_for(SmootherClassEnergy, SoftMin)
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

    index, weights = canonical_rows(x, values, weight)
    at = torch.from_numpy(index[:MOST]).to(x.device)
    w = torch.from_numpy(weights[:MOST]).to(x.device)
    x, values = x[at].double(), values[at].double()
    geometry, total = Geometry(x), float(w.sum())

    def objective(theta: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        t = torch.tensor(theta, dtype=x.dtype, device=x.device, requires_grad=True)
        K = kernel.of(geometry, t)
        own = K.diagonal()[:, None]
        found = K @ (w[:, None] * values) - own * values
        if normalize:
            found = found / safe(K @ w - own[:, 0])[:, None]
        loss = (w @ (found - values).square().sum(1)) / total
        (g,) = torch.autograd.grad(loss, t)
        return float(loss.detach()), g.cpu().numpy()

    bounds, theta = kernel.bounds, kernel.theta
    starts = [theta, *(theta + s for s in STARTS if s)]
    found = [
        minimize(objective, np.clip(s, *bounds.T), jac=True, method="L-BFGS-B", bounds=bounds)
        for s in starts
    ]
    best = min(found, key=lambda result: result.fun)
    return kernel.clone_with_theta(best.x), float(best.fun)


__all__ = ["Smoothing", "bandwidth"]
