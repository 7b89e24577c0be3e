r"""Likelihoods and bounds of linear Gaussian factors that need the covariance of the rows alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass
class Factors:
    r"""W ``(d, l)``, the noise ``()`` or ``(d,)`` and the prior variance of a code, in double precision."""

    W: Tensor
    noise: Tensor
    prior: float

    def precision(self) -> Tensor:
        r""":math:`A = W^\top\Psi^{-1}W + I/\sigma^2`, ``(l, l)``."""
        eye = torch.eye(self.W.shape[1], dtype=self.W.dtype, device=self.W.device)
        return (self.W.T / self.noise) @ self.W + eye / self.prior

    def encoder(self) -> tuple[Tensor, Tensor]:
        r""":math:`\beta = A^{-1}W^\top\Psi^{-1}`, so that :math:`m = \beta(x - b)`; and :math:`S = A^{-1}`."""
        factor = torch.linalg.cholesky(self.precision())
        return torch.cholesky_solve(self.W.T / self.noise, factor), torch.cholesky_inverse(factor)

    def log_likelihood(self, cov: Tensor) -> float:
        r"""Mean of :math:`\log N(x; b, \sigma^2WW^\top + \Psi)` over rows with this covariance."""
        d, l = self.W.shape
        factor = torch.linalg.cholesky(self.precision())
        rate = self.W.T / self.noise
        inner = torch.cholesky_solve(rate @ cov @ rate.T, factor)
        square = (cov.diagonal() / self.noise).sum() - inner.trace()
        volume = self.noise.log().expand(d).sum() + 2 * factor.diagonal().log().sum()
        total = square + volume + l * math.log(self.prior) + d * math.log(2 * math.pi)
        return -0.5 * float(total)

    def bound(self, cov: Tensor, width: float) -> float:
        r"""Mean of the bound J with :math:`q = N(m(x), s^2I)`, m the best mean, as for the posterior.

        The gap to the likelihood is
        :math:`\tfrac12[s^2\operatorname{tr}A - l - l\log s^2 - \log\det A]`, the same for every row.
        """
        A = self.precision()
        l = len(A)
        gap = width * A.trace() - l - l * math.log(width) - torch.logdet(A)
        return self.log_likelihood(cov) - 0.5 * float(gap)
