r"""Information-theoretic metrics: as near to a prior as bounds on the distances of pairs allow."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from groundstate.energy.neighbors.linear_metric import LinearMetricEnergy
from groundstate.errors import NotConverged
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.solvers.metrics.neighborhood import reason_against, set_map
from groundstate.learn.solvers.metrics.pairs import Pairs

F64 = NDArray[np.float64]


@dataclass(frozen=True)
class InformationTheoretic:
    r"""Minimise the divergence of Gaussians with precisions M and :math:`M_0`,

    .. math:: \operatorname{tr}(MM_0^{-1}) - \log\det(MM_0^{-1}) - d + \gamma\,(\text{slack}),

    under :math:`v^\top Mv \le u` for similar pairs and :math:`\ge l` for different ones, by Bregman
    projections onto one bound after the other.

    Parameters
    ----------
    pairs : Pairs
    prior : M₀, ``(d, d)``
    bounds : (u, l)
    gamma : weight of the slack; infinity allows none
    max_iter, tol : passes over the pairs, and the relative move of the duals at which to stop
    remembers : whether the energy keeps the rows
    """

    pairs: Pairs
    prior: F64
    bounds: tuple[float, float]
    gamma: float = 1.0
    max_iter: int = 1000
    tol: float = 1e-3
    remembers: bool = True

    def reason_against(self, problem: Problem) -> str | None:
        return reason_against(problem)

    def run(self, problem: Problem) -> History:
        from groundstate.learn.solvers.metrics.information_theoretic_numba import sweep

        energy = problem.energy
        assert isinstance(energy, LinearMetricEnergy)
        start = time.perf_counter()
        history = History(solver="InformationTheoretic")
        V = np.ascontiguousarray(np.concatenate([self.pairs.similar, self.pairs.different]))
        sign = np.repeat([1.0, -1.0], [len(self.pairs.similar), len(self.pairs.different)])
        bound = np.where(sign > 0, *self.bounds).astype(np.float64)
        dual, A = np.zeros(len(V)), np.ascontiguousarray(self.prior, dtype=np.float64).copy()
        with Monitor(problem.callbacks, Run(problem, history, self.max_iter)) as monitor:
            for _ in range(self.max_iter):
                before = np.linalg.norm(dual)
                moved = sweep(A, V, sign, bound, dual, float(self.gamma))
                size = before + np.linalg.norm(dual)
                change = moved / size if size > 0 else 0.0
                history.objective.append(divergence(A, self.prior))
                history.seconds.append(time.perf_counter() - start)
                history.n_iter += 1
                history.converged = change < self.tol
                if monitor.epoch(history.objective[-1]) or history.converged:
                    break
            set_map(energy, root(A, energy.J.shape[0]))
            if self.remembers:
                energy.remember(problem.resident["x"], problem.resident["y"], problem.sample_weight)
        history.stop = "tol" if history.converged else "max_iter"
        if not history.converged and history.n_iter == self.max_iter:
            warnings.warn(
                f"ITML stopped after max_iter={self.max_iter} passes with a change of {change:.2g} of "
                f"its duals, more than tol={self.tol:g}; raise max_iter or tol, or lower gamma",
                NotConverged,
                stacklevel=2,
            )
        return history


def divergence(M: F64, prior: F64) -> float:
    """tr(M M₀⁻¹) − log det(M M₀⁻¹) − d."""
    ratio = np.linalg.solve(prior, M)
    return float(np.trace(ratio) - np.linalg.slogdet(ratio)[1] - len(M))


def root(M: F64, p: int) -> F64:
    """J with JᵀJ = M, or the nearest of p rows: directions of largest eigenvalues, ``(p, d)``."""
    values, vectors = np.linalg.eigh((M + M.T) / 2)
    J = (vectors * np.sqrt(values.clip(min=0))).T[::-1]
    peak = np.take_along_axis(J, np.abs(J).argmax(1)[:, None], 1)
    found: F64 = (J * np.where(peak < 0, -1.0, 1.0))[:p]
    return found
