r"""EM for Gaussian components where values are missing at random.

Rows with the same missing columns m are handled together. With o the observed ones,

.. math:: E[x_m\mid x_o, z] = \mu_m + \Sigma_{mo}\Sigma_{oo}^{-1}(x_o - \mu_o),\qquad
          \mathrm{Cov}[x_m\mid x_o, z] = \Sigma_{mm} - \Sigma_{mo}\Sigma_{oo}^{-1}\Sigma_{om},

which complete the sums of the M-step; the likelihood of what is observed never falls.
"""

from __future__ import annotations

import torch
from torch import Tensor

from groundstate.energy.latent.gaussian_mixture import patterns
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
        for rows, free in patterns(torch.isnan(x)):
            share, known = r[rows], ~free
            diff = x[rows].double() - mu[:, None]  # (k, B, d)
            if bool(free.any()):
                spare = cov[:, free][:, :, free]
                if bool(known.any()):
                    across = cov[:, free][:, :, known]
                    solved = torch.linalg.solve(cov[:, known][:, :, known], across.mT)  # (k, o, m)
                    diff[:, :, free] = diff[:, :, known] @ solved
                    spare = spare - across @ solved
                else:
                    diff[:, :, free] = 0.0
                wide = spare * share.sum(0)[:, None, None]
                at = free.nonzero().flatten()
                second[:, at[:, None], at] += wide
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
