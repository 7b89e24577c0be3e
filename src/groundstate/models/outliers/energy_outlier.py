"""Outliers of any model with a free energy."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Self

from sklearn.base import clone
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, callback_management_context
from groundstate.errors import Unsupported
from groundstate.models import settings
from groundstate.models.base import EnergyEstimator, Plan
from groundstate.models.mixtures.gaussian_mixture import GaussianMixture
from groundstate.models.outliers.role import OutlierMixin
from groundstate.models.traits import Traits
from groundstate.registry import models


@models.register(family="outliers", task="outliers", role="outlier detector")
class EnergyOutlier(OutlierMixin, EnergyEstimator):
    r"""Rows to which a model of the data gives a high free energy.

    .. math::
        F(x) = -\log\sum_z e^{-e(x, z)}, \qquad
        \text{outlier} \iff -F(x) < \text{offset} .

    Any density will do: a mixture, factors (rows off their plane and far out in it), an estimator of
    one's own. The offset is the ``contamination`` quantile of the scores of the learned rows.

    Parameters
    ----------
    estimator : estimator with an energy of x, default=None
        None is one Gaussian, ``GaussianMixture(1)``.
    contamination : float, default=0.1
        Share of the learned rows that are outliers.
    callbacks : sequence, default=None

    Attributes
    ----------
    estimator_ : the fitted estimator
    energy_ : its energy
    offset_ : float

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import EnergyOutlier, ProbabilisticPCA
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 1)) * [3.0, 3.0, 3.0] + 0.1 * rng.normal(size=(200, 3))
    >>> X[0] = [1.0, -1.0, 0.0]  # off the line
    >>> EnergyOutlier(ProbabilisticPCA(1), contamination=0.005).fit(X).predict(X)[:3].tolist()
    [-1, 1, 1]
    """

    traits = Traits(space={"contamination": settings.Real(0.01, 0.2)})

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "contamination": [Interval(Real, 0, 0.5, closed="right")],
        "estimator": "no_validation",  # type: ignore[dict-item]
    }

    def __init__(
        self, estimator: Any = None, *, contamination: float = 0.1, callbacks: Any = None
    ) -> None:
        self._keep(locals())

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        model = GaussianMixture() if self.estimator is None else self.estimator
        tags.input_tags.allow_nan = get_tags(model).input_tags.allow_nan
        return tags

    def _density(self) -> EnergyEstimator:
        """The model of the rows that is asked for, not fitted."""
        model: Any = GaussianMixture() if self.estimator is None else clone(self.estimator)
        if not isinstance(model, EnergyEstimator):
            raise Unsupported(
                f"EnergyOutlier asks a model for its energy, which {type(model).__name__} has not; "
                "pass an estimator of groundstate, such as GaussianMixture"
            )
        if model._takes_target:
            raise Unsupported(
                f"the energy of {type(model).__name__} is one of labels, not of rows alone; pass a "
                "density such as GaussianMixture"
            )
        return model

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        model = self._density()
        model._checked(X, None)  # what it notes of its columns
        return model._build(X, None, weight)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the model of rows X (n_samples, n_features), then the offset of their scores."""
        self._validate_params()
        with callback_management_context(self):
            model = self._density()
            if self.callbacks and "callbacks" in model.get_params():
                model.set_params(callbacks=self.callbacks)
            fitted = model.fit(X) if sample_weight is None else model.fit(X, None, sample_weight)
            self.estimator_, self.energy_, self.history_ = fitted, fitted.energy_, fitted.history_
            self.n_iter_, self.n_features_in_ = fitted.n_iter_, fitted.n_features_in_
            self.__dict__.pop("feature_names_in_", None)
            if hasattr(fitted, "feature_names_in_"):
                self.feature_names_in_ = fitted.feature_names_in_
            self._set_offset(X, sample_weight)
            return self

    def _rows(self, X: Any) -> Any:
        check_is_fitted(self, "energy_")
        return self.estimator_._rows(X)

    def energy(self, X: Any, y: Any = None, z: Any = None) -> Any:
        """Energy of each row under the model of the rows, ``(n_samples,)``."""
        check_is_fitted(self, "energy_")
        return self.estimator_.energy(X, y, z)

    def _scores(self, x: Tensor) -> Tensor:
        log_density = getattr(self.estimator_, "_log_density", None)
        return super()._scores(x) if log_density is None else log_density(x)
