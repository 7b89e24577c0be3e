r"""EM of linear Gaussian factors from the covariance: one pass over the rows, then small matrices."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass

import torch
from torch import Tensor

from groundstate.energy.latent.probabilistic_pca import (
    TINY,
    FactorAnalysisEnergy,
    ProbabilisticPCAEnergy,
)
from groundstate.errors import NotConverged
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.rules.softmin import SoftMin
from groundstate.learn.solvers.latent.factors.eigen_factors import Noise, fixed_axes, refusal
from groundstate.learn.solvers.latent.factors.gaussian_fit import Factors
from groundstate.learn.solvers.latent.factors.spectrum import moments
from groundstate.registry import solvers


@solvers.register(
    formula=r"W \leftarrow C\beta^\top(S + \beta C\beta^\top)^{-1},\quad "
    r"\Psi \leftarrow \operatorname{diag}(C - W\beta C)",
    make=lambda energy: FactorEM(),
)
@dataclass(frozen=True)
class FactorEM:
    r"""Codes given the factors, then factors by regression on the codes.

    E: :math:`m = \beta(x - b)` with :math:`\beta = S W^\top\Psi^{-1}`,
    :math:`S = (W^\top\Psi^{-1}W + I/\sigma^2)^{-1}`. M: W is the correlation of input and code,
    :math:`C\beta^\top`, times a normaliser, :math:`(S + \beta C\beta^\top)^{-1}`; the noise is what
    is left. C is the covariance. The likelihood never falls.

    Parameters
    ----------
    noise : ν, or "ml"; of one noise variance for all features
    width : :math:`s^2` of a restricted :math:`q = N(m(x), s^2I)`; None is the exact posterior
    tol : stop when an iteration gains less than this, in nats per row
    max_iter : iterations at most
    """

    noise: Noise = "ml"
    width: float | None = None
    tol: float = 1e-6
    max_iter: int = 1000

    def reason_against(self, problem: Problem) -> str | None:
        if type(problem.energy) is not FactorAnalysisEnergy:
            return refusal(problem)
        rule = problem.rule
        if not isinstance(rule, SoftMin) or rule.T != 1 or rule.latent != "marginalise":
            return "it maximises the likelihood: SoftMin at T=1 with latents summed out"
        if problem.is_resident and set(problem.names) != {"x"}:
            return "it needs resident x, and z unknown"
        return None if problem.penalty is None else "it has no penalty"

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        energy = problem.energy
        assert isinstance(energy, ProbabilisticPCAEnergy)
        history = History(solver="FactorEM", stop="max_iter")
        sums = moments(problem)
        cov = sums.covariance()
        now = self._start(energy, cov)
        values: list[float] = []
        with Monitor(problem.callbacks, Run(problem, history, max_epochs=self.max_iter)) as monitor:
            for history.n_iter in range(1, self.max_iter + 1):
                start = time.perf_counter()
                now = self.step(now, cov)
                value = (
                    now.log_likelihood(cov) if self.width is None else now.bound(cov, self.width)
                )
                values.append(value)
                history.objective.append(-value)
                history.seconds.append(time.perf_counter() - start)
                if problem.callbacks:
                    _write(energy, now, sums.mean)
                if monitor.epoch(-value):
                    break
                if len(values) > 1 and value - values[-2] < self.tol:
                    history.converged, history.stop = True, "tol"
                    break
        history.extra["log_likelihood" if self.width is None else "bound"] = values
        _write(energy, now, sums.mean)
        if type(energy) is ProbabilisticPCAEnergy:
            fixed_axes(energy)
        if not history.converged and history.stop == "max_iter":
            warnings.warn(
                f"EM stopped after max_iter={self.max_iter} iterations, before an iteration gained "
                f"less than tol={self.tol:g}; raise max_iter or use the closed form",
                NotConverged,
                stacklevel=2,
            )
        return history

    def _start(self, energy: ProbabilisticPCAEnergy, cov: Tensor) -> Factors:
        """The energy's own W, of the size of the data; half of each variance is noise."""
        variance = cov.diagonal().clamp_min(torch.finfo(torch.float64).tiny)
        scale = (variance.mean() / energy.W.shape[1] / energy.prior_variance / 2).sqrt()
        W = energy.W.double() * scale
        if energy.log_noise.ndim:
            noise = 0.5 * variance
        elif self.noise == "ml":
            noise = 0.5 * variance.mean()
        else:
            noise = cov.new_tensor(self.noise)
        return Factors(W, noise, energy.prior_variance)

    def step(self, now: Factors, cov: Tensor) -> Factors:
        """One E and one M step."""
        beta, S = now.encoder()
        if self.width is not None:
            S = self.width * torch.eye(len(S)).to(S)
        across = cov @ beta.T  # (d, l)
        W = torch.linalg.solve(S + beta @ across, across.T).T
        left = cov.diagonal() - (W * across).sum(1)
        floor = TINY * cov.diagonal().mean() + torch.finfo(torch.float64).tiny
        if now.noise.ndim:
            return Factors(W, torch.maximum(left, floor), now.prior)
        if self.noise != "ml":
            return Factors(W, now.noise, now.prior)
        return Factors(W, torch.maximum(left.mean(), floor), now.prior)


def _write(energy: ProbabilisticPCAEnergy, now: Factors, mean: Tensor) -> None:
    energy.W.copy_(now.W)
    energy.b.copy_(mean)
    energy.log_noise.copy_(now.noise.log())
