r"""Likelihoods with a conjugate prior: the posterior stays in the family of the prior.

===========  ====================================  =======================================
prior        likelihood                            posterior
===========  ====================================  =======================================
Beta(a, b)   n coins with :math:`P(1) = z`         Beta(a + ones, b + zeros)
Gamma(a, b)  n counts with mean z                  Gamma(a + sum, b + n)
Dirichlet α  n labels with probabilities z         Dirichlet(α + counts)
N(m, S)      :math:`N(Wz + b, \sigma^2I)`          N(ΣS⁻¹m + ΣWᵀ(x−b)/σ², Σ), Σ⁻¹ = S⁻¹ + WᵀW/σ²
===========  ====================================  =======================================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch import distributions as D
from torch.distributions import Distribution

from groundstate.math.distributions.operations import gaussian_moments


class _Repeated(nn.Module):
    """Likelihoods of ``n`` independent observations with the same z."""

    def __init__(self, n: int = 1) -> None:
        super().__init__()
        self.n = n

    def config(self) -> dict[str, Any]:
        return {"n": self.n}


class BernoulliOf(_Repeated):
    """n coins whose probability of a one is z itself."""

    def forward(self, z: Tensor) -> Distribution:
        probs = z.reshape(-1, 1).expand(-1, self.n)
        return D.Independent(D.Bernoulli(probs=probs, validate_args=False), 1)


class PoissonOf(_Repeated):
    """n counts whose mean is z itself."""

    def forward(self, z: Tensor) -> Distribution:
        rate = z.reshape(-1, 1).expand(-1, self.n)
        return D.Independent(D.Poisson(rate, validate_args=False), 1)


class CategoricalOf(nn.Module):
    """One label whose probabilities are z itself."""

    def forward(self, z: Tensor) -> Distribution:
        return D.Categorical(probs=z, validate_args=False)


class LinearNormal(nn.Module):
    r"""A noisy linear image, :math:`x \mid z \sim N(Wz + b, \sigma^2 I)`.

    Parameters
    ----------
    W : ``(d, l)``
    b : ``(d,)``, zeros when None
    scale : the noise σ
    """

    def __init__(self, W: Tensor, b: Tensor | None = None, scale: float = 1.0) -> None:
        super().__init__()
        self.W = nn.Parameter(W.detach().clone())
        self.b = nn.Parameter(W.new_zeros(W.shape[0]) if b is None else b.detach().clone())
        self.scale = float(scale)

    def config(self) -> dict[str, Any]:
        return {"W": self.W.detach(), "b": self.b.detach(), "scale": self.scale}

    def forward(self, z: Tensor) -> Distribution:
        mean = torch.addmm(self.b, z, self.W.T)
        return D.Independent(D.Normal(mean, torch.full_like(mean, self.scale)), 1)


def _beta(prior: Any, likelihood: BernoulliOf, x: Tensor) -> Distribution:
    base = prior.base_dist if isinstance(prior, D.Independent) else prior
    ones = x.sum(-1)  # (B,)
    if isinstance(prior, D.Independent):  # z of event shape (1,)
        ones = ones[:, None]
    distribution = D.Beta(base.concentration1 + ones, base.concentration0 + (x.shape[-1] - ones))
    return D.Independent(distribution, 1) if isinstance(prior, D.Independent) else distribution


def _gamma(prior: Any, likelihood: PoissonOf, x: Tensor) -> Distribution:
    base = prior.base_dist if isinstance(prior, D.Independent) else prior
    total = x.sum(-1)
    if isinstance(prior, D.Independent):
        total = total[:, None]
    distribution = D.Gamma(
        base.concentration + total, base.rate + x.shape[-1] + torch.zeros_like(total)
    )
    return D.Independent(distribution, 1) if isinstance(prior, D.Independent) else distribution


def _dirichlet(prior: Any, likelihood: CategoricalOf, x: Tensor) -> Distribution:
    count = nn.functional.one_hot(x, prior.concentration.shape[-1])
    return D.Dirichlet(prior.concentration + count)


def _normal(prior: Any, likelihood: LinearNormal, x: Tensor) -> Distribution:
    mean, cov = gaussian_moments(prior)
    W, precision = likelihood.W, 1 / likelihood.scale**2
    S = torch.linalg.inv(cov)
    P = S + precision * W.T @ W  # (l, l)
    pull = S @ mean + precision * (x - likelihood.b) @ W  # (B, l)
    loc = torch.linalg.solve(P, pull.T).T
    return D.MultivariateNormal(loc, precision_matrix=P, validate_args=False)


CONJUGATE: dict[tuple[str, type], Callable[[Any, Any, Tensor], Distribution]] = {
    ("Beta", BernoulliOf): _beta,
    ("Gamma", PoissonOf): _gamma,
    ("Dirichlet", CategoricalOf): _dirichlet,
    ("Normal", LinearNormal): _normal,
    ("MultivariateNormal", LinearNormal): _normal,
}
