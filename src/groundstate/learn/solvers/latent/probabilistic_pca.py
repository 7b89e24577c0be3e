r"""Probabilistic PCA in closed form: the eigenvectors of the covariance."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import torch
from torch import Tensor

from groundstate.compute.reduce import current
from groundstate.energy.latent.probabilistic_pca import TINY, ProbabilisticPCAEnergy
from groundstate.errors import DataError
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.fit import solver_for
from groundstate.learn.rules.softmin import SoftMin
from groundstate.registry import solvers

ROWS = 2**14


@solvers.register(
    formula=r"W = Q_l(\Lambda_l - \nu I)^{1/2},\quad \nu = \tfrac1{d-l}\sum_{i>l}\lambda_i",
    make=lambda energy: EigenFactors(),
)
@solver_for(ProbabilisticPCAEnergy, SoftMin)
@dataclass(frozen=True)
class EigenFactors:
    r"""The maximum of the likelihood from one decomposition of the covariance.

    With eigenvalues :math:`\lambda_1 \ge \dots \ge \lambda_d` and eigenvectors Q of the weighted
    covariance, :math:`b` is the mean, :math:`\nu` the mean of the discarded eigenvalues and
    :math:`W = Q_l(\Lambda_l - \nu I)^{1/2}`. The entry of largest modulus of each column of W is
    positive. Weight, mean and scatter are all that is summed over shards; with fewer rows than
    features the rows themselves are decomposed.

    Where no eigenvalue is discarded, or all of them are zero, ν is :math:`10^{-12}` of the mean
    variance (:math:`10^{-6}` in float32): a density needs noise.
    """

    def reason_against(self, problem: Problem) -> str | None:
        energy, rule = problem.energy, problem.rule
        if not isinstance(energy, ProbabilisticPCAEnergy) or not isinstance(rule, SoftMin):
            return "it is for a probabilistic PCA energy with maximum likelihood"
        if rule.T != 1 or rule.latent != "marginalise":
            return "it maximises the likelihood: SoftMin at T=1 with latents summed out"
        if not problem.is_resident or set(problem.names) != {"x"}:
            return "it needs resident x, and z unknown"
        if problem.penalty is not None:
            return "it has no penalty"
        return None

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        start = time.perf_counter()
        energy = problem.energy
        assert isinstance(energy, ProbabilisticPCAEnergy)
        history = History(converged=True, solver="EigenFactors", stop="closed form")
        with Monitor(problem.callbacks, Run(problem, history, max_epochs=1)) as monitor:
            mean, values, vectors = spectrum(problem)
            d, l = energy.W.shape
            variance = float(values.sum()) / d
            small = TINY if energy.W.dtype == torch.float64 else 1e-6
            rest = float(values[l:].sum()) / (d - l) if d > l else 0.0
            noise = max(rest, small * variance, torch.finfo(energy.W.dtype).tiny)
            m = min(l, vectors.shape[1])  # fewer rows than factors: the others are zero
            energy.b.copy_(mean)
            energy.W.zero_()[:, :m] = vectors[:, :m] * (values[:m] - noise).clamp_min(0).sqrt()
            energy.log_noise.fill_(math.log(noise))
            history.extra["eigenvalues"] = values.tolist()
            history.seconds.append(time.perf_counter() - start)
            if problem.callbacks:
                history.objective.append(float(problem.objective()))
            monitor.epoch(history.objective[0] if history.objective else math.nan)
        return history


def spectrum(problem: Problem) -> tuple[Tensor, Tensor, Tensor]:
    """Mean ``(d,)``, eigenvalues ``(d,)`` from the largest on, eigenvectors ``(d, ≤ d)``."""
    x, weight = problem.resident["x"], problem.sample_weight
    n, d = x.shape
    w = x.new_ones(n, dtype=torch.float64) if weight is None else weight.double()
    sums = current().sum_dict({"w": w.sum(), "x": _summed(x, w)})
    if not float(sums["w"]) > 0:
        raise DataError("the weights sum to zero; at least one row needs a positive weight")
    mean = sums["x"] / sums["w"]
    if current().world == 1 and n < d:
        rows = (x.double() - mean) * (w / sums["w"]).sqrt()[:, None]
        _, s, vectors = torch.linalg.svd(rows, full_matrices=False)
        values = torch.cat([s.square(), s.new_zeros(d - len(s))])
        return mean, values, _upright(vectors.T)
    scatter = x.new_zeros(d, d, dtype=torch.float64)
    for part, v in zip(x.split(ROWS), w.split(ROWS)):
        diff = part.double() - mean
        scatter.addmm_((diff * v[:, None]).T, diff)
    values, vectors = torch.linalg.eigh(current().sum(scatter) / sums["w"])
    return mean, values.flip(0).clamp_min(0), _upright(vectors.flip(1))


def _summed(x: Tensor, w: Tensor) -> Tensor:
    return torch.stack([v @ p.double() for p, v in zip(x.split(ROWS), w.split(ROWS))]).sum(0)


def _upright(vectors: Tensor) -> Tensor:
    """Columns whose entry of largest modulus is positive."""
    peak = vectors.gather(0, vectors.abs().argmax(0, keepdim=True))
    return vectors * torch.where(peak < 0, -1.0, 1.0)


__all__ = ["EigenFactors", "spectrum"]
