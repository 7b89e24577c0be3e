r"""Soft k-means: EM of the centroid energy at a temperature, and deterministic annealing.

.. math:: \alpha_{iz} = \mathrm{softmax}_z\bigl(-\tfrac12\|x_i-\mu_z\|^2/T\bigr),\qquad
          \mu_z = \frac{\sum_i w_i\alpha_{iz}x_i}{\sum_i w_i\alpha_{iz}}
"""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import dataclass

import torch
from torch import Tensor

from groundstate.compute.reduce import current
from groundstate.energy.basic import CentroidEnergy
from groundstate.errors import NotConverged
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.solvers.latent.kmeans.lloyd import Lloyd
from groundstate.math.info.free_energy import boltzmann_logits
from groundstate.registry import solvers

ROWS = 2**16
COOLING = 0.8
JITTER = 1e-3


@solvers.register(
    formula=r"\mu_z \leftarrow \frac{\sum_i w_i\alpha_{iz}x_i}{\sum_i w_i\alpha_{iz}},\quad "
    r"\alpha_{iz} = \mathrm{softmax}_z(-\tfrac12\|x_i-\mu_z\|^2/T)",
    make=lambda energy: SoftLloyd(T=0.0),  # where its objective is that of the rule
)
@dataclass(frozen=True)
class SoftLloyd:
    r"""Lower :math:`J = -\frac T{\sum w}\sum_i w_i\log\frac1k\sum_z e^{-e(x_i,z)/T}` over the centroids.

    Parameters
    ----------
    T : temperature; 0 is ``Lloyd``, inf gives every row to all centroids alike
    anneal : whether to come down from twice the largest variance :math:`\lambda_1` of any direction by
        factors of 0.8, centroids moved by a thousandth of a standard deviation at every step
    init, tol, max_iter : as for ``Lloyd``; ``max_iter`` counts the iterations at one temperature
    """

    init: str | Tensor | None = "k-means++"
    T: float = 1.0
    anneal: bool = False
    max_iter: int = 300
    tol: float = 1e-4

    def reason_against(self, problem: Problem) -> str | None:
        return Lloyd().reason_against(problem)

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        energy = problem.energy
        assert isinstance(energy, CentroidEnergy)
        x, weight = problem.resident["x"], problem.sample_weight
        mean, cov, total = moments(x, weight)
        top = float(torch.linalg.eigvalsh(cov)[-1])
        hard = Lloyd(self.init, max_iter=self.max_iter, tol=self.tol)
        if self.T == 0 and not self.anneal:
            history = hard.run(problem)
            history.solver = "SoftLloyd"
            history.extra["critical_temperature"] = [top]
            return history
        threshold = self.tol * float(cov.diagonal().mean())
        mu = mean.expand(len(energy.mu), -1).clone() if self.anneal else hard.start(problem, 0)
        mu = mu.double().to(x.device)
        history = History(solver="SoftLloyd")
        with Monitor(problem.callbacks, Run(problem, history, self.max_iter)) as monitor:
            for i, T in enumerate(self._temperatures(top)):
                if self.anneal:
                    noise = torch.randn(mu.shape, dtype=torch.float64,
                                        generator=problem.key.fold("jitter", i).torch())  # fmt: skip
                    mu = mu + JITTER * math.sqrt(max(top, 0.0)) * noise.to(mu.device)
                mu, wish = self._at(T, x, weight, total, mu, threshold, energy, history, monitor)
                if wish:
                    break
        energy.mu.copy_(mu)
        history.n_iter = len(history.objective)
        history.extra["critical_temperature"] = [top]
        if history.stop == "max_iter" and current().rank == 0:
            warnings.warn(
                f"SoftLloyd stopped after {self.max_iter} iterations while centroids still moved; "
                "raise max_iter or tol",
                NotConverged,
                stacklevel=3,
            )
        return history

    def _temperatures(self, top: float) -> list[float]:
        if not self.anneal:
            return [self.T]
        temperatures, T = [], 2 * top
        while max(self.T, 1e-6 * top) < T and T > 0:
            temperatures.append(T)
            T *= COOLING
        return [*temperatures, self.T]

    def _at(
        self, T: float, x: Tensor, weight: Tensor | None, total: float, mu: Tensor,
        threshold: float, energy: CentroidEnergy, history: History, monitor: Monitor,
    ) -> tuple[Tensor, bool]:  # fmt: skip
        """Iterations at one temperature until the centroids rest."""
        history.stop, history.converged = "max_iter", False
        for _ in range(self.max_iter):
            start = time.perf_counter()
            n, sums, J = soft_step(x, weight, mu, T)
            new = torch.where(n[:, None] > 0, sums / n.clamp_min(1e-300)[:, None], mu)
            square = float((new - mu).square().sum())
            mu = new
            history.objective.append(J / total)
            history.extra.setdefault("T", []).append(T)
            history.seconds.append(time.perf_counter() - start)
            energy.mu.copy_(mu)
            if monitor.epoch(J / total):
                history.stop = "callback"
                return mu, True
            if square <= threshold:
                history.stop, history.converged = f"shift below tol={self.tol}", True
                break
        return mu, False


def moments(x: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor, float]:
    """Weighted mean ``(d,)`` and covariance ``(d, d)`` with ddof 0, and the total weight."""
    wide = x.double()
    w = wide.new_ones(len(x)) if weight is None else weight.double()
    sums = current().sum_dict({"w": w.sum(), "x": w @ wide})
    mean = sums["x"] / sums["w"]
    diff = wide - mean
    cov = current().sum((diff * w[:, None]).T @ diff) / sums["w"]
    return mean, cov, float(sums["w"])


def soft_step(
    x: Tensor, weight: Tensor | None, mu: Tensor, T: float
) -> tuple[Tensor, Tensor, float]:
    """Weights ``(k,)`` and sums ``(k, d)`` of the centroids, and the free energy of all rows."""
    k = len(mu)
    n, sums, J = mu.new_zeros(k), torch.zeros_like(mu), mu.new_zeros(())
    for at in range(0, len(x), ROWS):
        part = x[at : at + ROWS].double()
        e = 0.5 * torch.cdist(part, mu, compute_mode="donot_use_mm_for_euclid_dist").square()
        logits = boltzmann_logits(e, T)
        r = torch.softmax(logits, 1)
        if T == 0:
            F = e.min(1).values
        elif math.isinf(T):
            F = e.mean(1)
        else:
            F = -T * (torch.logsumexp(logits, 1) - math.log(k))
        w = None if weight is None else weight[at : at + ROWS].double()
        if w is not None:
            r, F = r * w[:, None], F * w
        n, sums, J = n + r.sum(0), sums + r.T @ part, J + F.sum()
    found = current().sum_dict({"n": n, "x": sums, "J": J})
    return found["n"], found["x"], float(found["J"])
