r"""A Gaussian with a given mean and covariance, found elsewhere."""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch
from torch import Tensor

from groundstate.energy.latent.gaussian_mixture import GaussianMixtureEnergy
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run


@dataclass(frozen=True)
class GivenMoments:
    r"""Set one Gaussian to :math:`N(\mu, \Sigma)`.

    Parameters
    ----------
    mean : ``(d,)``
    cov : ``(d, d)``, positive definite
    """

    mean: Tensor
    cov: Tensor

    def reason_against(self, problem: Problem) -> str | None:
        energy = problem.energy
        if not isinstance(energy, GaussianMixtureEnergy) or len(energy.mu) != 1:
            return "it is for one Gaussian"
        return None if problem.penalty is None else "it takes no penalty"

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        start = time.perf_counter()
        energy = problem.energy
        assert isinstance(energy, GaussianMixtureEnergy)
        history = History(converged=True, solver="GivenMoments", stop="closed form")
        with Monitor(problem.callbacks, Run(problem, history, max_epochs=1)) as monitor:
            one = torch.ones(1, dtype=torch.float64)
            energy.from_moments(one, self.mean.double()[None], self.cov.double()[None])
            history.seconds.append(time.perf_counter() - start)
            monitor.epoch(float(problem.objective()) if problem.callbacks else float("nan"))
        return history
