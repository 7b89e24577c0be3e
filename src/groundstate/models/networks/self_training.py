"""Self-training: a classifier labels the rows it is sure of and learns again."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from groundstate.compute.foreign.sklearn import HasMethods, Interval
from groundstate.errors import DataError
from groundstate.models.arrays import unwrap


def _offers(name: str) -> Any:
    return available_if(lambda self: hasattr(getattr(self, "estimator_", self.estimator), name))


class SelfTraining(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    r"""Fit, label the rows with :math:`\max_y p(y\mid x) > \tau`, fit again, until none are left.

    A target of −1 marks a row without a label. Labels once given stay.

    Parameters
    ----------
    estimator : classifier with ``predict_proba``
    threshold : float, default=0.8
        τ; 1 adds nothing.
    max_iter : int or None, default=10
        Rounds at most.

    Attributes
    ----------
    estimator_ : fitted to the last set of labels
    transduction_ : (n_samples,) array
        Labels of the rows at the end, −1 where there is still none.
    labeled_iter_ : (n_samples,) array
        Round in which a row got its label: 0 came with one, −1 never.
    termination_condition_ : "all_labeled", "no_change" or "max_iter"

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from groundstate import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> some = np.where(np.arange(150) % 10 == 0, y, -1)
    >>> model = SelfTraining(LogisticRegression(), threshold=0.8).fit(X, some)
    >>> int((some >= 0).sum()), bool((model.transduction_ >= 0).sum() > 50)
    (15, True)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit", "predict_proba"])],
        "threshold": [Interval(Real, 0, 1, closed="both")],
        "max_iter": [Interval(Integral, 0, None, closed="left"), None],
    }

    def __init__(self, estimator: Any, threshold: float = 0.8, max_iter: int | None = 10) -> None:
        self.estimator = estimator
        self.threshold = threshold
        self.max_iter = max_iter

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from rows of which those with y = −1 have no label."""
        self._validate_params()
        X, y = unwrap(X)[0], np.array(unwrap(y)[0])
        if y.dtype.kind in "USb":
            raise DataError("y marks rows without a label by −1, so use numbers, or dtype object")
        has = y != -1
        if len(np.unique(y[has])) < 2:
            raise DataError("self-training starts from labelled rows of at least 2 classes")
        self.labeled_iter_ = np.where(has, 0, -1)
        weight = None if sample_weight is None else np.asarray(unwrap(sample_weight)[0])
        self._learn(X, y, has, weight)
        self.n_iter_, self.termination_condition_ = 0, "max_iter"
        while self.max_iter is None or self.n_iter_ < self.max_iter:
            if has.all():
                self.termination_condition_ = "all_labeled"
                break
            self.n_iter_ += 1
            proba = self.estimator_.predict_proba(_take(X, ~has))
            sure = proba.max(1) > self.threshold
            if not sure.any():
                self.termination_condition_ = "no_change"
                break
            new = np.flatnonzero(~has)[sure]
            y[new] = self.classes_[proba[sure].argmax(1)]
            has[new] = True
            self.labeled_iter_[new] = self.n_iter_
            self._learn(X, y, has, weight)
        else:
            self.termination_condition_ = "all_labeled" if has.all() else "max_iter"
        self.transduction_ = y
        return self

    def _learn(
        self, X: Any, y: NDArray[Any], has: NDArray[np.bool_], weight: NDArray[Any] | None
    ) -> None:
        known = y[has]
        known = np.array(known.tolist()) if known.dtype.kind == "O" else known
        extra = {} if weight is None else {"sample_weight": weight[has]}
        self.estimator_ = clone(self.estimator).fit(_take(X, has), known, **extra)
        self.classes_ = self.estimator_.classes_

    def predict(self, X: Any) -> Any:
        """Labels of the rows."""
        check_is_fitted(self, "estimator_")
        return self.estimator_.predict(X)

    @_offers("predict_proba")
    def predict_proba(self, X: Any) -> Any:
        """Class probabilities, ``(n_samples, n_classes)``."""
        check_is_fitted(self, "estimator_")
        return self.estimator_.predict_proba(X)

    @_offers("decision_function")
    def decision_function(self, X: Any) -> Any:
        """Scores of the classes."""
        check_is_fitted(self, "estimator_")
        return self.estimator_.decision_function(X)

    @_offers("energy")
    def energy(self, X: Any, y: Any = None, z: Any = None) -> Any:
        """Energy of each row under the last model."""
        check_is_fitted(self, "estimator_")
        return self.estimator_.energy(X, y, z)


def _take(X: Any, rows: NDArray[np.bool_]) -> Any:
    return X[rows] if hasattr(X, "shape") and not hasattr(X, "columns") else _frame(X, rows)


def _frame(X: Any, rows: NDArray[np.bool_]) -> Any:
    from groundstate.compute.foreign.sklearn import safe_indexing

    return safe_indexing(X, np.flatnonzero(rows))
