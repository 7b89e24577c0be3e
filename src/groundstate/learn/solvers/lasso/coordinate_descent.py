r"""Coordinate descent for the lasso and the elastic net, with a certificate of how close it is."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from groundstate.energy.basic import SquaredEnergy
from groundstate.errors import NotConverged
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.penalties.norms import L1, ElasticNet
from groundstate.learn.solvers.lasso.moments import designs_of
from groundstate.learn.solvers.lasso.path import solve_path
from groundstate.learn.solvers.lasso.polish import polished, solve_few
from groundstate.registry import solvers


@solvers.register(
    formula=r"w_j \leftarrow S(x_j^\top r + \|x_j\|^2w_j, \lambda)/(\|x_j\|^2 + \mu)",
    make=lambda energy: CoordinateDescent(),
)
@dataclass(frozen=True)
class CoordinateDescent:
    r"""Solve :math:`\min_{W,b} \tfrac12\sum_i w_i\|y_i - Wx_i - b\|^2 + \lambda\|W\|_1 + \tfrac\mu2\|W\|^2`.

    A working set of columns, those that violate the optimality conditions most, is solved by cyclic
    coordinate steps on its Gram matrix with Anderson extrapolation; the set grows until the duality
    gap certifies the solution. Columns that the gap proves to be zero are left out. The optimum of few
    columns is found by exchanges of active ones instead. Outputs are independent problems. Sparse
    rows stay sparse.

    Parameters
    ----------
    max_iter : passes over the working set at most
    tol : duality gap at the end, relative to :math:`\|y - \bar y\|^2`
    positive : allow no weight below zero
    precompute : True for the whole Gram matrix, "auto" or False where that is cheaper
    """

    max_iter: int = 1000
    tol: float = 1e-4
    positive: bool = False
    precompute: Any = "auto"

    def reason_against(self, problem: Problem) -> str | None:
        energy, penalty = problem.energy, problem.penalty
        if not isinstance(energy, SquaredEnergy) or energy.net is not None:
            return "it is for a linear squared energy"
        if not problem.rule.contrast_is_constant(energy):
            return f"the contrast of {type(problem.rule).__name__} depends on θ"
        if not problem.is_resident or set(problem.names) != {"x", "y"}:
            return "it needs resident x and y"
        if not isinstance(penalty, L1 | ElasticNet):
            return "it needs an L1 or elastic-net penalty"
        if penalty.select is not None or penalty.intercept:
            return "it penalises all weights and no intercept"
        y = problem.resident["y"].detach()
        light = y.device.type == "cpu" and y.dtype in (torch.float32, torch.float64)
        known = np.isfinite(y.numpy()) if light else torch.isfinite(y)
        if not bool(known.all()):
            return "some targets are unknown"
        return None

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        history = History(solver="CoordinateDescent")
        run = Run(problem, history, self.max_iter)
        energy, penalty = problem.energy, problem.penalty
        assert isinstance(energy, SquaredEnergy) and isinstance(penalty, L1 | ElasticNet)
        ratio = penalty.l1_ratio if isinstance(penalty, ElasticNet) else 1.0
        strengths = [(float(penalty.strength) * ratio, float(penalty.strength) * (1 - ratio))]
        x, y = problem.resident["x"].detach().cpu(), problem.resident["y"].detach().cpu()
        weight = None if problem.sample_weight is None else problem.sample_weight.cpu()
        if weight is not None and bool((weight == 0).any()) and x.layout != torch.sparse_csr:
            kept = weight > 0
            x, y, weight = x[kept], y[kept], weight[kept]
        start = time.perf_counter()
        bias = energy.b is not None
        designs = designs_of(columns_of(x), y, weight, bias, 1, self.precompute)
        gaps, epochs = [], []
        with Monitor(problem.callbacks, run) as monitor:
            for output, design in enumerate(designs):
                base = sum(history.extra.get("done", [0.0]))

                def report(w: Any, value: float, design: Any = design, output: int = output,
                         base: float = base) -> bool:  # fmt: skip
                    """Put the weights into the energy where somebody looks at them."""
                    history.objective.append((base + value) / design.W)
                    history.seconds.append(time.perf_counter() - start)
                    _write(energy, output, w, design)
                    return monitor.epoch(history.objective[-1])

                first = energy.W[output].double().cpu().numpy()
                few = None
                if not monitor.callbacks:
                    few = solve_few(design, first, *strengths[0], self.positive, self.tol)
                found = few or solve_path(
                    design, strengths, tol=self.tol, max_iter=self.max_iter,
                    positive=self.positive, start=first if first.any() else None,
                    on_round=report if monitor.callbacks else None,
                )  # fmt: skip
                if not monitor.callbacks:
                    history.objective += [(base + v) / design.W for v in found.rounds[0]]
                    history.seconds += [time.perf_counter() - start] * len(found.rounds[0])
                    history.n_iter = len(history.objective)
                best = found.coefs[:, 0]
                if few is None:
                    best = polished(design, best, *strengths[0], self.positive)
                _write(energy, output, best, design)
                gaps.append(float(found.gaps[0]) / design.W)
                epochs.append(float(found.epochs[0]))
                history.extra.setdefault("done", []).append(float(found.objectives[0]))
                history.converged = bool(found.gaps[0] <= self.tol * design.yy * (1 + 1e-12))
                if not history.converged and not history.stop:
                    warnings.warn(
                        f"coordinate descent stopped after {int(epochs[-1])} passes with a duality "
                        f"gap of {gaps[-1]:.3g}, above tol={self.tol} times the mean square of y "
                        f"({design.yy / design.W:.3g}); raise max_iter or scale the columns",
                        NotConverged,
                        stacklevel=3,
                    )
        history.extra = {"dual_gap": gaps, "epochs": epochs}
        history.stop = history.stop or ("duality gap" if history.converged else "max_iter")
        return history


def columns_of(x: Tensor) -> Any:
    """Dense rows as they are; CSR rows as SciPy's CSC."""
    if x.layout != torch.sparse_csr:
        return x
    from scipy.sparse import csr_matrix

    parts = (x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy())
    return csr_matrix(parts, shape=tuple(x.shape)).tocsc()


def _write(energy: SquaredEnergy, output: int, w: Any, design: Any) -> None:
    bias = design.mean_y - float(design.mean_x @ w)
    if energy.W.device.type == "cpu":  # few numbers: NumPy writes them in a third of the time
        energy.W.detach().numpy()[output] = w
        if energy.b is not None:
            energy.b.detach().numpy()[output] = bias
        return
    energy.W[output].copy_(torch.from_numpy(np.asarray(w)))
    if energy.b is not None:
        energy.b[output] = bias
