r"""A mixture of normal distributions along the shortest curves of a metric of the data."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import Categorical

from groundstate.energy.abilities import offers
from groundstate.energy.neighbors.local_metric import MetricMemory
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Finite, Real
from groundstate.math.distances.adaptive_normal import draws
from groundstate.math.distances.exponential import log_map
from groundstate.math.distances.local_metric import LocalMetric
from groundstate.math.distances.riemannian import RiemannianMetric
from groundstate.math.distances.tangent import nodes_for
from groundstate.math.distributions.operations import draw
from groundstate.math.info.free_energy import boltzmann_logits


def _example() -> LocallyAdaptiveNormalEnergy:
    energy = LocallyAdaptiveNormalEnergy(2, 2, points=9)
    rows = torch.tensor([[-1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.5, -1.0]])
    energy.remember(LocalMetric(rows, 2.0, 1.0))
    with torch.no_grad():
        energy.mu.copy_(torch.tensor([[0.2, 0.1], [-0.4, 0.3]]))
        energy.U[0].copy_(torch.tensor([[1.2, 0.4], [0.0, 0.8]]))
        energy.logits.copy_(torch.tensor([0.3, -0.2]))
    return energy


@registered(
    r"e(x, z) = \tfrac12\|U_z^\top\operatorname{Log}_{\mu_z}(x)\|^2 + \log C_z - \log\pi_z"
    r" - \tfrac12\log\det M(x)",
    _example,
)
class LocallyAdaptiveNormalEnergy(MetricMemory):
    r"""Half a squared distance along the shortest curve,
    :math:`e(x, z) = \tfrac12\|U_z^\top\operatorname{Log}_{\mu_z}(x)\|^2 + \log C_z - \log\pi_z -
    \tfrac12\log\det M(x)`.

    :math:`U_zU_z^\top = \Sigma_z^{-1}` and M is one over the local variance of remembered rows. With
    :math:`C_z = \int e^{-\frac12\|U_z^\top\operatorname{Log}_{\mu_z}(x)\|^2}\sqrt{\det M}\,dx` the free
    energy is minus the logarithm of a density per unit of dx.

    Parameters
    ----------
    k : number of components
    d : number of features
    n : rows of the metric
    rho, kind : of the metric
    points : of a curve

    Attributes
    ----------
    logits, mu, U : Parameters, ``(k,)``, ``(k, d)``, ``(k, d, d)``
    log_c : buffer, ``(k,)``
    metric_rows, metric_weight, sigma : buffers, ``(n, d)``, ``(n,)``, ``()``

    Examples
    --------
    >>> e = LocallyAdaptiveNormalEnergy(1, 1, points=9)
    >>> e.remember(LocalMetric([[90.0]], 1.0, 1.0))  # far away: the metric is flat
    >>> round(float(e(x=torch.tensor([[2.0]]), z=torch.tensor([0])).detach()), 4)
    2.0
    """

    log_c: Tensor
    custom: RiemannianMetric | None = None  # a metric that is not of rows, which cannot be stored

    def __init__(
        self, k: int, d: int, n: int = 1, rho: float = 1e-2, kind: str = "diagonal", points: int = 17
    ) -> None:  # fmt: skip
        super().__init__(x=Real(d), z=Finite(k))
        self.points = points
        self.logits = nn.Parameter(torch.zeros(k))
        self.mu = nn.Parameter(torch.zeros(k, d))
        self.U = nn.Parameter(torch.eye(d).expand(k, d, d).clone())
        self.register_buffer("log_c", torch.zeros(k))
        self._reserve(d, n, rho, kind)

    def config(self) -> dict[str, Any]:
        if self.custom is not None:
            raise ValueError(
                f"a density under a {type(self.custom).__name__} cannot be stored, since the metric is "
                "a function; use a LocalMetric"
            )
        k, d = self.mu.shape
        about = {"rho": self.rho, "kind": self.kind, "points": self.points}
        return {"k": k, "d": d, "n": len(self.metric_rows), **about}

    @property
    def log_weights(self) -> Tensor:
        r""":math:`\log\pi`, ``(k,)``."""
        return torch.log_softmax(self.logits, 0)

    def metric(self) -> RiemannianMetric:
        """The metric, in double precision."""
        return self.local_metric(self.mu.detach().double()) if self.custom is None else self.custom

    def precisions(self) -> Tensor:
        r""":math:`\Sigma_z^{-1}`, ``(k, d, d)`` float64."""
        U = self.U.detach().double().triu()
        return U @ U.mT

    def covariances(self) -> Tensor:
        r""":math:`\Sigma_z` of directions at :math:`\mu_z`, ``(k, d, d)`` float64."""
        U = self.U.detach().double().triu()
        one = torch.eye(U.shape[-1], dtype=U.dtype, device=U.device).expand_as(U)
        # of the triangle, not of the precision: a product with its transpose stays positive definite
        lower = torch.linalg.solve_triangular(U.mT, one, upper=False)
        return lower @ lower.mT

    @torch.no_grad()
    def from_moments(self, weights: Tensor, mu: Tensor, cov: Tensor) -> None:
        """θ from weights ``(k,)``, means ``(k, d)`` and covariances ``(k, d, d)``; C is left."""
        self.logits.copy_(weights.clamp(min=1e-300).log())
        self.mu.copy_(mu)
        # cov = L Lᵀ, so that the precision is U Uᵀ with U = L⁻ᵀ upper triangular
        lower = torch.linalg.cholesky(cov.double())
        one = torch.eye(cov.shape[-1], dtype=lower.dtype, device=lower.device)
        self.U.copy_(torch.linalg.solve_triangular(lower, one, upper=False).mT)

    @torch.no_grad()
    def normalise(self, size: int, random_state: Any = None) -> None:
        """Set C of every component for θ as it stands."""
        metric, covs, precisions = self.metric(), self.covariances(), self.precisions()
        for z, mu in enumerate(self.mu.detach().double()):
            nodes = nodes_for(
                metric, mu, covs[z], size=size, n=self.points, random_state=random_state
            )
            self.log_c[z] = nodes.log_normaliser(precisions[z])

    def forward(self, x: Tensor, z: Tensor) -> Tensor:
        return self.energies(x).gather(1, z[:, None])[:, 0]

    @offers.table("z")
    def energies(self, x: Tensor) -> Tensor:
        metric, wide = self.metric(), x.double()
        columns = []
        for mu, U in zip(self.mu, self.U, strict=True):
            v = log_map(metric, mu.double(), wide, self.points)
            columns.append(0.5 * (v @ U.double().triu()).square().sum(1))
        rest = self.log_c - self.log_weights - 0.5 * metric.log_det(wide)[:, None]
        return (torch.stack(columns, 1) + rest).to(x.dtype)

    @offers.conditional("z")
    def responsibilities(self, x: Tensor, T: float = 1.0) -> Categorical:
        return Categorical(logits=boltzmann_logits(self.energies(x), T), validate_args=False)

    @torch.no_grad()
    def ancestral(
        self, n: int, *, T: float = 1.0, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        """Joint draws: a component by its weight, then x along its shortest curves; at T = 1."""
        if T != 1:
            raise ValueError(f"draws along shortest curves are at T = 1 only, got T={T}")
        source = torch.Generator(self.mu.device).manual_seed(0) if generator is None else generator
        z = draw(Categorical(logits=self.log_weights.detach()), n, source)
        x = self.mu.new_zeros(n, self.mu.shape[1])
        covs = self.covariances()
        for k in range(len(self.mu)):
            mine = z == k
            many = int(mine.sum())
            if many:
                mu = self.mu[k].double()
                x[mine] = draws(self.metric(), mu, covs[k], many, source, self.points).to(x)
        return {"x": x, "z": z}
