r"""Maps of a graph: a row stands among the rows that it is joined to."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.distributions import Distribution, Independent, Normal

from groundstate.energy.abilities import offers
from groundstate.energy.latent.embedding.base import MapEnergy, example
from groundstate.energy.registering import registered
from groundstate.math.manifold.alignment import barycentre_weights


@registered(
    r"e(x, z) = \tfrac12\sum_jw_j(x)\sum_c(z_c - y_{jc}/\lambda_c)^2",
    lambda: example(LaplacianEnergy(2, 2, "rbf", gamma=0.7), 2, 2),
)
class LaplacianEnergy(MapEnergy):
    r"""How far a row stands from those it is joined to,
    :math:`e(x, z) = \tfrac12\sum_jw_j(x)\sum_c(z_c - y_{jc}/\lambda_c)^2`.

    Summed over a map it is :math:`\mathrm{tr}(Y^\top LY)` up to the scales λ, the eigenvalues of
    :math:`Wy = \lambda Dy`. A mean of neighbours is drawn in by λ; with it taken out, the minimum
    :math:`z_c = \tfrac1{\lambda_c}\sum_jw_jy_{jc}/\sum_jw_j` of a known row is its place (Nyström).

    Parameters
    ----------
    d : number of features
    components : length of a place
    affinity : "nearest_neighbors" (one for the k nearest, zero for others), "rbf"
        (:math:`e^{-\gamma\|x - x_j\|^2}`), "precomputed" (x are the weights) or a function of a table
        of rows that gives the weights of all pairs
    neighbors, gamma : k and γ
    n : known rows, before they are loaded

    Attributes
    ----------
    Y : parameter ``(n, components)``, places of the known rows
    scale : buffer ``(components,)``, λ

    Examples
    --------
    >>> e = LaplacianEnergy(1, 1, neighbors=2)
    >>> e.remember(torch.tensor([[0.0], [1.0], [5.0]]), torch.tensor([[-1.0], [0.0], [1.0]]))
    >>> e.argmin(x=torch.tensor([[0.4]])).tolist()
    [[-0.5]]
    """

    scale: Tensor

    def __init__(
        self, d: int, components: int, affinity: Any = "nearest_neighbors", *, neighbors: int = 5,
        gamma: float = 1.0, **memory: Any,
    ) -> None:  # fmt: skip
        given = isinstance(affinity, str) and affinity.startswith("precomputed")
        super().__init__(
            d, components, **{"metric": "precomputed" if given else "euclidean", **memory}
        )
        self.affinity, self.neighbors, self.gamma = affinity, int(neighbors), float(gamma)
        self.register_buffer("scale", torch.ones(components))

    def config(self) -> dict[str, Any]:
        return {
            **super().config(), "affinity": self.affinity, "neighbors": self.neighbors,
            "gamma": self.gamma,
        }  # fmt: skip

    def weights(self, x: Tensor) -> Tensor:
        """Weights of the known rows, ``(B, n)``."""
        if callable(self.affinity):
            rows = torch.cat([self.memory.rows, x]).detach().cpu().numpy()
            table = np.asarray(self.affinity(rows))[-len(x) :, : len(self.memory.rows)]
            return torch.as_tensor(table).to(x) + 0.0 * x.sum(1, keepdim=True)
        if self.affinity == "rbf":
            return torch.exp(-self.gamma * self.away(x).square())
        if self.affinity == "precomputed":
            return self.away(x)
        k = min(self.neighbors, len(self.memory.rows))
        with torch.no_grad():
            index = self.memory.nearest(x, k)[1]
        near = torch.zeros(len(x), len(self.memory.rows), dtype=x.dtype, device=x.device)
        return near.scatter_(1, index, 1.0) + self.memory.nothing(x)[:, None]

    def forward(self, x: Tensor, z: Tensor) -> Tensor:
        if not len(self.Y):
            return 0.0 * (x.sum(1) + z.sum(1))
        gap = z[:, None] - self.Y / self.scale  # (B, n, components)
        return 0.5 * (self.weights(x) * gap.square().sum(-1)).sum(1)

    @offers.argmin("z")
    def argmin(self, x: Tensor) -> Tensor:
        w = self.weights(x)
        total = w.sum(1, keepdim=True)
        mean: Tensor = w @ self.Y / torch.where(total > 0, total, 1.0) / self.scale
        return mean

    @offers.conditional("z")
    def distribution(self, x: Tensor, T: float = 1.0) -> Distribution:
        width = (T / self.weights(x).sum(1, keepdim=True)).sqrt()
        mean = self.argmin(x)
        return Independent(Normal(mean, width.expand_as(mean), validate_args=False), 1)

    def placed(self, x: Tensor) -> Tensor:
        return self.argmin(x)


@registered(
    r"e(x, z) = \tfrac12\bigl\|z - \sum_jw_j(x)\,y_j\bigr\|^2",
    lambda: example(BarycentreEnergy(2, 2, neighbors=3), 2, 2),
)
class BarycentreEnergy(MapEnergy):
    r"""How far a row stands from where its neighbours put it,
    :math:`e(x, z) = \tfrac12\|z - \sum_jw_j(x)\,y_j\|^2`.

    w are the weights, which sum to one, with which the k nearest known rows make x,
    :math:`\min_w\|x - \sum_jw_jx_j\|^2`, a little regularised.

    Parameters
    ----------
    d : number of features
    components : length of a place
    neighbors : k
    reg : of the weights, relative to the spread of the neighbours
    n : known rows, before they are loaded

    Attributes
    ----------
    Y : parameter ``(n, components)``, places of the known rows

    Examples
    --------
    >>> e = BarycentreEnergy(1, 1, neighbors=2, reg=1e-6)
    >>> e.remember(torch.tensor([[0.0], [1.0], [5.0]]), torch.tensor([[0.0], [10.0], [50.0]]))
    >>> round(e.argmin(x=torch.tensor([[0.4]])).item(), 3)
    4.0
    """

    def __init__(
        self, d: int, components: int, neighbors: int = 5, reg: float = 1e-3, **memory: Any
    ) -> None:
        super().__init__(d, components, **{"metric": "euclidean", **memory})
        self.neighbors, self.reg = int(neighbors), float(reg)

    def config(self) -> dict[str, Any]:
        return {**super().config(), "neighbors": self.neighbors, "reg": self.reg}

    @offers.argmin("z")
    def argmin(self, x: Tensor) -> Tensor:
        if not len(self.Y):
            return 0.0 * x.new_ones(len(x), self.components)
        k = min(self.neighbors, len(self.memory.rows))
        with torch.no_grad():
            index = self.memory.nearest(x, k)[1]
        w = barycentre_weights(x.double(), self.memory.rows.double()[index], self.reg)
        return (w[..., None] * self.Y.double()[index]).sum(1).to(x.dtype)

    def forward(self, x: Tensor, z: Tensor) -> Tensor:
        return 0.5 * (z - self.argmin(x)).square().sum(1)

    @offers.conditional("z")
    def distribution(self, x: Tensor, T: float = 1.0) -> Distribution:
        mean = self.argmin(x)
        return Independent(Normal(mean, torch.full_like(mean, T**0.5), validate_args=False), 1)

    def placed(self, x: Tensor) -> Tensor:
        return self.argmin(x)
