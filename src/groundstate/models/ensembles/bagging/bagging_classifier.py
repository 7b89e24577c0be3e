"""Bagging of classifiers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score

from groundstate.models.ensembles.bagging.bags import Bagging
from groundstate.models.roles import EnergyClassifier
from groundstate.models.trees.decision_tree_classifier import DecisionTreeClassifier
from groundstate.registry import models


@models.register(
    family="ensembles", task="classification", role="classifier", max_rows=2_000, auto=False
)
class BaggingClassifier(Bagging, EnergyClassifier):
    r"""The average of members fitted to rows drawn with replacement.

    .. math::
        e(x, y) = -\log \frac1M\sum_{m=1}^M p_m(y \mid x) .

    Members see how often points drawn on the weight line fall on each row, as weights: a weight of
    2 is the row twice, the order of the rows does not matter, and no row is copied. Errors that
    members do not share cancel, so it pays for unstable members such as deep trees.

    Parameters
    ----------
    estimator : classifier of any kind, default=None
        A decision tree unless given. One that takes no weights gets the rows themselves.

    Attributes
    ----------
    oob_decision_function_ : (n_samples, n_classes) array, with ``oob_score``
    energy_ : CommitteeClassEnergy

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from groundstate import BaggingClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BaggingClassifier(n_estimators=20, oob_score=True, random_state=0).fit(X, y)
    >>> len(model.estimators_), bool(model.oob_score_ > 0.9)
    (20, True)
    """

    def _base(self) -> Any:
        return DecisionTreeClassifier()

    def _judge(self, outside: NDArray[Any], y: Any, weight: Any) -> None:
        self.oob_decision_function_ = outside
        seen = ~np.isnan(outside[:, 0])
        found = self.classes_[outside[seen].argmax(1)]
        truth, w = np.asarray(y)[seen], None if weight is None else np.asarray(weight)[seen]
        if callable(self.oob_score):
            self.oob_score_ = self.oob_score(truth, found)
        else:
            self.oob_score_ = float(accuracy_score(truth, found, sample_weight=w))
