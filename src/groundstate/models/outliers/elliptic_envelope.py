"""Outliers of one Gaussian, estimated without them."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval
from groundstate.energy.base import Energy
from groundstate.math.distances import chi2_pvalue
from groundstate.models import settings
from groundstate.models.arrays import unwrap
from groundstate.models.base import EnergyEstimator, Plan
from groundstate.models.learned import Learned
from groundstate.models.metrics.cloud import cloud
from groundstate.models.metrics.mahalanobis_transformer import INSTEAD
from groundstate.models.outliers.role import OutlierMixin
from groundstate.models.traits import Traits
from groundstate.registry import models


@models.register(family="outliers", task="outliers", role="outlier detector")
class EllipticEnvelope(OutlierMixin, EnergyEstimator):
    r"""Rows far from the mean of a Gaussian, in units of its own spread.

    .. math::
        e(x) = \tfrac12(x - \mu)^\top\Sigma^{-1}(x - \mu) + \tfrac12\log|2\pi\Sigma| .

    μ and Σ are those of the densest half of the rows (minimum covariance determinant), so that outliers
    do not hide themselves by widening the cloud. A row is an outlier where its squared Mahalanobis
    distance is above ``-offset_``.

    Parameters
    ----------
    store_precision : bool, default=True
        Kept for scikit-learn's signature; ``precision_`` is always there.
    assume_centered : bool, default=False
        The mean is zero.
    support_fraction : float, default=None
        Share of the rows behind the first estimate; None is the least that is safe.
    contamination : float, default=0.1
        Share of the learned rows that are outliers.
    random_state : int, default=None
        Of the subsets that are tried.
    device : str or torch.device, default=None
        Where answers are computed.
    callbacks : sequence, default=None

    Attributes
    ----------
    location_ : (n_features,) array
    covariance_ : (n_features, n_features) array
    precision_ : (n_features, n_features) array
    support_ : (n_samples,) bool array
        Rows behind the last estimate.
    offset_ : float
    dist_ : (n_samples,) array
        Squared distances of the learned rows to the mean.
    raw_location_, raw_covariance_ : before correction and reweighting
    energy_ : GaussianMixtureEnergy with one component

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import EllipticEnvelope
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> X[:4] += 8.0
    >>> model = EllipticEnvelope(contamination=0.02, random_state=0).fit(X)
    >>> np.flatnonzero(model.predict(X) == -1).tolist()
    [0, 1, 2, 3]
    """

    traits = Traits(space={"contamination": settings.Real(0.01, 0.2)})
    _runs_on: Any = "answers"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "store_precision": ["boolean"],
        "assume_centered": ["boolean"],
        "support_fraction": [Interval(Real, 0, 1, closed="right"), None],
        "contamination": [Interval(Real, 0, 0.5, closed="right")],
    }

    def __init__(
        self,
        *,
        store_precision: bool = True,
        assume_centered: bool = False,
        support_fraction: float | None = None,
        contamination: float = 0.1,
        random_state: Any = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _min_rows(self) -> int:
        return 2

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        found = cloud(
            X, weight, "mcd", assume_centered=self.assume_centered,
            support_fraction=self.support_fraction, random_state=self.random_state,
        )  # fmt: skip
        for name, value in found.found.items():
            setattr(self, name, value)
        return found.plan(X.shape[1])

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        super()._fit(X, y, sample_weight)
        self._set_offset(X, sample_weight)
        self.dist_ = np.asarray(unwrap(self.mahalanobis(X))[0])
        return self

    def _learned(self, energy: Energy) -> dict[str, Any]:
        return {}

    location_ = Learned(lambda model: model.energy_.mu[0])
    covariance_ = Learned(lambda model: model.energy_.covariances()[0], instead=INSTEAD)
    precision_ = Learned(
        lambda model: model.energy_.factors()[0] @ model.energy_.factors()[0].T, instead=INSTEAD
    )

    def _scores(self, x: Tensor) -> Tensor:
        energy: Any = self.energy_
        return -((x - energy.mu[0]) @ energy.factors()[0]).square().sum(1)

    def mahalanobis(self, X: Any) -> Any:
        """Squared distances to the mean, ``(n_samples,)``, as in scikit-learn."""
        return -self.score_samples(X)

    def pvalues(self, X: Any) -> Any:
        r"""How rarely a Gaussian row is as far out, :math:`P(\chi^2_d \ge d^2)`, ``(n_samples,)``."""
        return chi2_pvalue(self.mahalanobis(X) ** 0.5, self.n_features_in_)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of rows that are predicted right, with 1 for usual and −1 for outliers in y."""
        right = np.asarray(self.predict(X)) == np.asarray(y)
        return float(np.average(right, weights=sample_weight))
