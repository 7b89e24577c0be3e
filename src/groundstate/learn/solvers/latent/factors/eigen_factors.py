r"""Probabilistic PCA in closed form: the eigenvectors of the covariance."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.reduce import current
from groundstate.energy.latent.probabilistic_pca import TINY, ProbabilisticPCAEnergy
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.rules.softmin import SoftMin
from groundstate.learn.solvers.latent.factors.spectrum import Spectrum, by_moments, by_rows
from groundstate.registry import solvers

F64 = NDArray[np.float64]
Noise = float | Literal["ml"]


def refusal(problem: Problem) -> str | None:
    """Why factors with one noise variance cannot be found for this problem, or None."""
    energy, rule = problem.energy, problem.rule
    if type(energy) is not ProbabilisticPCAEnergy or not isinstance(rule, SoftMin):
        return "it is for a probabilistic PCA energy with maximum likelihood"
    if rule.T != 1 or rule.latent != "marginalise":
        return "it maximises the likelihood: SoftMin at T=1 with latents summed out"
    if problem.is_resident and set(problem.names) != {"x"}:
        return "it needs resident x, and z unknown"
    return None if problem.penalty is None else "it has no penalty"


@solvers.register(
    formula=r"W = Q_l(\Lambda_l - \nu I)^{1/2},\quad \nu = \tfrac1{d-l}\sum_{i>l}\lambda_i",
    make=lambda energy: EigenFactors(),
)
@dataclass(frozen=True)
class EigenFactors:
    r"""The maximum of the likelihood from one decomposition of the covariance.

    With eigenvalues :math:`\lambda_1 \ge \dots \ge \lambda_d` and eigenvectors Q of the weighted
    covariance, :math:`b` is the mean, :math:`\nu` the mean of the discarded eigenvalues and
    :math:`\sigma W = Q_l(\Lambda_l - \nu I)_+^{1/2}`. The entry of largest modulus of each column of
    W is positive. Weight, mean and scatter are all that is summed over shards and pieces; with fewer
    rows than features the rows themselves are decomposed.

    Where no eigenvalue is discarded, or all of them are zero, ν is :math:`10^{-12}` of the mean
    variance (:math:`10^{-6}` in float32): a density needs noise.

    Parameters
    ----------
    noise : ν, or "ml" for the most likely one
    width : variance :math:`s^2` of q in place of the exact posterior: the maximum of the bound with
        :math:`q = N(m(x), s^2I)`, :math:`w_i^2 = (\sqrt{\lambda_i\nu}/(\sigma s) - \nu/\sigma^2)_+`;
        None is the exact posterior
    """

    noise: Noise = "ml"
    width: float | None = None

    def reason_against(self, problem: Problem) -> str | None:
        return refusal(problem)

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        start = time.perf_counter()
        energy = problem.energy
        assert isinstance(energy, ProbabilisticPCAEnergy)
        history = History(converged=True, solver="EigenFactors", stop="closed form")
        with Monitor(problem.callbacks, Run(problem, history, max_epochs=1)) as monitor:
            found = spectrum(problem)
            self.set(energy, found)
            history.extra["eigenvalues"] = found.values.tolist()
            history.about["weight"] = found.weight
            history.seconds.append(time.perf_counter() - start)
            if problem.callbacks:
                history.objective.append(float(problem.objective()))
            monitor.epoch(history.objective[0] if history.objective else math.nan)
        return history

    @torch.no_grad()
    def set(self, energy: ProbabilisticPCAEnergy, found: Spectrum) -> None:
        """θ from all eigenvalues of a covariance."""
        d, l = energy.W.shape
        values = np.zeros(d)
        values[: len(found.values)] = found.values.cpu().numpy()
        least = least_noise(energy, float(values.sum()) / d)
        prior = energy.prior_variance
        if self.width is None:
            own = float(values[l:].sum()) / (d - l) if d > l else 0.0
            noise = max(own if self.noise == "ml" else self.noise, least)
            square = np.maximum(values[:l] - noise, 0.0) / prior
        else:
            noise, square = bound_optimum(values, l, self.noise, prior, self.width, least)
        m = min(l, found.vectors.shape[1])  # fewer rows than factors: the others are zero
        assert found.mean is not None
        energy.b.copy_(found.mean)
        lengths = torch.from_numpy(np.sqrt(square[:m])).to(found.vectors)
        energy.W.zero_()[:, :m] = found.vectors[:, :m] * lengths
        energy.log_noise.fill_(math.log(noise))


def least_noise(energy: ProbabilisticPCAEnergy, variance: float) -> float:
    """The smallest ν of a density on rows of this mean variance."""
    dtype = energy.W.dtype
    small = TINY if dtype == torch.float64 else 1e-6
    return float(max(small * variance, torch.finfo(dtype).tiny))


def bound_optimum(
    values: F64, l: int, noise: Noise, prior: float, width: float, least: float
) -> tuple[float, F64]:
    r"""ν and :math:`w_i^2` at the maximum of the bound with :math:`q = N(m(x), s^2I)`.

    At the best codes the bound is, but for constants,
    :math:`-\tfrac d2\log\nu - \tfrac12\sum_{i\le l}\bigl[\frac{\lambda_i}{\nu + \sigma^2w_i^2}
    + \frac{s^2w_i^2}\nu\bigr] - \tfrac12\sum_{i>l}\frac{\lambda_i}\nu`; its maximum over ν solves a
    quadratic equation in :math:`\sqrt\nu` for the factors that are not zero.
    """
    d, sigma, s = len(values), math.sqrt(prior), math.sqrt(width)

    def squares(nu: float) -> F64:
        return np.maximum(np.sqrt(values[:l] * nu) / (sigma * s) - nu / prior, 0.0)

    if noise != "ml":
        nu = max(float(noise), least)
        return nu, squares(nu)
    active = l
    while True:  # the smallest factor leaves until those that are left want to stay
        a = s / sigma * float(np.sqrt(values[:active]).sum())
        rest = float(values[active:].sum())
        nu = max(((a + math.sqrt(a * a + 4 * d * rest)) / (2 * d)) ** 2, least)
        if active == 0 or sigma * math.sqrt(values[active - 1]) > s * math.sqrt(nu):
            return nu, squares(nu)
        active -= 1


def spectrum(problem: Problem) -> Spectrum:
    """All eigenvalues: of the rows where they are few, else of their covariance."""
    if problem.is_resident and current().world == 1:
        n, d = problem.resident["x"].shape
        if n < d:
            return by_rows(problem)
    return by_moments(problem)


def fixed_axes(energy: ProbabilisticPCAEnergy) -> None:
    """Turn W so that its columns are at right angles, the longest first, upright."""
    from groundstate.learn.solvers.latent.factors.spectrum import upright

    with torch.no_grad():
        U, s, _ = torch.linalg.svd(energy.W.double(), full_matrices=False)
        turned: Tensor = upright(U) * s
        energy.W.zero_()[:, : turned.shape[1]] = turned.to(energy.W)
