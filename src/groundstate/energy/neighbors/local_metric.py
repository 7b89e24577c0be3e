r"""Energy of a small step v at x under a metric of the data, :math:`e(x, z) = \tfrac12z^\top M(x)z`."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.distributions import MultivariateNormal

from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Real
from groundstate.math.distances.local_metric import LocalMetric


def _example() -> LocalMetricEnergy:
    energy = LocalMetricEnergy(2, kind="full")
    rows = torch.tensor([[-1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.5, -1.0]])
    energy.remember(LocalMetric(rows, 1.0, 0.3, kind="full"))
    return energy


class MetricMemory(Energy):
    """The rows of a `LocalMetric` as buffers, so that they move, are stored and come back."""

    metric_rows: Tensor
    metric_weight: Tensor
    sigma: Tensor

    def _reserve(self, d: int, n: int, rho: float, kind: str) -> None:
        self.rho, self.kind = float(rho), kind
        self.register_buffer("metric_rows", torch.zeros(n, d))
        self.register_buffer("metric_weight", torch.ones(n))
        self.register_buffer("sigma", torch.ones(()))
        self._made: Any = None

    @torch.no_grad()
    def remember(self, metric: LocalMetric) -> None:
        """Take the rows, widths and kind of a metric."""
        like = self.metric_rows
        self.metric_rows, self.metric_weight = metric.rows.to(like), metric.weights.to(like)
        self.sigma = torch.tensor(metric.sigma, dtype=torch.float64).to(like)
        self.rho, self.kind = metric.rho, metric.kind
        self._made = None

    def local_metric(self, like: Tensor) -> LocalMetric:
        """The metric, for points of a device and precision."""
        key = (like.device, like.dtype, self.metric_rows.data_ptr(), self.metric_rows.dtype)
        if self._made is None or self._made[0] != key:
            made = LocalMetric(
                self.metric_rows.to(like), float(self.sigma), self.rho,
                weights=self.metric_weight.to(like), kind=self.kind,  # type: ignore[arg-type]
            )  # fmt: skip
            self._made = (key, made)
        found: LocalMetric = self._made[1]
        return found

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_made": None}


@registered(r"e(x, z) = \tfrac12z^\top M(x)z", _example)
class LocalMetricEnergy(MetricMemory):
    r"""Half the squared length of a small step z at x, :math:`e(x, z) = \tfrac12z^\top M(x)z`, with M one
    over the local variance of remembered rows.

    Given x the steps are Gaussian with the local covariance :math:`M(x)^{-1}`, and
    :math:`F(x) = \tfrac12\log\det M(x) - \tfrac d2\log2\pi` is low where data are.

    Parameters
    ----------
    d : features
    n : remembered rows
    rho : the least variance
    kind : "diagonal" or "full"

    Attributes
    ----------
    metric_rows, metric_weight, sigma : buffers, ``(n, d)``, ``(n,)``, ``()``

    Examples
    --------
    >>> e = LocalMetricEnergy(1)
    >>> e.remember(LocalMetric([[0.0]], 1.0, 0.5))
    >>> e(x=torch.tensor([[9.0]]), z=torch.tensor([[1.0]])).tolist()
    [1.0]
    """

    gaussian = frozenset({"z"})
    bounded_below = True

    def __init__(self, d: int, n: int = 1, rho: float = 1e-2, kind: str = "diagonal") -> None:
        super().__init__(x=Real(d), z=Real(d))
        self._reserve(d, n, rho, kind)

    def config(self) -> dict[str, Any]:
        n, d = self.metric_rows.shape
        return {"d": d, "n": n, "rho": self.rho, "kind": self.kind}

    def forward(self, x: Tensor, z: Tensor) -> Tensor:
        return 0.5 * self.local_metric(x).quadratic(x, z)

    @offers.conditional("z")
    def steps(self, x: Tensor, T: float = 1.0) -> MultivariateNormal:
        M = self.local_metric(x).matrix(x)
        return MultivariateNormal(torch.zeros_like(x), precision_matrix=M / T, validate_args=False)

    @offers.log_partition("z")
    def log_volume(self, x: Tensor, T: float = 1.0) -> Tensor:
        return 0.5 * x.shape[1] * math.log(2 * math.pi * T) - 0.5 * self.local_metric(x).log_det(x)
