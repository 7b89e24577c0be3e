"""Classifiers whose answers another classifier learns from."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import column_or_1d
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from torch import Tensor

from groundstate.compute.foreign.sklearn import StrOptions
from groundstate.energy.compose.stacked import StackedClassEnergy
from groundstate.learn import SoftMin
from groundstate.models.base import Plan
from groundstate.models.bayes.gaussian_nb import GaussianNB
from groundstate.models.ensembles.forests.random_forest_classifier import RandomForestClassifier
from groundstate.models.ensembles.stacking.labels import StackedLabelsEnergy
from groundstate.models.ensembles.stacking.stacks import METHODS, Stacking, has
from groundstate.models.linear.logistic.logistic_regression import LogisticRegression
from groundstate.models.roles import EnergyClassifier
from groundstate.models.trees.decision_tree_classifier import DecisionTreeClassifier
from groundstate.registry import models


@models.register(
    family="ensembles", task="classification", role="classifier", max_rows=2_000, auto=False
)
class StackingClassifier(Stacking, EnergyClassifier):
    r"""A classifier that learns from what other classifiers say of rows they have not seen.

    .. math::
        e(x, y) = e_\text{final}(\varphi(x), y), \qquad \varphi(x) = \bigl(p_1(\cdot \mid x), \dots,
        p_M(\cdot \mid x)\bigr), \qquad
        \theta_\text{final} = \arg\min_\theta \sum_i w_i\,L\bigl(\varphi_{-f(i)}(x_i), y_i; \theta\bigr) .

    The members are fitted to all rows; in learning, the final estimator sees the answers of members
    that were fitted without the fold of the row. A weight of 2 is the row twice within a fold. Rows
    may have several labels, y of shape ``(n_samples, n_labels)``, where all members and the final
    estimator take them.

    Parameters
    ----------
    final_estimator : classifier, default=None
        None is ``LogisticRegression()``.
    cv : int, splitter, iterable, "prefit" or None, default=None
        How many folds (None is 5) of rows in their order, labels spread evenly, as in scikit-learn, a
        splitter, or pairs of indices; "prefit" takes members that are fitted already, to class
        numbers.
    stack_method : {"auto", "predict_proba", "decision_function", "predict"}, default="auto"
        What members are asked; "auto" is the first that they have.

    Attributes
    ----------
    estimators_ : list of members, fitted to class numbers
    energy_ : StackedClassEnergy, or StackedLabelsEnergy for several labels

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from groundstate import DecisionTreeClassifier, GaussianNB, StackingClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> parts = [("tree", DecisionTreeClassifier(max_depth=2)), ("bayes", GaussianNB())]
    >>> model = StackingClassifier(parts).fit(X, y)
    >>> model.transform(X).shape, model.score(X, y) > 0.95
    ((150, 6), True)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "stack_method": [StrOptions({"auto", *METHODS})],
    }
    _single_class: ClassVar[bool] = False
    _multi_output: ClassVar[bool] = True

    def __init__(
        self,
        estimators: Any = None,
        final_estimator: Any = None,
        *,
        cv: Any = None,
        stack_method: str = "auto",
        n_jobs: int | None = None,
        passthrough: bool = False,
        verbose: int = 0,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _defaults(self) -> list[tuple[str, Any]]:
        return [
            ("tree", DecisionTreeClassifier(random_state=0)),
            ("bayes", GaussianNB()),
            ("forest", RandomForestClassifier(20, random_state=0)),
        ]

    def _final(self) -> Any:
        return LogisticRegression() if self.final_estimator is None else self.final_estimator

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        assert y is not None
        if self._many:
            sizes = [len(own) for own in self.classes_]
            several = StackedLabelsEnergy(X.shape[1], sizes, passthrough=self.passthrough)
            return Plan(several, SoftMin(), self._solver(X, y, weight))
        energy = StackedClassEnergy(X.shape[1], len(self.classes_), passthrough=self.passthrough)
        return Plan(energy, SoftMin(), self._solver(X, y, weight))

    def _target(self, y: Any) -> tuple[NDArray[Any], dict[str, Any]]:
        y = y.toarray() if issparse(y) else np.asarray(y)
        if y.ndim == 1 or y.shape[1] == 1:
            return super()._target(column_or_1d(y, warn=True))
        check_classification_targets(y)
        found = [np.unique(column, return_inverse=True) for column in y.T]
        index = np.stack([own for _, own in found], 1).astype(np.int64)
        return index, {"classes_": [classes for classes, _ in found]}

    def _each_shares(self, x: Tensor) -> list[Tensor]:
        energy: Any = self.energy_
        each: list[Tensor] = energy.shares(x)
        return each

    def predict(self, X: Any, **options: Any) -> Any:
        """Labels by the final estimator, ``(n_samples,)``; several are ``(n_samples, n_labels)``."""
        found, home = self._ask_final("predict", X, **options)
        at = np.asarray(found).astype(int)
        if self._many:
            return home.give(np.stack([c[own] for c, own in zip(self.classes_, at.T)], 1))
        return home.give(self.classes_[at])

    @available_if(has("predict_proba"))
    def predict_proba(self, X: Any) -> Any:
        """Class probabilities by the final estimator, ``(n_samples, n_classes)``.

        Of several labels, as in scikit-learn, the probability of the first class of each,
        ``(n_samples, n_labels)``.
        """
        if self._many:
            x, home = self._rows(X)
            return home.give(torch.stack([p[:, 0] for p in self._each_shares(x)], 1))
        found, home = self._ask_final("predict_proba", X)
        return home.give(found)

    @available_if(has("predict_proba"))
    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of the class probabilities, ``(n_samples, n_classes)``; a list of several labels."""
        if self._many:
            return super().predict_log_proba(X)
        found, home = self._ask_final("predict_proba", X)
        with np.errstate(divide="ignore"):
            return home.give(np.log(found))

    @available_if(has("decision_function"))
    def decision_function(self, X: Any) -> Any:
        """Scores of the final estimator."""
        found, home = self._ask_final("decision_function", X)
        return home.give(found)
