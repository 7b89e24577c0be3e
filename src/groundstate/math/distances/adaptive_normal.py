r"""A normal density under a metric: :math:`e^{-\frac12\operatorname{Log}_\mu(x)^\top\Sigma^{-1}
\operatorname{Log}_\mu(x)}`, normalised."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.errors import ShapeError
from groundstate.math.arrays import as_tensor, takes_arrays
from groundstate.math.distances.exponential import log_map
from groundstate.math.distances.riemannian import RiemannianMetric
from groundstate.math.distances.tangent import drawn_nodes, nodes_for, shortest

ROUNDS = 200  # of draws that are kept or not


class LocallyAdaptiveNormal:
    r"""A normal distribution along the shortest curves of a metric,

    .. math::
        p(x) = \frac{\sqrt{\det M(x)}}C\,e^{-\frac12v^\top\Sigma^{-1}v}, \qquad
        v = \operatorname{Log}_\mu(x), \qquad
        C = \int e^{-\frac12v^\top\Sigma^{-1}v}\sqrt{\det M(x)}\,dx ,

    a density per unit of dx; per unit of the metric's own volume :math:`\sqrt{\det M}\,dx` it is the same
    without the root. Under a constant metric it is the ordinary normal distribution.

    Parameters
    ----------
    metric : where
    mean : μ, ``(d,)``
    cov : Σ of directions at μ, ``(d, d)``
    normaliser : "grid" of places, "monte_carlo" in directions, or "auto": the grid up to d = 2
    size : nodes of the normaliser
    n : points of a curve
    random_state : of "monte_carlo"

    Attributes
    ----------
    log_normaliser : log C

    Examples
    --------
    >>> from groundstate.math.distances import ConstantMetric
    >>> normal = LocallyAdaptiveNormal(ConstantMetric([[4.0]]), [1.0], [[0.25]], size=64)
    >>> round(float(normal.log_prob([[1.5]])[0]), 6)  # log N(1.5; 1, 0.25)
    -0.725791
    """

    def __init__(
        self, metric: RiemannianMetric, mean: Any, cov: Any, *, normaliser: str = "auto",
        size: int = 1024, n: int = 33, random_state: Any = None,
    ) -> None:  # fmt: skip
        self.metric, self.n = metric, n
        self.mean = as_tensor(mean, "mean").double()
        self.cov = as_tensor(cov, "cov", self.mean).double()
        d = self.mean.shape[-1] if self.mean.ndim else 0
        if self.mean.ndim != 1 or self.cov.shape != (d, d):
            raise ShapeError(
                f"mean and cov need shapes (d,) and (d, d), got {tuple(self.mean.shape)} and "
                f"{tuple(self.cov.shape)}"
            )
        if bool(torch.linalg.cholesky_ex(self.cov)[1] != 0):
            raise ValueError("cov must be symmetric and positive definite")
        self.precision = torch.linalg.inv(self.cov)
        nodes = nodes_for(
            metric, self.mean, self.cov, how=normaliser, size=size, n=n, random_state=random_state
        )
        self.log_normaliser = float(nodes.log_normaliser(self.precision))

    @takes_arrays("X")
    def energy(self, X: Any) -> Any:
        r""":math:`\tfrac12\operatorname{Log}_\mu(x)^\top\Sigma^{-1}\operatorname{Log}_\mu(x)`, ``(n,)``."""
        v = log_map(self.metric, self.mean.to(X), X, self.n)
        return 0.5 * ((v @ self.precision.to(v)) * v).sum(-1)

    @takes_arrays("X")
    def log_prob(self, X: Any) -> Any:
        """Log density per unit of dx, ``(n,)`` for rows ``(n, d)``."""
        return 0.5 * self.metric.log_det(X) - self.energy(X) - self.log_normaliser

    def sample(self, n: int = 1, random_state: Any = None) -> Any:
        """Rows drawn from the distribution, ``(n, d)``."""
        generator = Key.of(random_state).torch(torch.device("cpu"))
        return draws(self.metric, self.mean, self.cov, n, generator, self.n).numpy()


@torch.no_grad()
def draws(
    metric: RiemannianMetric, mu: Tensor, cov: Tensor, size: int, generator: torch.Generator, n: int
) -> Tensor:
    r"""Exact draws, ``(size, d)``: directions from :math:`N(0, \Sigma)`, kept in proportion to
    :math:`\sqrt{\det M}\,|\det D\operatorname{Exp}|`, where no shorter way leads to the same place."""
    kept: list[Tensor] = []
    found, bound = 0, -math.inf
    for _ in range(ROUNDS):
        many = max(64, 4 * (size - found))
        noise = torch.randn(
            many, len(mu), generator=generator, dtype=torch.float64, device=generator.device
        ).to(mu)
        nodes = drawn_nodes(metric, mu, cov, noise)
        # in proportion to the density over that of the draw
        ratio = nodes.log_weight - 0.5 * noise.square().sum(1) + math.log(many)
        chance = torch.rand(many, generator=generator, dtype=torch.float64, device=generator.device)
        bound = max(bound, float(ratio.max()))
        ok = chance.to(mu).log() < ratio - bound
        points = nodes.points[ok][shortest(metric, mu, nodes.v[ok], nodes.points[ok], n)]
        kept.append(points)
        found += len(points)
        if found >= size:
            return torch.cat(kept)[:size]
    raise RuntimeError(
        f"of {ROUNDS} rounds of draws only {found} of {size} were kept: the space is too curved at the "
        "scale of cov; take a larger sigma or rho of the metric"
    )
