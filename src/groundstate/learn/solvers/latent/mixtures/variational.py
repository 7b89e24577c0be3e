r"""Variational EM for mixtures of Gaussians: q(z), then q(π) q(μ, Σ), in turn.

With :math:`N_z, \bar x_z, S_z` the moments of the rows under q(z), and priors
:math:`\mu_z \mid \Lambda_z \sim N(m_0, (\beta_0\Lambda_z)^{-1})`, :math:`\Lambda_z \sim W(\nu_0, C_0^{-1})`,

.. math:: \beta_z = \beta_0 + N_z,\quad m_z = \frac{\beta_0m_0 + N_z\bar x_z}{\beta_z},\quad
          \nu_z = \nu_0 + N_z,\quad
          C_z = C_0 + N_zS_z + \frac{\beta_0N_z}{\beta_z}(\bar x_z-m_0)(\bar x_z-m_0)^\top .

q(z) is then the posterior of a mixture with covariances :math:`C_z/\nu_z` and other weights, so a pass
over the rows is one of plain EM.
"""

from __future__ import annotations

import copy
import math
import time
import warnings
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import digamma, gammaln
from torch import Tensor

from groundstate.compute.reduce import current
from groundstate.energy.latent.gaussian_mixture import GaussianMixtureEnergy
from groundstate.errors import NotConverged
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.rules.softmin import SoftMin
from groundstate.learn.solvers.latent.mixtures.restarts import expect, twins
from groundstate.learn.solvers.latent.mixtures.starts import STARTS, has_nan, start_moments
from groundstate.learn.solvers.latent.mixtures.steps import TINY, GaussianM
from groundstate.registry import solvers

F64 = NDArray[np.float64]


@dataclass(frozen=True)
class Prior:
    r"""What is believed of weights, means and precisions before any row; None is taken from the rows.

    Parameters
    ----------
    process : whether weights follow a Dirichlet process (sticks) instead of a Dirichlet distribution
    concentration : of the weights; None is 1 / k
    mean_precision : :math:`\beta_0`
    mean : :math:`m_0` ``(d,)``; None is the mean of the rows
    degrees : :math:`\nu_0`; None is d
    covariance : :math:`C_0` ``(d, d)``, ``(d,)`` or ``()``; None is the covariance of the rows
    """

    process: bool = True
    concentration: float | None = None
    mean_precision: float = 1.0
    mean: F64 | None = None
    degrees: float | None = None
    covariance: F64 | None = None

    def of(self, step: GaussianM) -> Prior:
        """The prior with what the rows say in place of None."""
        energy = step.mixture
        k, d = energy.mu.shape
        total, mean, scatter = step.moments_of_all()
        cov = scatter / max(total - 1, 1e-300)
        if not energy.whole:
            cov = np.diagonal(cov).copy()
            cov = np.asarray(cov.mean()) if energy.U.ndim == 1 else cov
        return replace(
            self,
            concentration=1.0 / k if self.concentration is None else self.concentration,
            mean=mean if self.mean is None else self.mean,
            degrees=float(d) if self.degrees is None else self.degrees,
            covariance=cov if self.covariance is None else self.covariance,
        )


@dataclass(frozen=True)
class Posterior:
    r"""q(π) q(μ, Λ), float64.

    Attributes
    ----------
    concentration : ``(k,)`` of a Dirichlet distribution, ``(2, k)`` of the sticks of a process
    mean_precision : :math:`\beta` ``(k,)``
    mean : ``(k, d)``
    degrees : :math:`\nu` ``(k,)``, or ``()`` where components share a covariance
    covariance : :math:`C/\nu` in the shape of U
    """

    concentration: F64
    mean_precision: F64
    mean: F64
    degrees: F64
    covariance: F64

    @classmethod
    def of(cls, prior: Prior, n: F64, mean: F64, cov: F64, kind: str) -> Posterior:
        """q from the moments of completed rows; ``cov`` in the shape of U."""
        m0, C0, beta0, nu0 = prior.mean, prior.covariance, prior.mean_precision, prior.degrees
        assert m0 is not None and C0 is not None and nu0 is not None
        assert prior.concentration is not None
        k = len(n)
        if prior.process:
            after = n[::-1].cumsum()[::-1] - n  # the weight of all later components
            after[-1] = 0.0
            concentration = np.stack([1.0 + n, prior.concentration + after])
        else:
            concentration = prior.concentration + n
        beta, nu = beta0 + n, nu0 + n
        diff, pull = mean - m0, beta0 * n / beta
        if kind == "full":
            spread = n[:, None, None] * cov + (pull[:, None] * diff)[:, :, None] * diff[:, None]
            C = (C0 + spread) / nu[:, None, None]
        elif kind == "tied":
            nu = np.asarray(nu0 + n.sum() / k)
            C = (C0 + cov * n.sum() / k + (pull[:, None] * diff).T @ diff / k) / nu
        elif kind == "spherical":
            C = (C0 + n * cov + pull * np.square(diff).mean(1)) / nu
        else:
            C = (C0 + n[:, None] * cov + pull[:, None] * np.square(diff)) / nu[:, None]
        centre = (beta0 * m0 + n[:, None] * mean) / beta[:, None]
        return cls(concentration, beta, centre, nu, C)

    def weights(self) -> F64:
        """E[π], ``(k,)``."""
        if self.concentration.ndim == 1:
            return self.concentration / self.concentration.sum()
        a, b = self.concentration
        pi = a / (a + b) * np.concatenate([[1.0], np.cumprod(b / (a + b))[:-1]])
        out: F64 = pi / pi.sum()
        return out

    def log_weights(self) -> F64:
        """E[log π], ``(k,)``."""
        if self.concentration.ndim == 1:
            out: F64 = digamma(self.concentration) - digamma(self.concentration.sum())
            return out
        a, b = self.concentration
        both = digamma(a + b)
        left: F64 = np.concatenate([[0.0], np.cumsum(digamma(b) - both)[:-1]])
        return digamma(a) - both + left

    def offsets(self) -> F64:
        r""":math:`E[\log\pi_z] + E[\log N(x; \mu_z, \Lambda_z^{-1})] - \log N(x; m_z, C_z/\nu_z)`."""
        d, nu = self.mean.shape[1], np.atleast_1d(self.degrees)
        spread = digamma(0.5 * (nu[:, None] - np.arange(d))).sum(1) + d * np.log(2.0 / nu)
        return self.log_weights() + 0.5 * (spread - d / self.mean_precision)

    def bound(self, log_det: F64, entropy: float) -> float:
        r"""The bound less constants, from :math:`\log|U_z|` ``(k,)`` and the entropy of q(z)."""
        k, d = self.mean.shape
        nu = np.atleast_1d(self.degrees)
        places = gammaln(0.5 * (nu[:, None] - np.arange(d))).sum(1)
        precision = log_det - 0.5 * d * np.log(nu)
        wishart = -(nu * precision + nu * d * 0.5 * math.log(2.0) + places)
        c = self.concentration
        if c.ndim == 1:
            weight = gammaln(c.sum()) - gammaln(c).sum()
        else:
            weight = (gammaln(c.sum(0)) - gammaln(c).sum(0)).sum()
        rest = np.broadcast_to(wishart, k).sum() + weight
        return entropy - float(rest + 0.5 * d * np.log(self.mean_precision).sum())


class VariationalM(GaussianM):
    """q(z) of a pass as the posterior of a mixture, then q of its parameters."""

    prior: Prior
    posterior: Posterior
    reg_covar: float

    def place(self, n: Tensor, mean: Tensor, cov: Tensor) -> None:
        """q from moments, and the mixture that gives the next q(z)."""
        n_, mean_, cov_ = (v.double().cpu().numpy() for v in (n, mean, cov))
        kind = self.mixture.covariance_type
        wide = np.eye(mean_.shape[1]) if self.mixture.whole else 1.0
        cov_ = cov_ + self.reg_covar * wide
        self.go_on(Posterior.of(self.prior, n_ + TINY, mean_, cov_, kind))

    def go_on(self, q: Posterior) -> None:
        """The mixture whose posterior is q(z) under q of the parameters."""
        self.posterior, offsets = q, torch.from_numpy(q.offsets())
        mean, cov = torch.from_numpy(q.mean), torch.from_numpy(q.covariance)
        self.mixture.from_moments(torch.ones_like(offsets), mean, cov)
        self.mixture.logits.copy_(offsets)

    @torch.no_grad()
    def finish(self) -> None:
        moments = self._fast_moments() if self.fast else self._moments()
        entropy = self._entropy(*(v.cpu().numpy() for v in moments))
        self.place(*moments)
        self.bound = self.posterior.bound(self._log_det(), entropy)

    def _log_det(self) -> F64:
        """log |U| of every component, ``(k,)``."""
        U = self.mixture.U.detach().cpu().numpy()
        k, d = self.mixture.mu.shape
        if self.mixture.whole:
            U = np.diagonal(U, axis1=-2, axis2=-1)
            return np.broadcast_to(np.log(np.abs(U)).sum(-1), k)
        U = np.abs(U).reshape(k, -1)
        out: F64 = np.log(U).sum(1) * (d // U.shape[1])
        return out

    def _entropy(self, n: F64, mean: F64, cov: F64) -> float:
        r"""H of q(z), :math:`\sum_iw_i(\log\sum_ze^{l_{iz}} - \sum_zr_{iz}l_{iz})`, from moments."""
        energy, d = self.mixture, mean.shape[1]
        theta = (energy.mu, energy.U, energy.logits)
        mu, U, logits = (v.detach().cpu().numpy() for v in theta)
        step = mean - mu
        constant = logits - np.logaddexp.reduce(logits) + self._log_det()
        constant = constant - 0.5 * d * math.log(2 * math.pi)
        if energy.whole:
            U = np.triu(U)
            P = U @ np.swapaxes(U, -1, -2)
            if energy.covariance_type == "full":
                square = (P * (cov + step[:, :, None] * step[:, None])).sum((1, 2))
            else:
                square = (P * cov).sum() + ((step @ P) * step).sum(1)
        elif U.ndim == 1:
            square = np.square(U) * (d * cov + np.square(step).sum(1))
        else:
            square = (np.square(U) * (cov + np.square(step))).sum(1)
        return float(-self.J * self.weight - n @ (constant - 0.5 * square))

    def close(self) -> float:
        self.J = super().close()
        return self.J


@solvers.register(
    formula=r"q(z) \propto e^{E_q[\log p(x, z, \pi, \mu, \Sigma)]},\quad "
    r"q(\pi)\,q(\mu, \Sigma) \propto e^{E_{q(z)}[\log p]}",
    make=lambda energy: VariationalEM(),
)
@dataclass(frozen=True)
class VariationalEM:
    r"""Raise :math:`E_q[\log p(x, z, \pi, \mu, \Sigma)] + H(q)` over
    :math:`q = q(z)\,q(\pi)\,q(\mu, \Sigma)`, one factor after the other; neither can lower it.

    The energy ends at the expected weights, means and covariances;
    ``history.about["posterior"]`` and ``["prior"]`` hold q and the prior as arrays.

    Parameters
    ----------
    prior : Prior
    init : "kmeans", "k-means++", "random" or "random_from_data"
    n_init : runs from different starts; the best is kept
    max_iter, tol : stop when the bound of all rows changes by less than ``tol``
    start : a posterior to go on from, instead of ``init``

    Examples
    --------
    >>> from groundstate.learn import NLL, fit
    >>> x = torch.tensor([[-2.1], [-1.9], [1.9], [2.1]], dtype=torch.float64).repeat(50, 1)
    >>> energy = GaussianMixtureEnergy(2, 1).double()
    >>> history = fit(energy, {"x": x}, NLL(), VariationalEM(Prior(process=False)), random_state=0)
    >>> energy.mu.detach().flatten().sort().values.round(decimals=2).tolist()
    [-1.98, 1.98]
    """

    prior: Prior = field(default_factory=Prior)
    init: str = "kmeans"
    n_init: int = 1
    max_iter: int = 100
    tol: float = 1e-3
    start: Posterior | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.init not in STARTS:
            raise ValueError(f"init must be one of {', '.join(STARTS)}, got {self.init!r}")

    def reason_against(self, problem: Problem) -> str | None:
        energy = problem.energy
        if not isinstance(energy, GaussianMixtureEnergy) or energy.uniform:
            return "it is for a mixture of Gaussians with weights of its own"
        if energy.covariance_type == "identity":
            return "covariance_type='identity' leaves no covariances to learn"
        if not isinstance(problem.rule, SoftMin) or problem.penalty is not None:
            return "it raises a bound of the likelihood, without a penalty"
        if not problem.is_resident or set(problem.names) != {"x"}:
            return "it needs resident x, and z unknown"
        if has_nan(problem.resident["x"]):
            return "x holds NaN; GaussianMixture learns from missing values"
        return None

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        energy = problem.energy
        assert isinstance(energy, GaussianMixtureEnergy)
        # moments and bounds in float64, whatever θ is kept in
        work = copy.deepcopy(energy).double()
        work.reg_covar = 0.0
        inner = replace(problem, energy=work)
        step = VariationalM(inner, "z")
        step.reg_covar, step.prior = energy.reg_covar, self.prior.of(step)
        steps = twins(step, 1 if self.start is not None else self.n_init)
        for i, one in enumerate(steps):
            if self.start is not None:
                one.go_on(self.start)
            else:
                one.place(*start_moments(one.problem, one.mixture, self.init, i))
        histories = self._rounds(problem, steps)
        ends = [history.extra["bound"][-1] for history in histories]
        best = max(range(len(ends)), key=ends.__getitem__)
        history, step = histories[best], steps[best]
        q, work = step.posterior, step.mixture
        history.extra["restarts"] = ends
        history.about["posterior"] = vars(q)
        history.about["prior"] = vars(step.prior)
        energy.mu.copy_(work.mu)
        energy.U.copy_(work.U)
        energy.logits.copy_(torch.from_numpy(np.log(np.maximum(q.weights(), 1e-300))))
        if history.stop == "max_iter" and self.tol > 0 and current().rank == 0:
            warnings.warn(
                f"EM stopped after {self.max_iter} iterations while the bound still rose by more "
                f"than tol={self.tol}; raise max_iter or tol",
                NotConverged,
                stacklevel=3,
            )
        return history

    def _rounds(self, problem: Problem, steps: list[VariationalM]) -> list[History]:
        """All starts share a pass; one that converged waits. A callback sees the best bound."""
        histories = [History(solver="VariationalEM") for _ in steps]
        bounds, live = [-math.inf] * len(steps), list(range(len(steps)))
        record = History(solver="VariationalEM")
        with Monitor(problem.callbacks, Run(problem, record, self.max_iter)) as monitor:
            for _ in range(self.max_iter):
                begun = time.perf_counter()
                expect([steps[i] for i in live], 1.0)
                going = []
                for i in live:
                    step, history, before = steps[i], histories[i], bounds[i]
                    step.finish()
                    bounds[i] = step.bound
                    history.objective.append(-step.bound / step.weight)
                    history.extra.setdefault("bound", []).append(step.bound)
                    history.seconds.append((time.perf_counter() - begun) / len(live))
                    if abs(step.bound - before) < self.tol:
                        history.converged = True
                        history.stop = f"bound rose by less than {self.tol}"
                    else:
                        going.append(i)
                live = going
                if monitor.epoch(-max(bounds) / steps[0].weight):
                    for i in live:
                        histories[i].stop = "callback"
                    break
                if not live:
                    break
        for history in histories:
            history.n_iter = len(history.objective)
            history.stop = history.stop or "max_iter"
        return histories
