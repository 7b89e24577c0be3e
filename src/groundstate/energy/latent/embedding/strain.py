r"""Squared distances to known rows, explained by inner products of places."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution, MultivariateNormal

from groundstate.energy.abilities import offers
from groundstate.energy.latent.embedding.base import MapEnergy, example
from groundstate.energy.registering import registered
from groundstate.math.distances.euclidean import lowest, reached


@registered(
    r"e(x, z) = \tfrac12\sum_j\bigl(b_j(x) - y_j^\top z\bigr)^2",
    lambda: example(StrainEnergy(2, 1), 2, 1),
)
class StrainEnergy(MapEnergy):
    r"""The strain of a row x at z, :math:`e(x, z) = \tfrac12\sum_j(b_j(x) - y_j^\top z)^2` with
    :math:`b_j(x) = -\tfrac12\bigl(\delta_j^2 - \bar\delta^2 - c_j + \bar c\bigr)`.

    :math:`\delta_j` are the distances to the known rows, :math:`c_j` the mean of the squared
    distances between the j-th and the others, so that of the known rows b is a row of
    :math:`B = -\tfrac12 H(D \circ D)H`. Its minimum over z,
    :math:`(Y^\top Y)^{-1}Y^\top b`, is the place :math:`y_i` for a known row, and Gower's and de
    Silva's and Tenenbaum's extension for a new one.

    Parameters
    ----------
    d : number of features
    components : length of a place
    metric, p, VI, w, n : of the rows, see ``groundstate.energy.neighbors.memory.Memory``

    Attributes
    ----------
    Y : parameter ``(n, components)``, places of the known rows, about their mean
    centre : buffer ``(n,)``, c

    Examples
    --------
    >>> e = StrainEnergy(1, 1)
    >>> e.remember(torch.tensor([[0.0], [1.0], [5.0]]), torch.tensor([[-2.0], [-1.0], [3.0]]))
    >>> round(e.argmin(x=torch.tensor([[2.5]])).item(), 4)
    0.5
    """

    centre: Tensor

    def __init__(self, d: int, components: int, **memory: Any) -> None:
        super().__init__(d, components, **memory)
        self.register_buffer("centre", torch.zeros(len(self.memory.rows)))

    def remember(
        self, rows: Tensor, Y: Tensor, columns: Tensor | None = None, centre: Tensor | None = None
    ) -> None:
        super().remember(rows, Y, columns)
        if centre is None:
            centre = self.away(rows).double().square().mean(1)
        self.centre = centre.to(rows.dtype)

    def products(self, x: Tensor) -> Tensor:
        """b, the inner products that the distances of x speak of, ``(B, n)``."""
        square = self.away(x).square()
        inside = square - square.mean(1, keepdim=True) - self.centre + self.centre.mean()
        return -0.5 * inside

    def forward(self, x: Tensor, z: Tensor) -> Tensor:
        return 0.5 * (self.products(x) - z @ self.Y.T).square().sum(1)

    def _solved(self, b: Tensor) -> Tensor:
        Y = self.Y.double()
        return (b.double() @ torch.linalg.pinv(Y, rtol=1e-7).T).to(b.dtype)

    @offers.argmin("z")
    def argmin(self, x: Tensor) -> Tensor:
        return self._solved(self.products(x))

    @offers.conditional("z", when=lambda energy: energy.is_full)
    def distribution(self, x: Tensor, T: float = 1.0) -> Distribution:
        gram = (self.Y.T @ self.Y) / T
        return MultivariateNormal(
            self.argmin(x), precision_matrix=gram.expand(len(x), -1, -1), validate_args=False
        )

    @property
    def is_full(self) -> bool:
        """Whether the places use all of their dimensions, so that z has a distribution."""
        values = torch.linalg.svdvals(self.Y.detach().double())
        return len(values) == self.components and bool(values[-1] > 1e-7 * values[0])

    def placed(self, x: Tensor) -> Tensor:
        return self.argmin(x)


@registered(
    r"e(x, z) = \tfrac12\sum_j\bigl(b_j(x) - y_j^\top z\bigr)^2, \quad "
    r"\delta_j(x) = \min_i d(x, x_i) + D_{ij}",
    lambda: _geodesic(),
)
class GeodesicEnergy(StrainEnergy):
    r"""The strain :math:`e(x, z) = \tfrac12\sum_j(b_j(x) - y_j^\top z)^2` of lengths of paths along a
    graph, :math:`\delta_j(x) = \min_{i \in N_k(x)} d(x, x_i) + D_{ij}`.

    Parameters
    ----------
    d : number of features
    components : length of a place
    neighbors : k, how many known rows a path may begin with
    radius : paths begin with all known rows within it instead, at least the nearest
    landmarks : m, how many of the known rows have a place here
    metric, p, VI, w, n : of the rows, see ``groundstate.energy.neighbors.memory.Memory``

    Attributes
    ----------
    Y : parameter ``(m, components)``
    paths : buffer ``(n, m)``, lengths of shortest paths from the known rows to the landmarks

    Examples
    --------
    >>> e = GeodesicEnergy(1, 1, neighbors=1)
    >>> rows, places = torch.tensor([[0.0], [1.0], [5.0]]), torch.tensor([[-2.0], [-1.0], [3.0]])
    >>> e.remember_paths(rows, (rows - rows.T).abs(), places)
    >>> round(e.argmin(x=torch.tensor([[1.0]])).item(), 4)
    -1.0
    """

    paths: Tensor

    def __init__(
        self, d: int, components: int, neighbors: int = 5, landmarks: int | None = None,
        radius: float | None = None, **memory: Any,
    ) -> None:  # fmt: skip
        super().__init__(d, components, **memory)
        self.neighbors, self.radius = neighbors, radius
        n = len(self.memory.rows)
        m = n if landmarks is None else landmarks
        self.register_buffer("paths", torch.zeros(n, m))
        self.centre = torch.zeros(m)
        self.Y = torch.nn.Parameter(torch.zeros(m, components))

    def config(self) -> dict[str, Any]:
        within = {} if self.radius is None else {"radius": self.radius}
        count = {"neighbors": self.neighbors, "landmarks": self.paths.shape[1]}
        return {**super().config(), **count, **within}

    def remember_paths(
        self, rows: Tensor, paths: Tensor, Y: Tensor, columns: Tensor | None = None,
        centre: Tensor | None = None,
    ) -> None:  # fmt: skip
        """Keep rows, the lengths of their paths to the landmarks ``(n, m)`` and these' places."""
        self.keep(rows, columns)
        self.paths = paths.to(rows.dtype)
        self.Y = torch.nn.Parameter(Y.detach().to(rows.dtype).clone())
        if centre is None:
            centre = paths.double().square().mean(0)
        self.centre = centre.to(rows.dtype)

    def remember(
        self, rows: Tensor, Y: Tensor, columns: Tensor | None = None, centre: Tensor | None = None
    ) -> None:
        self.remember_paths(rows, torch.cdist(rows, rows), Y, columns, centre)

    def away(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            index = self._begun(x)
        first = self.memory.measured(x, index).to(x.dtype)  # (B, k)
        if self.radius is not None:
            far = first > self.radius
            far[:, :1] = False
            first = torch.where(far, torch.inf, first)
        out = first[:, :1] + self.paths[index[:, 0]]
        for c in range(1, index.shape[1]):  # one at a time: no table of all k paths
            out = torch.minimum(out, first[:, c : c + 1] + self.paths[index[:, c]])
        return out

    def _begun(self, x: Tensor) -> Tensor:
        """Numbers of the known rows that a path may begin with, the nearest first, ``(B, k)``."""
        if self.radius is None:
            return self.memory.nearest(x, min(self.neighbors, len(self.memory.rows)))[1]
        away = self.memory.every(x)
        count = int((away <= self.radius).sum(1).max()) if len(x) else 1
        distance, index = lowest(away, max(1, count))
        reached(distance[:, :1])
        return index


def _geodesic() -> GeodesicEnergy:
    made: GeodesicEnergy = example(GeodesicEnergy(2, 1, neighbors=2), 2, 1)
    return made
