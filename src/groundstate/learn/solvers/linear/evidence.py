r"""Bayesian linear regression: precisions that maximise the evidence."""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from groundstate.compute.reduce import current
from groundstate.energy.linear.bayesian import BayesianLinearEnergy
from groundstate.errors import NotConverged
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.registry import solvers

F64 = NDArray[np.float64]


@solvers.register(
    formula=r"\lambda \leftarrow \gamma/\|m\|^2,\ \alpha \leftarrow (n-\gamma)/\mathrm{SSE}",
    make=lambda energy: EvidenceUpdates(),
)
@dataclass(frozen=True)
class EvidenceUpdates:
    r"""The distribution of the weights, :math:`N(m, S)`, and precisions that the data choose.

    :math:`S = (\lambda I + \alpha X^\top X)^{-1}`, :math:`m = \alpha SX^\top y` about the means. With
    :math:`\gamma = \sum_j \alpha s_j^2/(\lambda + \alpha s_j^2)` well-determined directions, the updates
    :math:`\lambda = (\gamma + 2\lambda_1)/(\|m\|^2 + 2\lambda_2)` and
    :math:`\alpha = (n - \gamma + 2\alpha_1)/(\mathrm{SSE} + 2\alpha_2)` raise the evidence (MacKay).
    One orthogonal decomposition of the rows serves all of them; they run on the host, where a few
    numbers per direction are quickest.

    Parameters
    ----------
    max_iter : updates at most; 0 keeps the initial precisions
    tol : summed change of the weights at the end
    alpha_1, alpha_2, lambda_1, lambda_2 : shapes and rates of gamma priors of the precisions
    alpha_init, lambda_init : initial precisions; None is 1/Var(y), and 1
    """

    max_iter: int = 300
    tol: float = 1e-3
    alpha_1: float = 1e-6
    alpha_2: float = 1e-6
    lambda_1: float = 1e-6
    lambda_2: float = 1e-6
    alpha_init: float | None = None
    lambda_init: float | None = None

    def reason_against(self, problem: Problem) -> str | None:
        if not isinstance(problem.energy, BayesianLinearEnergy):
            return "it is for a linear energy with a distribution of its weights"
        if not problem.rule.contrast_is_constant(problem.energy):
            return f"the contrast of {type(problem.rule).__name__} depends on θ"
        if not problem.is_resident or set(problem.names) != {"x", "y"}:
            return "it needs resident x and y"
        if problem.penalty is not None:
            return "its prior is its penalty"
        return None

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        energy = problem.energy
        assert isinstance(energy, BayesianLinearEnergy)
        history = History(solver="EvidenceUpdates", converged=True, stop="weights")
        rows = _Directions(problem)
        alpha = 1 / (rows.spread + 2.3e-16) if self.alpha_init is None else self.alpha_init
        lam = 1.0 if self.lambda_init is None else self.lambda_init
        scores: list[float] = []
        history.extra["evidence"] = scores
        with Monitor(problem.callbacks, Run(problem, history, self.max_iter)) as monitor:
            last: F64 | None = None
            for _ in range(self.max_iter):
                start = time.perf_counter()
                m, sse = rows.weights(alpha, lam)
                scores.append(self._evidence(rows, alpha, lam, m, sse))
                signal = alpha * rows.s2
                gamma = float(np.add.reduce(signal / (lam + signal)))
                lam = (gamma + 2 * self.lambda_1) / (float(m @ m) + 2 * self.lambda_2)
                # weights of less than one row each may add up to less than the directions they tell
                left = max(rows.total - gamma, 1e-9 * rows.total)
                alpha = (left + 2 * self.alpha_1) / (sse + 2 * self.alpha_2)
                if problem.callbacks:
                    rows.store(energy, alpha, lam)
                history.objective.append(-scores[-1] / rows.total)
                history.seconds.append(time.perf_counter() - start)
                settled = last is not None and float(np.add.reduce(abs(last - m))) < self.tol
                if monitor.epoch(history.objective[-1]) or settled:
                    break
                last = m
            else:
                if self.max_iter:
                    history.converged, history.stop = False, "max_iter"
                else:
                    monitor.epoch(math.nan)
        m, sse = rows.store(energy, alpha, lam)
        scores.append(self._evidence(rows, alpha, lam, m, sse))
        if not history.converged:
            warnings.warn(
                f"EvidenceUpdates stopped after {self.max_iter} updates before the weights settled "
                f"to tol={self.tol}; raise max_iter",
                NotConverged,
                stacklevel=3,
            )
        return history

    def _evidence(self, rows: _Directions, alpha: float, lam: float, m: F64, sse: float) -> float:
        """Log marginal likelihood, with the priors of the precisions."""
        rest = len(m) - len(rows.s2)
        logdet = float(np.add.reduce(np.log(lam + alpha * rows.s2))) + rest * math.log(lam)
        prior = self.lambda_1 * math.log(lam) - self.lambda_2 * lam
        prior += self.alpha_1 * math.log(alpha) - self.alpha_2 * alpha
        return prior + 0.5 * (
            len(m) * math.log(lam) + rows.total * math.log(alpha / (2 * math.pi))
            - alpha * sse - lam * float(m @ m) - logdet
        )  # fmt: skip


class _Directions:
    """Singular directions of the centred, weighted rows, and y along them."""

    def __init__(self, problem: Problem) -> None:
        x, y = problem.resident["x"].double(), problem.resident["y"][:, 0].double()
        w = problem.sample_weight
        w = None if w is None else w.double()
        self.total = problem.total_weight
        weighted = (lambda v: v.sum(0)) if w is None else (lambda v: w @ v)
        sums = current().sum_dict({"x": weighted(x), "y": weighted(y)})
        mean_y = sums["y"] / self.total
        square = current().sum(weighted((y - mean_y).square()))
        self.spread = float(square) / self.total
        intercept = problem.energy.b is not None
        self.mean_x = sums["x"] / self.total if intercept else torch.zeros_like(sums["x"])
        self.mean_y = mean_y if intercept else torch.zeros_like(mean_y)
        both = torch.cat([x - self.mean_x, (y - self.mean_y)[:, None]], 1)  # (n, d + 1)
        if w is not None:
            both = both * w.sqrt()[:, None]
        if len(both) > both.shape[1]:  # only R matters, and shards gather theirs
            both = torch.linalg.qr(both, mode="r").R
        both = current().gather(both)
        host = both.cpu().numpy()
        u, self.s, self.vt = np.linalg.svd(host[:, :-1], full_matrices=False)
        self.s2: F64 = self.s**2  # (k,)
        self.along: F64 = u.T @ host[:, -1]  # (k,)
        self.back: F64 = np.ascontiguousarray(self.vt.T)
        left = host[:, -1] - u @ self.along
        self.outside = float(left @ left)

    def weights(self, alpha: float, lam: float) -> tuple[F64, float]:
        """The posterior mean ``(d,)`` and its sum of squared residuals."""
        ratio = lam / alpha
        kept = self.s2 + ratio
        share = self.along / kept
        m = self.back @ (self.s * share)
        left = ratio * share
        return m, self.outside + float(left @ left)

    def store(self, energy: BayesianLinearEnergy, alpha: float, lam: float) -> tuple[F64, float]:
        m, sse = self.weights(alpha, lam)
        inside = 1 / (alpha * self.s2 + lam) - 1 / lam
        S = (self.back * inside) @ self.vt
        S.reshape(-1)[:: len(S) + 1] += 1 / lam
        weights = torch.from_numpy(m)
        energy.W.copy_(weights[None])
        if energy.b is not None:
            energy.b.copy_((self.mean_y - self.mean_x @ weights.to(self.mean_x))[None])
        energy.S.copy_(torch.from_numpy(S))
        energy.center.copy_(self.mean_x)
        energy.alpha.fill_(alpha)
        energy.lam.fill_(lam)
        return m, sse
