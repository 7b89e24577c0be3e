r"""Noise with the mean and covariance of the data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import MultivariateNormal


class GaussianNoise(nn.Module):
    r""":math:`q = N(\hat\mu, \hat\Sigma)`, a proposal that is stored with the rule that uses it.

    Parameters
    ----------
    mean : ``(d,)``
    tril : ``(d, d)``, the Cholesky factor of the covariance

    Examples
    --------
    >>> GaussianNoise([0.0, 0.0], [[1.0, 0.0], [0.0, 2.0]])().variance
    tensor([1., 4.])
    """

    mean: Tensor
    tril: Tensor

    def __init__(self, mean: Any, tril: Any) -> None:
        super().__init__()
        self.register_buffer("mean", torch.as_tensor(mean))
        self.register_buffer("tril", torch.as_tensor(tril))

    @classmethod
    def of(cls, x: Tensor, weight: Tensor | None = None) -> GaussianNoise:
        """With the moments of rows ``(n, d)`` of weights ``(n,)``."""
        rows = x.double()
        d = rows.shape[1]
        w = rows.new_ones(len(rows)) if weight is None else weight.to(rows)
        mean = w @ rows / w.sum()
        cov = rows.T.cov(correction=0, aweights=w).reshape(d, d)
        cov = cov + 1e-6 * torch.eye(d, dtype=cov.dtype, device=cov.device)
        return cls(mean.to(x.dtype), torch.linalg.cholesky(cov).to(x.dtype))

    def config(self) -> dict[str, Any]:
        return {"mean": self.mean.tolist(), "tril": self.tril.tolist()}

    def forward(self, known: Mapping[str, Tensor] | None = None) -> MultivariateNormal:
        return MultivariateNormal(self.mean, scale_tril=self.tril, validate_args=False)
