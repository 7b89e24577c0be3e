r"""Least squares and ridge: the closed form of a linear squared energy, on the rows themselves."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from groundstate.compute.reduce import current
from groundstate.energy.reference import SquaredEnergy
from groundstate.errors import DataError
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.fit import solver_for
from groundstate.learn.penalties import L2, plain_l2
from groundstate.learn.rules.naive import Naive
from groundstate.learn.rules.softmin import SoftMin
from groundstate.registry import solvers

CHUNK = 2**21  # elements of a centred block: it stays in the cache between its two uses
WELL_CONDITIONED = 1e-5  # smallest pivot of the unit-diagonal Gram matrix that is trusted


@solvers.register(
    formula=r"W = (X^\top w X + \lambda)^{-1} X^\top w Y", make=lambda energy: LeastSquares()
)
@solver_for(SquaredEnergy, SoftMin)
@solver_for(SquaredEnergy, Naive)
@dataclass(frozen=True)
class LeastSquares:
    r"""Solve :math:`\min_{W,b} \tfrac12\sum_i w_i\|y_i - Wx_i - b\|^2 + \tfrac\lambda2\|W\|^2`.

    Rows are centred first, so large means cost no digits. While the Gram matrix is well conditioned
    one Cholesky factor and one step of iterative refinement give the solution; otherwise a complete
    orthogonal decomposition of the rows gives the one of smallest norm. Everything summed over
    rows is summed over shards.
    """

    def reason_against(self, problem: Problem) -> str | None:
        energy = problem.energy
        if not isinstance(energy, SquaredEnergy) or energy.net is not None:
            return "it is for a linear squared energy"
        if not problem.rule.contrast_is_constant(energy):
            return f"the contrast of {type(problem.rule).__name__} depends on θ"
        if not problem.is_resident or set(problem.names) != {"x", "y"}:
            return "it needs resident x and y"
        if problem.penalty is not None and not plain_l2(problem.penalty):
            return "its only penalty is L2 on the weights"
        return None

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        start = time.perf_counter()
        energy = problem.energy
        assert isinstance(energy, SquaredEnergy)
        history = History(converged=True, solver="LeastSquares", stop="closed form")
        with Monitor(problem.callbacks, Run(problem, history, max_epochs=1)) as monitor:
            rows = _Centred(problem)
            strength = problem.penalty.strength if isinstance(problem.penalty, L2) else 0.0
            W, rank = rows.solve(float(strength))
            energy.W.copy_(W.T)
            if energy.b is not None:
                energy.b.copy_(rows.mean_y - rows.mean_x @ W)
            history.seconds.append(time.perf_counter() - start)
            history.extra["rank"] = [float(rank)]
            if problem.callbacks:
                history.objective.append(float(problem.objective()))
            monitor.epoch(history.objective[0] if history.objective else math.nan)
        return history


class _Centred:
    """Rows about their weighted mean, block by block."""

    def __init__(self, problem: Problem) -> None:
        self.x, self.y = problem.resident["x"], problem.resident["y"]
        self.w = problem.sample_weight
        self.total = problem.total_weight
        if not self.total > 0:
            raise DataError("the weights sum to zero; at least one row needs a positive weight")
        self.mean_x = self.x.new_zeros(self.x.shape[1], dtype=torch.float64)
        self.mean_y = self.y.new_zeros(self.y.shape[1], dtype=torch.float64)
        if problem.energy.b is not None:
            self._center()

    def _center(self) -> None:
        if self.w is None:
            sums = {
                "x": self.x.sum(0, dtype=torch.float64),
                "y": self.y.sum(0, dtype=torch.float64),
            }
        else:
            w = self.w.double()
            sums = {"x": w @ self.x.double(), "y": w @ self.y.double()}
        sums = current().sum_dict(sums)
        self.mean_x, self.mean_y = sums["x"] / self.total, sums["y"] / self.total

    def blocks(self) -> Iterator[tuple[Tensor, Tensor, Tensor | None]]:
        """Centred float64 blocks ``(n, d)``, ``(n, m)`` with their weights."""
        step = max(1, CHUNK // max(1, self.x.shape[1]))
        for at in range(0, len(self.x), step):
            x = self.x[at : at + step].double() - self.mean_x
            y = self.y[at : at + step].double() - self.mean_y
            yield x, y, None if self.w is None else self.w[at : at + step].double()

    def solve(self, strength: float) -> tuple[Tensor, int]:
        """W ``(d, m)`` and the rank of the centred rows."""
        d = self.x.shape[1]
        if d <= self.total:
            W = self._by_gram(strength)
            if W is not None:
                return W, d
        return self._by_rows(strength)

    def _by_gram(self, strength: float) -> Tensor | None:
        d, m = self.x.shape[1], self.y.shape[1]
        gram = self.mean_x.new_zeros(d, d)
        cross = self.mean_x.new_zeros(d, m)
        for x, y, w in self.blocks():
            weighted = x if w is None else x * w[:, None]
            gram.addmm_(weighted.T, x)
            cross.addmm_(weighted.T, y)
        sums = current().sum_dict({"g": gram, "c": cross})
        gram, cross = sums["g"], sums["c"]
        gram.diagonal().add_(strength)
        scale = gram.diagonal().clamp_min(0).sqrt()
        if not bool((scale > 0).all()):
            return None
        factor, failed = torch.linalg.cholesky_ex(gram / scale[:, None] / scale)
        if int(failed) or float(factor.diagonal().min()) < WELL_CONDITIONED:
            return None

        def apply_inverse(right: Tensor) -> Tensor:
            return torch.cholesky_solve(right / scale[:, None], factor) / scale[:, None]

        W = apply_inverse(cross)
        return W + apply_inverse(self._gradient(W) - strength * W)

    def _gradient(self, W: Tensor) -> Tensor:
        """Xᵀ w (Y − X W) over all rows and shards."""
        out = torch.zeros_like(W)
        for x, y, w in self.blocks():
            residual = torch.addmm(y, x, W, alpha=-1.0)
            out.addmm_(x.T, residual if w is None else residual * w[:, None])
        return current().sum(out)

    def _by_rows(self, strength: float) -> tuple[Tensor, int]:
        parts = [
            (x, y) if w is None else (x * w.sqrt()[:, None], y * w.sqrt()[:, None])
            for x, y, w in self.blocks()
        ]
        x, y = torch.cat([p[0] for p in parts]), torch.cat([p[1] for p in parts])
        d = x.shape[1]
        if len(x) > d:  # only R and Qᵀy matter, and they are small enough to gather
            q, r = torch.linalg.qr(x)
            x, y = r, q.T @ y
        x, y = current().gather(x), current().gather(y)
        u, s, vt = torch.linalg.svd(x, full_matrices=False)
        cutoff = float(s.max()) * max(x.shape) * torch.finfo(s.dtype).eps if len(s) else 0.0
        kept = s > cutoff
        safe = torch.where(kept, s, 1.0)
        gain = torch.where(kept, safe / (safe * safe + strength), 0.0)
        return vt.T @ (gain[:, None] * (u.T @ y)), int(kept.sum())
