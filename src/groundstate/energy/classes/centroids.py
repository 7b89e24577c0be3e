r"""Classes as points, :math:`e(x, y) = -\log\pi_y + \tfrac12\,d(x, \mu_y)^2 + c`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.energy.classes.naive_bayes.joint import JointClassEnergy
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Real


def _example() -> CentroidClassEnergy:
    energy = CentroidClassEnergy(3, 2)
    with torch.no_grad():
        energy.logits.copy_(torch.tensor([0.3, -0.2, 0.1]))
        energy.mu.copy_(torch.tensor([[-1.0, 0.5], [1.0, 0.0], [0.2, -1.5]]))
        energy.scale.copy_(torch.tensor([0.8, 1.5]))
    return energy


@registered(r"e(x, y) = -\log\pi_y + \tfrac12\,d(x/s, \mu_y/s)^2 + c", _example)
class CentroidClassEnergy(JointClassEnergy):
    r"""Squared distance to the point of a class, :math:`e(x, y) = -\log\pi_y +
    \tfrac12\,d(x/s, \mu_y/s)^2 + c`, where d is Euclidean or Manhattan.

    The constant c makes :math:`e^{-e}` a density of row and class: a Gaussian about the centroid, or
    its twin whose level sets are diamonds.

    Parameters
    ----------
    k : number of classes
    d : number of features
    metric : "euclidean" or "manhattan"
    prior : ``(k,)`` probabilities that are kept, or None to learn them

    Attributes
    ----------
    mu : Parameter, ``(k, d)``
    scale : buffer, ``(d,)``; s, the units in which distances are measured
    spread : buffer, ``(d,)``; standard deviation of the rows about their centroids
    deviation : buffer, ``(k, d)``; centroids from the mean of all rows, in standard errors

    Examples
    --------
    >>> e = CentroidClassEnergy(2, 1)
    >>> _ = e.mu.data.copy_(torch.tensor([[-1.0], [1.0]]))
    >>> e.table("y", x=torch.tensor([[3.0]])).diff().round().tolist()
    [[-6.0]]
    """

    mu: Tensor
    scale: Tensor
    spread: Tensor
    deviation: Tensor

    def __init__(
        self,
        k: int,
        d: int,
        metric: str = "euclidean",
        prior: Sequence[float] | Tensor | None = None,
    ) -> None:
        super().__init__(k, Real(d), prior)
        if metric not in ("euclidean", "manhattan"):
            raise ValueError(f"metric must be 'euclidean' or 'manhattan', got {metric!r}")
        self.d, self.metric = d, metric
        self.mu = nn.Parameter(torch.zeros(k, d))
        self.register_buffer("scale", torch.ones(d))
        self.register_buffer("spread", torch.ones(d))
        self.register_buffer("deviation", torch.zeros(k, d))

    def config(self) -> dict[str, Any]:
        return {"k": self.k, "d": self.d, "metric": self.metric, **self.kept_prior()}

    @torch.no_grad()
    def place(self, n: Tensor, mu: Tensor, spread: Tensor, deviation: Tensor) -> None:
        """Centroids of classes of weight n; the spread is the unit where priors differ."""
        self._keep({"n": n})
        prior = n / n.sum() if self.prior is None else torch.tensor(self.prior)
        equal = float(prior.max() - prior.min()) <= 1e-5 / self.k
        self.mu.copy_(mu)
        self.spread.copy_(spread)
        self.deviation.copy_(deviation)
        self.scale.copy_(torch.ones_like(spread) if equal else torch.where(spread > 0, spread, 1.0))

    def squared(self, x: Tensor, scale: Tensor) -> Tensor:
        """Squared distances to all centroids in these units, ``(B, k)``."""
        if self.metric == "manhattan":
            return torch.cdist(x / scale, self.mu / scale, p=1.0).square()
        origin = self.mu.detach().mean(0)  # differences from it lose fewer digits in the products
        u, v = (x - origin) / scale, (self.mu - origin) / scale
        squares = u.square().sum(-1, keepdim=True) + v.square().sum(-1)
        return torch.addmm(squares, u, v.T, alpha=-2.0)

    def log_likelihood(self, x: Tensor) -> Tensor:
        return -0.5 * self.squared(x, self.scale) - self.scale.log().sum() - self._volume()

    def _volume(self) -> float:
        """Logarithm of the integral of exp(−d(x, 0)²/2)."""
        d = self.d
        if self.metric == "euclidean":
            return 0.5 * d * math.log(2 * math.pi)
        return (1.5 * d - 1) * math.log(2) + math.lgamma(0.5 * d) - math.lgamma(d)

    def draw_x(self, y: Tensor, generator: torch.Generator) -> Tensor:
        mu, s = self.mu.detach()[y], self.scale
        z = torch.randn(mu.shape, generator=generator, device=generator.device, dtype=mu.dtype)
        if self.metric == "manhattan":  # a diamond of the same size, its points all as probable
            u = torch.empty_like(z).exponential_(generator=generator)
            u = u / u.sum(1, keepdim=True)
            z = torch.linalg.vector_norm(z, dim=1, keepdim=True) * u * z.sign()
        return mu + s * z.to(mu.device)
