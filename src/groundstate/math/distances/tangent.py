r"""Integrals over a space with a metric, in directions from one point.

.. math:: \int f(\operatorname{Log}_\mu x)\,\sqrt{\det M(x)}\,dx
          = \int f(v)\,\sqrt{\det M(\operatorname{Exp}_\mu v)}\;|\det D\operatorname{Exp}_\mu(v)|\,dv .
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from groundstate.compute.display import Displayed
from groundstate.compute.random import Key
from groundstate.math.distances.exponential import log_map, path
from groundstate.math.distances.riemannian import RiemannianMetric

REACH = 5.0  # standard deviations that a grid covers
COARSE = 16  # cells of a first look, along each axis
STEPS = 32  # of Runge and Kutta along a ray
NEGLIGIBLE = 14.0  # e^-14 of the highest density
SLACK = 0.02  # of a length: a way that is shorter by more is another way
NODE_STARTS = ("graph",)


@dataclass(frozen=True, repr=False)
class Nodes(Displayed):
    """Directions v ``(q, d)`` and logarithms of weights ``(q,)``: an integral is the weighted sum of f(v).

    ``points`` are the places x, ``(q, d)``.
    """

    v: Tensor
    log_weight: Tensor
    points: Tensor

    def _facts(self) -> dict[str, object]:
        return {"nodes": len(self.v)}

    def log_densities(self, precision: Tensor) -> Tensor:
        r""":math:`-\tfrac12v^\top\Lambda v` with the logarithms of the weights, ``(q,)``."""
        return self.log_weight - 0.5 * ((self.v @ precision) * self.v).sum(1)

    def log_normaliser(self, precision: Tensor) -> Tensor:
        r""":math:`\log\int e^{-\frac12\operatorname{Log}^\top\Lambda\operatorname{Log}}\sqrt{\det M}\,dx`."""
        return torch.logsumexp(self.log_densities(precision), 0)

    def moments(self, precision: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """log C, and the mean ``(d,)`` and second moments ``(d, d)`` of v under the density."""
        log_p = self.log_densities(precision)
        total = torch.logsumexp(log_p, 0)
        p = (log_p - total).exp()
        return total, p @ self.v, (self.v * p[:, None]).T @ self.v


def cells(low: Tensor, high: Tensor, each: int) -> tuple[Tensor, float]:
    """Middles of the cells of a box, ``(each^d, d)``, and their volume."""
    steps = (torch.arange(each, dtype=low.dtype, device=low.device) + 0.5) / each
    axes = [l + steps * (h - l) for l, h in zip(low, high, strict=True)]
    grid = torch.stack(torch.meshgrid(*axes, indexing="ij"), -1).reshape(-1, len(low))
    return grid, float((high - low).prod()) / each ** len(low)


@torch.no_grad()
def box(metric: RiemannianMetric, mu: Tensor, cov: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """Corners of a box that holds nearly all of a density around μ.

    Rays of five standard deviations and the metric's rows first; then a coarse grid says where the
    density is.
    """
    d = len(mu)
    angle = torch.linspace(0, 2 * math.pi, 2 if d == 1 else 49).to(mu)[:-1]
    turn = torch.stack([angle.cos(), angle.sin()], 1)[:, :d]
    if d == 1:
        turn = torch.tensor([[-1.0], [1.0]]).to(mu)
    rays = path(metric, mu, REACH * turn @ torch.linalg.cholesky(cov).T, STEPS).reshape(-1, d)
    rays = rays[torch.isfinite(rays).all(1)]
    inside = rays if metric.rows is None else torch.cat([rays, metric.rows.to(mu)])
    low, high = inside.amin(0), inside.amax(0)
    room = 0.02 * (high - low).amax().clamp(min=1e-12)
    low, high = low - room, high + room
    if metric.rows is None:
        return low, high
    points, _ = cells(low, high, COARSE)
    v = log_map(metric, mu, points, 17, starts=NODE_STARTS, tol=1e-4)
    far = 0.5 * ((v @ torch.linalg.inv(cov)) * v).sum(1)
    held = points[far <= far.amin() + NEGLIGIBLE]
    cell = (high - low) / COARSE
    return torch.maximum(low, held.amin(0) - cell), torch.minimum(high, held.amax(0) + cell)


@torch.no_grad()
def grid_nodes(
    metric: RiemannianMetric, mu: Tensor, points: Tensor, volume: float, n: int, **ways: Any
) -> Nodes:
    """Nodes at given places that stand for cells of one volume."""
    v = log_map(metric, mu, points, n, **({"starts": NODE_STARTS} | ways))
    return Nodes(v, 0.5 * metric.log_det(points) + math.log(volume), points)


@torch.no_grad()
def drawn_nodes(
    metric: RiemannianMetric, mu: Tensor, cov: Tensor, noise: Tensor, *, n: int | None = None
) -> Nodes:
    r"""Nodes :math:`v = L\varepsilon` of Gaussian noise ``(q, d)``, :math:`\Sigma = LL^\top`.

    With ``n`` points of a curve, nodes to which a shorter way leads do not count: they are counted
    where that way begins.
    """
    d = len(mu)
    L = torch.linalg.cholesky(cov)
    v = noise @ L.T
    h = 1e-4
    tried = torch.stack([v, *(v + h * column for column in L.T)])
    ends = path(metric, mu, tried, STEPS)[..., -1, :]  # (d + 1, q, d)
    J = ((ends[1:] - ends[0]) / h).permute(1, 2, 0)  # DExp L
    log_q = -0.5 * noise.square().sum(1) - 0.5 * d * math.log(2 * math.pi)
    weight = 0.5 * metric.log_det(ends[0]) + torch.linalg.slogdet(J)[1] - log_q - math.log(len(v))
    weight = torch.where(torch.isfinite(weight), weight, -math.inf)
    if n is not None:
        weight = torch.where(shortest(metric, mu, v, ends[0], n), weight, -math.inf)
    return Nodes(v, weight, ends[0])


def shortest(metric: RiemannianMetric, mu: Tensor, v: Tensor, points: Tensor, n: int) -> Tensor:
    """Whether no shorter way leads from μ to Exp(v) than that along v, ``(q,)``."""
    straight = metric.quadratic(mu.expand_as(v), v).clamp(min=0).sqrt()
    length = metric.geodesic(mu, points, n, starts=NODE_STARTS, tol=1e-4).length
    found: Tensor = length >= (1 - SLACK) * straight
    return found


def nodes_for(
    metric: RiemannianMetric, mu: Tensor, cov: Tensor, *, how: str = "auto", size: int = 1024,
    n: int = 33, random_state: Any = None,
) -> Nodes:  # fmt: skip
    """Nodes for a density around μ with directions of covariance Σ.

    Parameters
    ----------
    metric : where
    mu, cov : ``(d,)``, ``(d, d)``
    how : "grid" of places, "monte_carlo" in directions, or "auto": the grid up to two dimensions
    size : number of nodes
    n : points of a curve
    random_state : of the draws
    """
    d = len(mu)
    if how not in ("auto", "grid", "monte_carlo"):
        raise ValueError(f"how must be 'auto', 'grid' or 'monte_carlo', got {how!r}")
    if how == "grid" or (how == "auto" and d <= 2):
        low, high = box(metric, mu, cov, n)
        points, volume = cells(low, high, max(2, round(size ** (1 / d))))
        return grid_nodes(metric, mu, points, volume, n)
    return drawn_nodes(metric, mu, cov, noise_of(size, d, random_state, mu), n=n)


def noise_of(size: int, d: int, random_state: Any, like: Tensor) -> Tensor:
    """Standard normal draws with the moments of the distribution itself: in a flat space sums over them
    are exact."""
    key = Key.of(random_state).fold("directions")
    many = max(d + 1, -(-size // 2))
    half = torch.randn(many, d, generator=key.torch(torch.device("cpu")), dtype=torch.float64)
    root = torch.linalg.cholesky(half.T @ half / many)
    half = torch.linalg.solve_triangular(root, half.T, upper=False).T
    return torch.cat([half, -half]).to(like)  # each with its negative: the mean is zero
