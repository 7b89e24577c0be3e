r"""Mixtures of Gaussians from mini-batches: moving averages of the statistics, or gradient steps."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from groundstate.energy.latent.gaussian_mixture import GaussianMixtureEnergy
from groundstate.learn.base import Problem
from groundstate.learn.solvers.em.online import Averaged, decaying

Rate = float | Callable[[int], float] | None
Stats = dict[str, Tensor]
SCALE = 2.0**20  # statistics of a unit of weight would drown in what keeps N_z from zero


def gradient_rate(rate: Rate, k: int, t: int) -> float:
    r""":math:`\eta_t`; by default :math:`\min(1, k(t+2)^{-0.7})`, the pace of stepwise EM."""
    if rate is None:
        return min(1.0, k * decaying(t))
    return float(rate(t) if callable(rate) else rate)


@torch.no_grad()
def gradient_step(energy: GaussianMixtureEnergy, unit: Stats, eta: float) -> None:
    r"""One step up the mean log-likelihood of a batch, from its statistics per unit of weight.

    .. math::
        \pi_z \leftarrow \pi_z + \eta\,\overline{(\alpha_z - \pi_z)},\quad
        \mu_z \leftarrow \mu_z + \eta\,\overline{\alpha_z(x - \mu_z)},\quad
        \Sigma_z \leftarrow \Sigma_z + \eta\,
        \overline{\alpha_z\bigl((x-\mu_z)(x-\mu_z)^\top - \Sigma_z\bigr)},

    the gradients times :math:`\operatorname{diag}\pi - \pi\pi^\top`, :math:`\Sigma_z` and
    :math:`2\,\Sigma_z\otimes\Sigma_z`. With :math:`\eta \le 1` every Σ stays positive definite.
    ``reg_covar`` is part of Σ, not of what moves.

    Examples
    --------
    >>> e = GaussianMixtureEnergy(1, 1, "identity").double()
    >>> _ = e.mu.data.zero_()
    >>> x = torch.tensor([[1.0], [3.0]], dtype=torch.float64)
    >>> sums = e.stats(None, x, torch.zeros(2, dtype=torch.long))
    >>> gradient_step(e, {k: v / 2 for k, v in sums.items()}, 0.5)
    >>> e.mu.item()
    1.0
    """
    n = unit["n"]
    pi = energy.log_weights.double().exp()
    mu = energy.mu.double() - energy.origin.double()
    step = unit["x"] - n[:, None] * mu
    kind = energy.covariance_type
    cov = energy.covariances()
    if kind in ("full", "tied"):
        cov = cov - energy.reg_covar * torch.eye(mu.shape[1]).to(cov)
        pull = mu[:, :, None] * step[:, None]  # Σ α (x − μ)(x − μ)ᵀ = xx − μ sᵀ − s μᵀ − n μμᵀ
        lost = pull + pull.mT + n[:, None, None] * mu[:, :, None] * mu[:, None]
        second = unit["xx"] - (lost.sum(0) if kind == "tied" else lost)
        own = cov if kind == "tied" else n[:, None, None] * cov
    else:
        cov = cov - energy.reg_covar
        second = unit["xx"] - 2 * mu * step - n[:, None] * mu.square()
        second = second.mean(1) if energy.U.ndim == 1 else second
        own = n * cov if energy.U.ndim == 1 else n[:, None] * cov
    cov = cov + eta * (second - own)
    if not energy.whole:
        cov = cov.clamp_min(0)
    share = pi + eta * (n - pi)
    mean = energy.mu.double() + eta * step
    energy.from_moments(share * SCALE, mean, cov)


class Gradient:
    """Gradient steps on the statistics of mini-batches: nothing to remember but θ."""

    average: Stats

    def __init__(self, problem: Problem, rate: Rate) -> None:
        assert isinstance(problem.energy, GaussianMixtureEnergy)
        self.mixture, self.rate, self.average = problem.energy, rate, {}

    def step(self, unit: Stats, t: int) -> None:
        gradient_step(self.mixture, unit, gradient_rate(self.rate, len(self.mixture.mu), t))


class Stepwise(Averaged):
    """Moving averages of the statistics, and θ from them."""

    def __init__(self, energy: GaussianMixtureEnergy, average: Stats | None = None) -> None:
        super().__init__(lambda stats: energy.from_stats(stats), SCALE, None)
        self.average = dict(average or {})
