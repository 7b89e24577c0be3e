"""A metric of the data, small where they are."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import torch
from sklearn.base import OneToOneFeatureMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.compute.thread_policy import answering
from groundstate.energy.neighbors.local_metric import LocalMetricEnergy
from groundstate.learn import Naive
from groundstate.learn.solvers.metrics.remembered import Remembered
from groundstate.math.distances.local_metric import LocalMetric as Metric
from groundstate.models import settings
from groundstate.models.base import Plan
from groundstate.models.roles import EnergyTransformer
from groundstate.models.traits import Traits
from groundstate.registry import models


@models.register(family="metrics", task="representation", role="transformer", auto=False)
class LocalMetric(OneToOneFeatureMixin, EnergyTransformer):
    r"""Distances along the data: one over their local variance.

    .. math::
        e(x, z) = \tfrac12z^\top M(x)\,z, \qquad
        M_{jj}(x) = \frac1{\sum_nw_n(x)\,(x_{nj} - x_j)^2 + \rho}, \qquad
        w_n(x) = e^{-\|x_n - x\|^2/2\sigma^2} .

    z is a small step at x and the energy half its squared length. M is small where data are, so that
    shortest curves follow them; far away it is :math:`I/\rho`. Given x the steps have the local
    covariance :math:`M^{-1}`, whose largest direction is the preferred one. The metric answers for any
    pair of points, also for new ones.

    Parameters
    ----------
    sigma : float or "auto", default="auto"
        Width σ of a neighbourhood; "auto" is the median distance to the 10th neighbour.
    rho : float, default=1e-2
        The least variance.
    kind : {"diagonal", "full"}, default="diagonal"
        "full" is the inverse of the whole local covariance.
    device : str or torch.device, default=None
    callbacks : sequence, default=None

    Attributes
    ----------
    sigma_ : float
        σ in use.
    metric_ : groundstate.distances.LocalMetric
        The metric itself, as `groundstate.distances.geodesic` takes it.
    energy_ : LocalMetricEnergy

    Examples
    --------
    >>> from groundstate import LocalMetric
    >>> from groundstate.data import make_half_circle
    >>> X = make_half_circle(200, random_state=0)
    >>> metric = LocalMetric(sigma=0.15).fit(X)
    >>> curve = metric.geodesic([1.0, 0.0], [-1.0, 0.0], 41)
    >>> bool(curve.length < 0.5 * metric.length([[1.0, 0.0], [0.0, 0.0], [-1.0, 0.0]]))
    True
    """

    traits = Traits(space={"rho": settings.Real(1e-3, 1.0, log=True)})

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "sigma": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "rho": [Interval(Real, 0, None, closed="neither")],
        "kind": [StrOptions({"diagonal", "full"})],
        "device": "no_validation",  # type: ignore[dict-item]
        "callbacks": "no_validation",  # type: ignore[dict-item]
    }

    def __init__(
        self, *, sigma: Any = "auto", rho: float = 1e-2, kind: str = "diagonal", device: Any = None,
        callbacks: Any = None,
    ) -> None:  # fmt: skip
        self._keep(locals())

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        energy = LocalMetricEnergy(X.shape[1])
        solver = Remembered(self.sigma, float(self.rho), self.kind)
        return Plan(
            energy=energy, rule=Naive(), solver=solver, data={"x": X, "z": torch.zeros_like(X)}
        )

    @property
    def metric_(self) -> Metric:
        if "energy_" not in vars(self):
            raise AttributeError("LocalMetric has metric_ after fit, and is not fitted yet")
        device, dtype = self.energy_.placement()
        energy: Any = self.energy_
        made: Metric = energy.local_metric(torch.zeros(0, device=device, dtype=dtype))
        return made

    @property
    def sigma_(self) -> float:
        return self.metric_.sigma

    def transform(self, X: Any) -> Any:
        r"""Local standard deviations, :math:`\sqrt{(M^{-1})_{jj}}`, ``(n_samples, n_features)``: large along
        the data."""
        x, home = self._rows(X)
        with answering(self.energy_, x):
            M = self.metric_
            if self.kind == "full":
                return home.give(M.covariance(x).diagonal(dim1=-2, dim2=-1).sqrt())
            return home.give(M.variance(x).sqrt())

    def tensor(self, X: Any) -> Any:
        """M(x), ``(..., n_features, n_features)`` for points ``(..., n_features)``."""
        return self._fitted().tensor(X)

    def volume(self, X: Any) -> Any:
        r"""The volume element :math:`\sqrt{\det M(x)}`, ``(...,)``."""
        return self._fitted().volume(X)

    def length(self, curve: Any) -> Any:
        """Lengths of curves ``(..., n, n_features)`` by the midpoint rule, ``(...,)``."""
        return self._fitted().length(curve)

    def geodesic(self, a: Any, b: Any, n: int = 65, **settings: Any) -> Any:
        """Shortest curves from a to b, see `groundstate.distances.geodesic`."""
        return self._fitted().geodesic(a, b, n, **settings)

    def distance(self, a: Any, b: Any, n: int = 65, **settings: Any) -> Any:
        """Lengths of shortest curves, ``(...,)``."""
        return self._fitted().distance(a, b, n, **settings)

    def log(self, mu: Any, X: Any, n: int = 65, **settings: Any) -> Any:
        """Directions from μ to X, as long as the way, see `groundstate.distances.log_map`."""
        return self._fitted().log(mu, X, n, **settings)

    def exp(self, mu: Any, V: Any, steps: int = 128) -> Any:
        """Where the directions V lead from μ, see `groundstate.distances.exp_map`."""
        return self._fitted().exp(mu, V, steps)

    def _fitted(self) -> Metric:
        check_is_fitted(self, "energy_")
        return self.metric_
