r"""EM for Gaussian components where values are missing at random.

With m the missing and o the observed columns of a row,

.. math:: E[x_m\mid x_o, z] = \mu_m + \Sigma_{mo}\Sigma_{oo}^{-1}(x_o - \mu_o),\qquad
          \mathrm{Cov}[x_m\mid x_o, z] = \Sigma_{mm} - \Sigma_{mo}\Sigma_{oo}^{-1}\Sigma_{om},

which complete the sums of the M-step; the likelihood of what is observed never falls.
"""

from __future__ import annotations

import torch
from torch import Tensor

from groundstate.energy.latent.gaps import gaps_of
from groundstate.learn.base import Batch, Problem
from groundstate.learn.solvers.em.steps import MStep
from groundstate.learn.solvers.latent.mixtures.steps import GaussianM


class MissingM(GaussianM):
    """E-step and statistics of rows with NaN, then weights, means and covariances."""

    def __init__(self, problem: Problem, latent: str) -> None:
        super().__init__(problem, latent, whiten=False)

    def begin(self, T: float) -> None:
        MStep.begin(self, T)

    @torch.no_grad()
    def add(self, batch: Batch, weight: Tensor | None) -> None:
        F = self.collect(batch, weight)
        self._accumulate("J", {"x": batch["x"]}, weight, F)

    def collect(self, batch: Batch, weight: Tensor | None) -> Tensor:
        energy, x = self.mixture, batch["x"]
        k, d = energy.mu.shape
        table = energy.observed_energies(x).double()
        r = torch.softmax(-table / self.T, 1)
        F = -self.T * torch.logsumexp(-table / self.T, 1)
        r = r if weight is None else r * weight.double()[:, None]
        mu, cov = energy.mu.detach().double(), energy.full_covariances()
        n, first, second = r.sum(0), mu.new_zeros(k, d), mu.new_zeros(k, d, d)
        hidden = torch.isnan(x)
        for gaps in gaps_of(hidden, k):
            L = gaps.factor(cov)  # (p, k, d, d)
            m = gaps.free.to(cov)[:, None]  # (p, 1, d)
            across = cov * m[..., :, None] * (1 - m)[..., None, :]  # Σ_mo, zero elsewhere
            solved = torch.cholesky_solve(across.mT, L)
            spare = cov * m[..., :, None] * m[..., None, :] - across @ solved
            share = r[gaps.rows]
            diff = x[gaps.rows].double()[:, None] - mu  # (n, k, d)
            diff = torch.where(hidden[gaps.rows][:, None], 0.0, diff)
            diff = (diff + gaps.map(solved.mT, diff)).transpose(0, 1)  # (k, n, d)
            total = share.new_zeros(len(gaps.sizes), k).index_add_(0, gaps.which, share)
            second += torch.einsum("pkij,pk->kij", spare, total)
            scaled = diff * share.T[:, :, None]
            first += scaled.sum(1)
            second += scaled.mT @ diff
        self._sum("n", n)
        self._sum("x", first)
        kind = energy.covariance_type
        if kind == "tied":
            second = second.sum(0)
        elif kind != "full":
            second = second.diagonal(dim1=-2, dim2=-1)
        self._sum("xx", second)
        return F
