r"""Factor analysis: the loadings in closed form given the noise, the noise by quasi-Newton steps."""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.energy.latent.probabilistic_pca import FactorAnalysisEnergy
from groundstate.errors import NotConverged, Unreliable
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.rules.softmin import SoftMin
from groundstate.learn.solvers.latent.factors.spectrum import moments, upright
from groundstate.registry import solvers

F64 = NDArray[np.float64]
FLOOR = 1e-12  # of the variance of a feature: the least noise
FEW = 300  # features whose Hessian is formed
HEYWOOD = 1e-4  # of the variance of a feature: noise that is none


@solvers.register(
    formula=r"W = \Psi^{1/2}V(\Theta - I)_+^{1/2},\quad \Psi^{-1/2}S\Psi^{-1/2} = V\Theta V^\top",
    make=lambda energy: FactorProfile(),
)
@dataclass(frozen=True)
class FactorProfile:
    r"""Maximum likelihood over the noise ψ alone.

    With eigenpairs :math:`(\theta_i, v_i)` of :math:`\Psi^{-1/2}S\Psi^{-1/2}` the best loadings are
    :math:`W = \Psi^{1/2}V(\Theta - I)_+^{1/2}`, and what is left is a function of
    :math:`\log\psi` with gradient :math:`\tfrac12\psi_j(C^{-1} - C^{-1}SC^{-1})_{jj}`,
    :math:`C = WW^\top + \Psi`, that Newton steps minimise (L-BFGS for many features). One pass over
    the rows gives S; iterations are of its size.

    Parameters
    ----------
    method : "profile", or "svd", the fixed point :math:`\psi \leftarrow \operatorname{diag}(S - WW^\top)`
    start : initial ψ, ``(d,)``; None: from the inverse of S
    tol : "profile": the gradient, in nats per row; "svd": the gain of an iteration, in nats of all rows
    max_iter : iterations at most
    """

    method: Literal["profile", "svd"] = "profile"
    start: Any = None
    tol: float = 1e-8
    max_iter: int = 1000

    def reason_against(self, problem: Problem) -> str | None:
        energy, rule = problem.energy, problem.rule
        if not isinstance(energy, FactorAnalysisEnergy) or not isinstance(rule, SoftMin):
            return "it is for a factor analysis energy with maximum likelihood"
        if rule.T != 1 or rule.latent != "marginalise" or energy.prior_variance != 1:
            return (
                "it maximises the likelihood: SoftMin at T=1 with latents of variance 1 summed out"
            )
        if problem.is_resident and set(problem.names) != {"x"}:
            return "it needs resident x, and z unknown"
        return None if problem.penalty is None else "it has no penalty"

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        energy = problem.energy
        assert isinstance(energy, FactorAnalysisEnergy)
        history = History(solver="FactorProfile", stop="max_iter")
        began = time.perf_counter()
        sums = moments(problem)
        n = sums.weight
        likelihood = Profile(sums.covariance(), energy.W.shape[1])
        with Monitor(problem.callbacks, Run(problem, history, max_epochs=self.max_iter)) as monitor:

            def watch(psi: F64) -> bool:
                history.n_iter += 1
                history.objective.append(likelihood.value)
                history.seconds.append(time.perf_counter() - began)
                if problem.callbacks:
                    likelihood.write(energy, psi, sums.mean)
                return bool(monitor.epoch(likelihood.value))

            begin = likelihood.begin(None if self.start is None else np.asarray(self.start, float))
            steps = self._newton if likelihood.small else self._quasi_newton
            find = steps if self.method == "profile" else self._fixed_point
            psi = find(likelihood, begin, n, history, watch)
        likelihood.write(energy, psi, sums.mean)
        history.extra["log_likelihood"] = [-value * n for value in history.objective]
        history.n_iter = max(1, history.n_iter)
        self._report(history, psi, likelihood)
        return history

    def _newton(self, likelihood: Profile, psi: F64, n: float, history: History, watch: Any) -> F64:
        """Newton steps on log ψ, shortened until the likelihood rises."""
        low = np.log(FLOOR * likelihood.variance)
        u = np.maximum(np.log(psi), low)
        value, gradient = likelihood(u)
        for _ in range(self.max_iter):
            free = (u > low) | (gradient < 0)  # noise at the floor stays where it would fall
            if float(np.abs(gradient[free]).max(initial=0.0)) <= self.tol:
                history.converged, history.stop = True, "tol"
                break
            step = np.zeros_like(u)
            step[free] = likelihood.newton_step(gradient, free)
            size, before, slope = 1.0, value, float(gradient @ step)
            while True:
                new = np.maximum(u + size * step, low)
                value, gradient = likelihood(new)
                if value <= before + 1e-4 * size * slope or size < 1e-6:
                    break
                size *= 0.5
            u = new
            stop = watch(np.exp(u))
            if stop or before - value <= 1e-15 * abs(value):
                history.converged, history.stop = True, "tol"
                break
        if not history.objective:
            history.objective.append(value)
        best: F64 = np.exp(u)
        return best

    def _quasi_newton(
        self, likelihood: Profile, psi: F64, n: float, history: History, watch: Any
    ) -> F64:
        from scipy.optimize import minimize

        low = np.log(FLOOR * likelihood.variance)
        settings = {"maxiter": self.max_iter, "gtol": self.tol, "ftol": 1e-15, "maxcor": 20}

        def callback(intermediate_result: Any) -> None:
            likelihood.value = float(intermediate_result.fun)
            if watch(np.exp(intermediate_result.x)):
                raise StopIteration

        found = minimize(
            likelihood, np.maximum(np.log(psi), low), jac=True, method="L-BFGS-B",
            bounds=[(one, None) for one in low], options=settings, callback=callback,
        )  # fmt: skip
        if not history.objective:
            history.objective.append(float(found.fun))
        history.converged = found.status != 1  # 1: the limit of iterations
        history.stop = "tol" if history.converged else "max_iter"
        best: F64 = np.exp(found.x)
        return best

    def _fixed_point(
        self, likelihood: Profile, psi: F64, n: float, history: History, watch: Any
    ) -> F64:
        before = -math.inf
        for _ in range(self.max_iter):
            likelihood(np.log(psi))
            stop = watch(psi)
            gain = -likelihood.value * n - before
            before = -likelihood.value * n
            if stop or gain < self.tol:
                history.converged, history.stop = True, "tol"
                break
            W = likelihood.loadings(psi)
            psi = np.maximum(likelihood.variance - (W**2).sum(1), FLOOR * likelihood.variance)
        return psi

    def _report(self, history: History, psi: F64, likelihood: Profile) -> None:
        variance = likelihood.variance
        if not history.converged:
            warnings.warn(
                f"factor analysis stopped after max_iter={self.max_iter} iterations; raise max_iter "
                "or tol",
                NotConverged,
                stacklevel=3,
            )
        gone = np.flatnonzero((psi < HEYWOOD * variance) & ~likelihood.idle)
        if len(gone) and likelihood.l < len(psi):
            shown = ", ".join(map(str, gone[:5]))
            warnings.warn(
                f"Heywood case: feature {shown} has no noise of its own at the maximum of the "
                "likelihood; use fewer components",
                Unreliable,
                stacklevel=3,
            )


class Profile:
    """Minus the mean log-likelihood as a function of log ψ, the loadings at their best."""

    def __init__(self, cov: Tensor, l: int) -> None:
        # a feature that does not vary gets a variance that is none of the others'
        spread = cov.diagonal()
        least = FLOOR * spread.mean() + torch.finfo(torch.float64).tiny
        self.idle = (spread <= least).cpu().numpy()
        cov = cov + torch.diag(torch.where(spread <= least, least, 0.0))
        self.host = cov.cpu().numpy()
        self.variance: F64 = self.host.diagonal().copy()
        self.l, self.device, self.value = l, cov.device, math.nan
        self.cov = cov if cov.device.type != "cpu" else None
        self.small = self.cov is None and len(cov) <= FEW

    def begin(self, given: F64 | None) -> F64:
        """Jöreskog's start: most of what a feature has beyond the others."""
        if given is not None:
            return np.maximum(given, FLOOR * self.variance)
        d = len(self.variance)
        sd = np.sqrt(self.variance)
        correlation = self.host / np.outer(sd, sd)
        values, vectors = np.linalg.eigh(correlation)
        if values[0] < 1e-8:  # no inverse
            return 0.5 * self.variance
        inverse = (vectors**2 / values).sum(1)
        psi: F64 = self.variance * np.clip((1 - self.l / (2 * d)) / inverse, 5e-3, 1.0)
        return psi

    def _largest(self, root: F64) -> tuple[F64, F64]:
        """The l largest eigenpairs of the covariance in units of the noise."""
        d = len(root)
        if self.cov is not None:
            scale = torch.from_numpy(1 / root).to(self.cov)
            theta, v = torch.linalg.eigh(self.cov * scale[:, None] * scale)
            return theta[d - self.l :].cpu().numpy(), v[:, d - self.l :].cpu().numpy()
        scaled = self.host / np.outer(root, root)
        if self.small or not self.l or 4 * self.l > d:
            self.all = theta, v = np.linalg.eigh(scaled)
            return theta[d - self.l :], v[:, d - self.l :]
        from groundstate.math.linalg.spectrum import eigenpairs

        return eigenpairs(scaled, d - self.l, d - 1)

    def __call__(self, log_psi: F64) -> tuple[float, F64]:
        psi = np.exp(log_psi)
        self.theta, self.v = self._largest(np.sqrt(psi))
        square = self.v**2
        own = self.variance / psi  # the diagonal of the scaled covariance
        kept = self.theta > 1
        theta = np.where(kept, self.theta, 1.0)
        value = own.sum() + log_psi.sum() + (np.log(theta) + 1 - theta)[kept].sum()
        gradient = 1 - own + square[:, kept] @ (theta[kept] - 1)
        d = len(psi)
        self.value = 0.5 * float(value + d * math.log(2 * math.pi))
        return self.value, 0.5 * gradient

    def newton_step(self, gradient: F64, free: NDArray[np.bool_]) -> F64:
        r"""Minus the inverse Hessian times the gradient, of the free entries.

        By the derivative of :math:`V\,w(\Theta)V^\top` with w = θ for the rest and 1 for what is kept,
        :math:`H_{jk} = \tfrac12\sum_{im}\frac{w_i - w_m}{\theta_i - \theta_m}
        \frac{\theta_i + \theta_m}2 v_{ij}v_{ik}v_{mj}v_{mk}`: both of the rest
        :math:`\tfrac12(\theta_i + \theta_m)`, both kept 0.
        """
        theta, v = self.all
        d = len(theta)
        kept = np.zeros(d, dtype=bool)
        kept[d - self.l :] = theta[d - self.l :] > 1
        rest, R = theta[~kept], v[:, ~kept]
        H = ((R * rest) @ R.T) * (R @ R.T)
        for one, axis in zip(theta[kept], v[:, kept].T, strict=True):
            c = (1 - rest) * (one + rest) / np.maximum(one - rest, 1e-12)
            H += np.outer(axis, axis) * ((R * c) @ R.T)
        H = 0.5 * H[np.ix_(free, free)]
        values, vectors = np.linalg.eigh(H)
        curved = np.maximum(np.abs(values), 1e-9 * np.abs(values).max() + 1e-12)
        step: F64 = -vectors @ ((vectors.T @ gradient[free]) / curved)
        longest = np.abs(step).max(initial=0.0)
        return step if longest <= 3 else step * (3 / longest)

    def loadings(self, psi: F64) -> F64:
        """W ``(d, l)``, the largest factor first."""
        root = np.sqrt(psi)
        theta, v = self._largest(root)
        W: F64 = root[:, None] * (v * np.sqrt(np.maximum(theta - 1, 0.0)))[:, ::-1]
        return W

    @torch.no_grad()
    def write(self, energy: FactorAnalysisEnergy, psi: F64, mean: Tensor) -> None:
        """θ at this noise."""
        W = upright(torch.from_numpy(np.ascontiguousarray(self.loadings(psi))))
        energy.W.zero_()[:, : W.shape[1]] = W.to(energy.W)
        energy.b.copy_(mean)
        energy.log_noise.copy_(torch.from_numpy(np.log(psi)))
