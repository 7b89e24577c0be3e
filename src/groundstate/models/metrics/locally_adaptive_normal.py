"""Normal distributions along the shortest curves of a metric of the data."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import torch
from sklearn.base import clone
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval
from groundstate.compute.rows.distinct import merged
from groundstate.energy.base import Energy
from groundstate.energy.latent.adaptive_normal import LocallyAdaptiveNormalEnergy
from groundstate.errors import Unsupported
from groundstate.learn import NLL
from groundstate.learn.solvers.latent.adaptive_normal import AdaptiveNormals
from groundstate.learn.solvers.metrics.remembered import fitted_metric
from groundstate.math.distances.local_metric import LocalMetric as Metric
from groundstate.math.distances.riemannian import RiemannianMetric
from groundstate.models import settings
from groundstate.models.base import Plan
from groundstate.models.learned import Learned
from groundstate.models.metrics.local_metric import LocalMetric
from groundstate.models.mixtures.answers import MixtureAnswers
from groundstate.models.traits import Traits
from groundstate.registry import models


def _placed(model: Any, name: str, value: Tensor) -> None:
    """θ with another mean, covariance or weights; the normaliser follows."""
    energy = model.energy_
    if name == "cov":
        C = value.double()
        if not torch.allclose(C, C.mT) or bool((torch.linalg.cholesky_ex(C)[1] != 0).any()):
            raise ValueError("covariances_ must be symmetric and positive definite")
    now = {"weights": energy.log_weights.exp().double(), "mu": energy.mu.double(),
           "cov": energy.covariances()}  # fmt: skip
    energy.from_moments(**(now | {name: value.double().reshape(now[name].shape)}))
    energy.normalise(model.n_nodes, model.random_state)


@models.register(family="metrics", task="density", role="density", auto=False)
class LocallyAdaptiveNormal(MixtureAnswers):
    r"""Normal distributions that bend with the data: distances from the mean are along shortest curves.

    .. math::
        e(x, z) = \tfrac12v^\top\Sigma_z^{-1}v + \log C_z - \log\pi_z - \tfrac12\log\det M(x), \qquad
        v = \operatorname{Log}_{\mu_z}(x) .

    v is the direction in which the shortest curve from the mean to x begins, as long as the curve, and
    :math:`C_z = \int e^{-\frac12v^\top\Sigma_z^{-1}v}\sqrt{\det M}\,dx`. Under a constant metric this is
    the ordinary normal distribution; under a `LocalMetric` the mean lies among the data and the density
    follows them. Densities are per unit of dx; subtract ``log(metric_.volume(X))`` for those per unit of
    the metric's volume.

    Parameters
    ----------
    n_components : int, default=1
    metric : LocalMetric, a metric of groundstate.distances or None, default=None
        Where curves are measured; a `LocalMetric` that is not fitted is fitted to X, None is
        ``LocalMetric()``.
    n_points : int, default=17
        Points of a curve, with its ends.
    n_nodes : int, default=400
        Nodes of the normaliser: places of a grid up to two features, draws of directions beyond.
    max_iter : int, default=20
    tol : float, default=1e-3
        Iterations end when one gains less, in nats per row.
    reg_covar : float, default=1e-8
        The least share of the mean variance that a direction has.
    random_state : int, default=None
        Of the first means and of drawn directions.
    device : str or torch.device, default=None
    callbacks : sequence, default=None

    Attributes
    ----------
    mean_ : (n_features,) array
        The intrinsic mean; of several components ``(n_components, n_features)``.
    means_ : (n_components, n_features) array
    covariances_ : (n_components, n_features, n_features) array
        Of directions at the means.
    weights_ : (n_components,) array
    metric_ : the metric in use
    energy_ : LocallyAdaptiveNormalEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import LocallyAdaptiveNormal, LocalMetric
    >>> from groundstate.data import make_half_circle
    >>> X = make_half_circle(60, random_state=0)
    >>> model = LocallyAdaptiveNormal(metric=LocalMetric(sigma=0.2), n_nodes=100, max_iter=3).fit(X)
    >>> near = np.linalg.norm(X - model.mean_, axis=1).min()
    >>> bool(near < 0.1 < np.linalg.norm(X - X.mean(0), axis=1).min())
    True
    """

    traits = Traits(space={"n_components": settings.Whole(1, 4)}, steps="max_iter")

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "metric": [LocalMetric, RiemannianMetric, None],
        "n_points": [Interval(Integral, 3, None, closed="left")],
        "n_nodes": [Interval(Integral, 4, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "reg_covar": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
        "device": "no_validation",  # type: ignore[dict-item]
        "callbacks": "no_validation",  # type: ignore[dict-item]
    }

    def __init__(
        self, n_components: int = 1, *, metric: Any = None, n_points: int = 17, n_nodes: int = 400,
        max_iter: int = 20, tol: float = 1e-3, reg_covar: float = 1e-8, random_state: Any = None,
        device: Any = None, callbacks: Any = None,
    ) -> None:  # fmt: skip
        self._keep(locals())

    def _min_rows(self) -> int:
        return 2

    def _chosen(self, X: Tensor, weight: Tensor | None) -> RiemannianMetric:
        given = LocalMetric() if self.metric is None else self.metric
        if isinstance(given, RiemannianMetric):
            return given.to(X.double()) if isinstance(given, Metric) else given
        if "energy_" in vars(given):
            return given.metric_.to(X.double())
        given = clone(given)
        given._validate_params()
        rows, w = merged({"x": X.detach()}, weight)
        return fitted_metric(
            rows["x"].double(), w.double(), given.sigma, float(given.rho), given.kind
        )

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        if len(X) < self.n_components:
            raise ValueError(
                f"Expected n_samples >= n_components but got n_components = {self.n_components}, "
                f"n_samples = {len(X)}"
            )
        metric = self._chosen(X, weight)
        known = None if metric.rows is None else metric.rows.shape[1]
        if known is not None and known != X.shape[1]:
            raise ValueError(f"the metric is one of {known} features, X has {X.shape[1]}")
        energy = LocallyAdaptiveNormalEnergy(self.n_components, X.shape[1], points=self.n_points)
        if isinstance(metric, Metric):
            energy.to(X.device, X.dtype)
            energy.remember(metric)
        else:
            energy.custom = metric
        solver = AdaptiveNormals(
            metric, self.n_nodes, self.max_iter, float(self.tol), float(self.reg_covar)
        )
        return Plan(energy=energy, rule=NLL(), solver=solver)

    def _learned(self, energy: Energy) -> dict[str, Any]:
        return {}

    weights_ = Learned(
        lambda model: model.energy_.log_weights.exp(),
        lambda model, pi: model.energy_.logits.copy_(pi.log()),
    )
    means_ = Learned(
        lambda model: model.energy_.mu.detach().clone(),
        lambda model, mu: _placed(model, "mu", mu),
    )
    mean_ = Learned(
        lambda model: model.energy_.mu.detach().clone().squeeze(0),
        lambda model, mu: _placed(model, "mu", mu),
    )
    covariances_ = Learned(
        lambda model: model.energy_.covariances().to(model.energy_.mu.dtype),
        lambda model, cov: _placed(model, "cov", cov),
    )

    @property
    def metric_(self) -> Any:
        if "energy_" not in vars(self):
            raise AttributeError(
                f"{type(self).__name__} has metric_ after fit, and is not fitted yet"
            )
        energy: Any = self.energy_
        with torch.no_grad():
            return energy.metric()

    def _n_parameters(self) -> int:
        energy: Any = self.energy_
        k, d = energy.mu.shape
        return int(k * d + k * d * (d + 1) // 2 + k - 1)

    def _component_entropies(self) -> Tensor:
        raise Unsupported(
            "the entropy of a normal distribution along shortest curves has no closed form"
        )
