r"""The weighted mean of models of tables, each behind its own preparation of the columns."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import hstack, issparse
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from groundstate.data import Table, read
from groundstate.errors import DataError
from groundstate.models.tables.explained import units_of
from groundstate.models.tables.table import TablePredictor
from groundstate.models.traits import Traits
from groundstate.models.weighted import fit_weighted

Floats = NDArray[np.float64]


def _all_have(name: str) -> Any:
    def check(self: Any) -> bool:
        return all(hasattr(model, name) for model in self._members())

    return check


class WeightedMean(BaseEstimator):
    r"""Answers of fitted members to their own columns of one row, side by side, as a weighted mean.

    .. math:: \hat y(x) = \sum_m a_m f_m(x_{(m)}), \qquad p(y \mid x) = \sum_m a_m p_m(y \mid x_{(m)})

    What `TableEnsemble` asks; it learns nothing itself.

    Parameters
    ----------
    members : fitted estimators, in the order of their columns
    weights : (M,) a, which add up to one
    widths : (M,) columns of each member
    scales : (M, 2) shift and factor from what a member predicts to the target's units
    classes : (K,) labels, or None for values
    """

    def __init__(
        self, members: Any, weights: Any, widths: Any, scales: Any, classes: Any = None
    ) -> None:
        self.members = members
        self.weights = weights
        self.widths = widths
        self.scales = scales
        self.classes = classes

    def __sklearn_tags__(self) -> Tags:
        return get_tags(self.members[0])

    def __sklearn_is_fitted__(self) -> bool:
        return True

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels."""
        if self.classes is None:
            raise AttributeError("a mean of values has no classes_")
        return np.asarray(self.classes)

    def _mean(self, question: str, X: Any) -> Floats:
        rows, start, total = np.asarray(X, np.float64), 0, 0.0
        parts = zip(self.members, self.weights, self.widths, self.scales, strict=True)
        for model, weight, width, (shift, factor) in parts:
            own = getattr(model, question)(rows[:, start : start + width])
            total = total + weight * (shift + factor * np.asarray(own, np.float64))
            start += width
        return np.asarray(total, np.float64)

    @available_if(lambda self: self.classes is not None)
    def predict_proba(self, X: Any) -> Floats:
        """Class probabilities, ``(n_samples, n_classes)``."""
        return self._mean("predict_proba", X)

    def predict(self, X: Any) -> NDArray[Any]:
        """Values, or the most probable labels, ``(n_samples,)``."""
        if self.classes is None:
            return self._mean("predict", X)
        return np.asarray(self.classes)[self._mean("predict_proba", X).argmax(1)]


class TableEnsemble(TablePredictor):
    r"""The weighted mean of models of tables.

    .. math::
        p(y \mid \text{row}) = \sum_m a_m\, p_m(y \mid \text{row}), \qquad
        \hat y(\text{row}) = \sum_m a_m \hat y_m(\text{row}), \qquad \sum_m a_m = 1,

    with energy :math:`-\log p(y \mid \text{row})` of labels and
    :math:`\tfrac12(y - \hat y)^2` of values. Every member learns its own preparation of the columns from
    the same rows. ``groundstate fit`` chooses members and weights by their answers for held-out rows
    (:mod:`groundstate.study.race.blend`).

    Parameters
    ----------
    estimators : list of (name, TablePredictor)
        The members; they are cloned, never changed.
    weights : (M,) array, default=None
        a, up to a factor; equal unless given.

    Attributes
    ----------
    members_ : list of fitted `TablePredictor`
    weights_ : (M,) array that adds up to one
    classes_ : (n_classes,) array, for classifiers

    Examples
    --------
    >>> from groundstate import KNeighborsRegressor, Ridge, TablePredictor
    >>> rows, y = {"size": [1.0, 2.0, 3.0, 4.0]}, [1.0, 2.0, 3.0, 4.0]
    >>> parts = [("line", TablePredictor(Ridge(alpha=1e-9))),
    ...          ("near", TablePredictor(KNeighborsRegressor(1)))]
    >>> mean = TableEnsemble(parts, weights=[3, 1]).fit(rows, y)
    >>> mean.predict({"size": [4.0, 5.0]}).round(6).tolist()
    [4.0, 4.75]
    """

    traits = Traits(prepares=False, space={})

    members_: list[Any]
    weights_: Floats

    def __init__(self, estimators: Any, *, weights: Any = None) -> None:
        self.estimators = estimators
        self.weights = weights

    @property
    def estimator(self) -> WeightedMean:
        """The mean of the members before they are fitted."""
        return WeightedMean([model.estimator for _, model in self.estimators], None, None, None)

    @property
    def schema(self) -> Any:  # type: ignore[override]
        """Columns as they are read: by the members."""
        return self.estimators[0][1].schema

    def _members(self) -> list[Any]:
        return getattr(self, "members_", None) or [model for _, model in self.estimators]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters, with ``deep`` also the members and theirs as ``name__parameter``."""
        found = {"estimators": self.estimators, "weights": self.weights}
        for name, model in self.estimators if deep else ():
            found |= {f"{name}__{k}": v for k, v in model.get_params(deep=True).items()}
        return found

    def set_params(self, **params: Any) -> Self:
        """Set parameters; those of a member as ``name__parameter``."""
        own = {k: params.pop(k) for k in ("estimators", "weights") if k in params}
        for name, value in own.items():
            setattr(self, name, value)
        members: dict[str, Any] = dict(self.estimators)
        for full, value in params.items():
            one = max((n for n in members if full.startswith(f"{n}__")), key=len, default="")
            if not one:
                raise ValueError(f"Invalid parameter {full!r} for estimator TableEnsemble")
            members[one].set_params(**{full[len(one) + 2 :]: value})
        return self

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn every member from the same rows; a weight of 2 is the row twice."""
        named = list(self.estimators)
        if not named:
            raise DataError("an ensemble needs a member; pass estimators=[(name, model), ...]")
        raw = np.ones(len(named)) if self.weights is None else np.asarray(self.weights, np.float64)
        if raw.shape != (len(named),) or (raw < 0).any() or not raw.sum() > 0:
            raise DataError(
                f"weights are {len(named)} numbers of at least zero, not all of them zero, got "
                f"{raw.tolist()}"
            )
        table = X if isinstance(X, Table) else read(X, schema=self.schema)
        y = table.y if y is None and table.target is not None else np.asarray(y)
        weight = np.ones(table.n_rows) if sample_weight is None else np.asarray(sample_weight)
        self.weights_ = raw / raw.sum()
        self.members_ = [fit_weighted(clone(model), table, y, weight) for _, model in named]
        first = self.members_[0]
        for name in ("schema_", "target_", "n_features_in_", "feature_names_in_", "preparation_"):
            setattr(self, name, getattr(first, name))
        if is_classifier(first):
            self.classes_ = first.classes_
        return self

    @property
    def estimator_(self) -> WeightedMean:
        """The mean of the fitted members as one estimator of their columns side by side."""
        check_is_fitted(self, "members_")
        scales = [units_of(model) for model in self.members_]
        widths = [len(model.preparation_.feature_names_out()) for model in self.members_]
        return WeightedMean(
            [model.estimator_ for model in self.members_], self.weights_, widths, scales,
            getattr(self, "classes_", None),
        )  # fmt: skip

    def prepare(self, X: Any) -> Any:
        """New rows as the numbers that the members see, side by side, ``(n_samples, n_prepared)``."""
        table = X if isinstance(X, Table) else read(X, schema=self.preparation_.schema_)
        parts = [model.prepare(table) for model in self.members_]
        if any(issparse(part) for part in parts):
            return hstack(parts, format="csr")
        return np.concatenate([np.asarray(part, np.float64) for part in parts], 1)

    def _mean(self, question: str, X: Any) -> Floats:
        check_is_fitted(self, "members_")
        table = X if isinstance(X, Table) else read(X, schema=self.preparation_.schema_)
        parts = [np.asarray(getattr(m, question)(table), np.float64) for m in self.members_]
        return np.asarray(sum(a * part for a, part in zip(self.weights_, parts, strict=True)))

    def predict(self, X: Any, **options: Any) -> Any:
        """Values, or the most probable labels, ``(n_samples,)``."""
        if options:
            raise DataError(f"predict of an ensemble has no option {min(options)!r}")
        if not hasattr(self, "classes_"):
            return self._mean("predict", X)
        return self.classes_[self._mean("predict_proba", X).argmax(1)]

    @available_if(_all_have("predict_proba"))
    def predict_proba(self, X: Any) -> Any:
        """Class probabilities, ``(n_samples, n_classes)``."""
        return self._mean("predict_proba", X)

    def energy(self, X: Any, y: Any = None, z: Any = None) -> Any:
        """Energy of each row; what is not passed is marginalised, ``(n_samples,)``."""
        if hasattr(self, "classes_"):
            p = self._mean("predict_proba", X)
            if y is None:
                return np.zeros(len(p))
            with np.errstate(divide="ignore"):
                return -np.log(p[np.arange(len(p)), np.searchsorted(self.classes_, y)])
        middle = self._mean("predict", X)
        if y is None:
            return np.full(len(middle), -0.5 * np.log(2 * np.pi))
        return 0.5 * np.square(np.asarray(y, np.float64) - middle)
