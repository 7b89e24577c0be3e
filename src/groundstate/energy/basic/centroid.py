r"""Distance to a centroid, :math:`e(x, z) = \tfrac12\|x - \mu_z\|^2`."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import Categorical, Distribution
from torch.nn.functional import one_hot

from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.basic.initial import normal
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Finite, Real
from groundstate.math.distributions.gaussian.partly_known import PartlyKnownNormal
from groundstate.math.distributions.operations import draw, fresh, isotropic
from groundstate.math.info.free_energy import boltzmann_logits


def _rows_of(x: Tensor) -> Tensor:
    """The row of every stored entry of sparse rows."""
    return torch.repeat_interleave(torch.arange(len(x), device=x.device), x.crow_indices().diff())


@registered(r"e(x, z) = \tfrac12\|x - \mu_z\|^2", lambda: CentroidEnergy(3, 2, scale=2.0))
class CentroidEnergy(Energy):
    r"""Squared distance to one of k points, :math:`e(x, z) = \tfrac12\|x - \mu_z\|^2`.

    Minimising over z is nearest-centroid assignment; the marginal over z at T = 1 is a mixture of
    unit Gaussians with equal weights. The normaliser :math:`k(2\pi T)^{d/2}` is free of θ.

    Parameters
    ----------
    k : number of centroids
    d : number of features
    scale : standard deviation of the initial centroids
    generator : source of the initial centroids

    Attributes
    ----------
    mu : Parameter, ``(k, d)``

    Examples
    --------
    >>> e = CentroidEnergy(2, 1)
    >>> _ = e.mu.data.copy_(torch.tensor([[-1.0], [1.0]]))
    >>> e.table("z", x=torch.tensor([[3.0]])).tolist()
    [[8.0, 2.0]]
    """

    gaussian = frozenset({"x"})

    def __init__(
        self, k: int, d: int, *, scale: float = 1.0, generator: torch.Generator | None = None
    ) -> None:
        super().__init__(x=Real(d), z=Finite(k))
        self.mu = nn.Parameter(normal(k, d, scale=scale, generator=generator))

    def config(self) -> dict[str, Any]:
        return {"k": self.mu.shape[0], "d": self.mu.shape[1]}

    def forward(self, x: Tensor, z: Tensor) -> Tensor:
        return 0.5 * (x - self.mu[z]).square().sum(-1)

    @offers.table("z")
    def energies(self, x: Tensor) -> Tensor:
        if x.layout == torch.sparse_csr:  # rows stay sparse, so they are not moved
            each = x.values().square()
            square = each.new_zeros(len(x), 1).index_add_(0, _rows_of(x), each[:, None])
            squares = square + self.mu.square().sum(-1)
            return (0.5 * squares - x @ self.mu.T).clamp_min(0.0)
        origin = self.mu.detach().mean(0)  # differences from it lose fewer digits in the products
        u, v = x - origin, self.mu - origin
        squares = u.square().sum(-1, keepdim=True) + v.square().sum(-1)
        return torch.addmm(squares, u, v.T, beta=0.5, alpha=-1.0)

    @offers.conditional("z")
    def responsibilities(self, x: Tensor, T: float = 1.0) -> Categorical:
        return Categorical(logits=boltzmann_logits(self.energies(x), T), validate_args=False)

    @offers.conditional("x", partial=True)
    def around(
        self, z: Tensor, T: float = 1.0, x: Tensor | None = None, mask: Tensor | None = None
    ) -> Distribution:
        """x given its centroid: N(μ_z, T); with ``mask``, of the free coordinates of ``x``."""
        mean = self.mu[z]
        if x is not None and mask is not None:
            precision = torch.eye(mean.shape[1], dtype=mean.dtype, device=mean.device) / T
            return PartlyKnownNormal(mean, precision.expand(len(z), -1, -1), x, mask)
        return isotropic(mean, T**0.5)

    @offers.log_partition("z")
    def log_sum(self, x: Tensor, T: float = 1.0) -> Tensor:
        return torch.logsumexp(boltzmann_logits(self.energies(x), T), -1)

    def _volume(self, T: float) -> float:
        return 0.5 * self.mu.shape[1] * math.log(2 * math.pi * T)

    @offers.log_partition("x")
    def constant(self, z: Tensor, T: float = 1.0) -> Tensor:
        return self.mu.new_full((z.shape[0],), self._volume(T))

    @offers.log_partition("x", "z")
    def total(self, T: float = 1.0) -> Tensor:
        return self.mu.new_full((1,), math.log(self.mu.shape[0]) + self._volume(T))

    def ancestral(
        self, n: int, *, T: float = 1.0, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        """Exact joint draws: z uniform, then x around its centroid."""
        generator = fresh(generator)
        z = torch.randint(len(self.mu), (n,), generator=generator, device=generator.device)
        z = z.to(self.mu.device)
        return {"x": draw(self.around(z, T), 1, generator)[0], "z": z}

    @offers.stats
    def stats(
        self, weights: Tensor | None, x: Tensor, z: Tensor | Categorical
    ) -> dict[str, Tensor]:
        """Weight and weighted sum per centroid; ``z`` as a distribution gives expected sums."""
        r = z.probs if isinstance(z, Distribution) else one_hot(z, self.mu.shape[0])
        r = r.to(x.dtype)
        if weights is not None:
            r = weights.to(x.dtype)[:, None] * r
        return {"n": r.sum(0, dtype=torch.float64), "x": (r.T @ x).double()}

    @offers.from_stats
    def from_stats(self, stats: dict[str, Tensor]) -> None:
        """Centroids at weighted means; one without weight stays where it is."""
        n = stats["n"][:, None]
        with torch.no_grad():
            mean = stats["x"] / torch.where(n > 0, n, 1.0)
            self.mu.copy_(torch.where(n > 0, mean, self.mu.double()))
