"""Outliers by the density around their neighbours."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.energy.neighbors.local_density import LocalDensityEnergy
from groundstate.learn import Naive
from groundstate.learn.solvers.local_density import LocalDensities
from groundstate.math.stats.quantiles import repeated_quantile
from groundstate.models import settings
from groundstate.models.arrays import unwrap
from groundstate.models.base import Plan
from groundstate.models.neighbors.search import NeighborSearch
from groundstate.models.outliers.role import OutlierMixin
from groundstate.models.traits import Traits
from groundstate.registry import models

USUAL = -1.5  # the offset of contamination="auto"


def _for_new_rows(model: Any) -> bool:
    if not model.novelty:
        raise AttributeError(
            "predict, decision_function and score_samples are for new rows and need novelty=True; "
            "use fit_predict for the rows of fit"
        )
    return True


def _for_own_rows(model: Any) -> bool:
    if model.novelty:
        raise AttributeError(
            "fit_predict is not available when novelty=True; use novelty=False to judge the rows of "
            "fit"
        )
    return True


@models.register(family="outliers", task="outliers", role="outlier detector")
class LocalOutlierFactor(OutlierMixin, NeighborSearch):
    r"""Rows around which it is less dense than around their neighbours.

    .. math::
        e(x, 0) = \frac1k\sum_{o}\frac{\rho(o)}{\rho(x)}, \qquad
        \frac1{\rho(x)} = \frac1k\sum_o\max\bigl(d_k(o), d(x, o)\bigr), \qquad e(x, 1) = -\text{offset},

    over the k nearest rows o, with :math:`d_k(o)` the distance to the k-th neighbour of o. The ratio is
    about one inside a cloud of any density, so that one threshold serves dense clouds and thin ones.
    Free z is detection: an outlier, z = 1, is where the ratio is above the threshold.

    Parameters
    ----------
    n_neighbors : int, default=20
        k; at most the number of other rows.
    contamination : "auto" or float, default="auto"
        Share of the learned rows that are outliers; "auto" takes a ratio of 1.5 as the threshold.
    novelty : bool, default=False
        False judges the rows of ``fit``, which are not their own neighbours (``fit_predict``); True
        judges new rows (``predict``, ``decision_function``, ``score_samples``).

    Attributes
    ----------
    negative_outlier_factor_ : (n_samples,) array
        Minus the ratio of the learned rows; about −1 for usual ones.
    n_neighbors_ : int
        k in use.
    offset_ : float
    effective_metric_params_ : dict
    energy_ : LocalDensityEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import LocalOutlierFactor
    >>> X = np.array([[-1.1], [0.2], [101.1], [0.3]])
    >>> model = LocalOutlierFactor(n_neighbors=2)
    >>> model.fit_predict(X).tolist(), model.negative_outlier_factor_.round(2).tolist()
    ([1, 1, -1, 1], [-0.98, -1.04, -73.37, -0.98])
    """

    traits = Traits(
        space={
            "n_neighbors": settings.Whole(5, 50, log=True),
            "contamination": settings.Real(0.01, 0.2),
        }
    )
    offset_: float
    contamination: Any
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "contamination": [StrOptions({"auto"}), Interval(Real, 0, 0.5, closed="right")],
        "novelty": ["boolean"],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        n_neighbors: int = 20,
        *,
        algorithm: str = "auto",
        leaf_size: int = 30,
        metric: Any = "minkowski",
        p: float = 2,
        metric_params: dict[str, Any] | None = None,
        contamination: Any = "auto",
        novelty: bool = False,
        n_jobs: int | None = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _min_rows(self) -> int:
        return 2

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        total = float(len(X)) if weight is None else float(weight.double().sum())
        if self.n_neighbors > total:
            warnings.warn(
                f"n_neighbors ({self.n_neighbors}) is greater than the total number of samples "
                f"({total:g}). n_neighbors will be set to (n_samples - 1) for estimation.",
                UserWarning,
                stacklevel=2,
            )
        self.n_neighbors_ = max(1, min(self.n_neighbors, int(total + 1e-9) - 1))
        memory = self._memory() | {"n_neighbors": self.n_neighbors_}
        memory.pop("votes")
        energy = LocalDensityEnergy(X.shape[1], **memory)
        return Plan(energy=energy, rule=Naive(latent="minimise"), solver=LocalDensities())

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        super()._fit(X, y, sample_weight)
        energy: Any = self.energy_
        weight = None if sample_weight is None else np.asarray(unwrap(sample_weight)[0], np.float64)
        with torch.no_grad():
            own = -energy.own.cpu().numpy()
            del energy.own
            if weight is not None and (weight == 0).any():  # judged as new rows are
                factors = np.empty(len(weight), own.dtype)
                factors[weight > 0] = own
                x, _ = self._rows(X)
                absent = torch.from_numpy(weight == 0).to(x.device)
                factors[weight == 0] = -energy.ratios(x[absent]).cpu().numpy()
                own = factors
        self.negative_outlier_factor_ = own
        self.offset_ = USUAL
        if self.contamination != "auto":
            self.offset_ = repeated_quantile(own, weight, self.contamination)
        energy.threshold.fill_(-self.offset_)
        if own.min() < -1e7 and not self.novelty:
            warnings.warn(
                "Duplicate values are leading to incorrect results. Increase the number of neighbors "
                "for more accurate results.",
                UserWarning,
                stacklevel=2,
            )
        return self

    def kneighbors(
        self, X: Any = None, n_neighbors: int | None = None, return_distance: bool = True
    ) -> Any:
        """As in `NearestNeighbors`; None of n_neighbors is ``n_neighbors_``."""
        check_is_fitted(self, "energy_")
        k = self.n_neighbors_ if n_neighbors is None else n_neighbors
        return super().kneighbors(X, k, return_distance)

    def _scores(self, x: Tensor) -> Tensor:
        energy: Any = self.energy_
        return -energy.ratios(x)

    @available_if(_for_new_rows)
    def score_samples(self, X: Any) -> Any:
        """Minus the ratio of densities of new rows, ``(n_samples,)``: low is unusual."""
        return super().score_samples(X)

    @available_if(_for_new_rows)
    def decision_function(self, X: Any) -> Any:
        """Score over ``offset_``, ``(n_samples,)``: negative for outliers."""
        return super().decision_function(X)

    @available_if(_for_new_rows)
    def predict(self, X: Any) -> Any:
        """1 for usual rows and −1 for outliers among new rows, ``(n_samples,)``."""
        return super().predict(X)

    @available_if(_for_own_rows)
    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Learn, then 1 or −1 for each of the same rows."""
        self.fit(X, sample_weight=sample_weight)
        labels = np.where(self.negative_outlier_factor_ < self.offset_, -1, 1)
        return unwrap(X)[1].give(labels)
