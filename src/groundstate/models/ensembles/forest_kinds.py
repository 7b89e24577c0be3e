"""Forests of class trees and of value trees: what rows outside the bag say, and single members."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import r2_score

from groundstate.models.arrays import unwrap
from groundstate.models.ensembles.forests import Forest
from groundstate.models.trees.class_trees import GrownClassifier
from groundstate.models.trees.decision_tree_classifier import DecisionTreeClassifier
from groundstate.models.trees.decision_tree_regressor import DecisionTreeRegressor
from groundstate.models.trees.grown import GrownRegressor


class ForestClassifier(Forest, GrownClassifier):
    """Averaged class shares."""

    _tree: ClassVar[Any] = DecisionTreeClassifier
    _kept: ClassVar[tuple[str, ...]] = ("classes_",)

    def _judge(self, outside: NDArray[Any], y: Any, weight: Any) -> None:
        seen = ~np.isnan(outside[:, 0])
        known = np.nan_to_num(outside)
        if self._many:
            parts = np.split(outside, np.cumsum(self.n_classes_)[:-1], axis=1)
            table = np.zeros((len(outside), max(self.n_classes_), len(parts)))
            for o, part in enumerate(parts):
                table[:, : part.shape[1], o] = part
            self.oob_decision_function_ = table
            best = np.nan_to_num(table).argmax(1)
            labels = np.stack([own[best[:, o]] for o, own in enumerate(self.classes_)], 1)
        else:
            self.oob_decision_function_ = outside
            labels = self.classes_[known.argmax(1)]
        truth, w = _seen(y, labels.shape, seen), _seen(weight, (len(labels),), seen)
        if callable(self.oob_score):
            self.oob_score_ = self.oob_score(truth, labels[seen])
            return
        right = (labels[seen] == truth).reshape(len(truth), -1).all(1)
        self.oob_score_ = float(np.average(right, weights=w)) if len(right) else float("nan")


class ForestRegressor(Forest, GrownRegressor):
    """Averaged means."""

    _tree: ClassVar[Any] = DecisionTreeRegressor
    _kept: ClassVar[tuple[str, ...]] = ("_flat_target",)

    def _judge(self, outside: NDArray[Any], y: Any, weight: Any) -> None:
        found = outside[:, 0] if self._flat_target else outside
        self.oob_prediction_ = found
        seen = ~np.isnan(outside[:, 0])
        truth, w = _seen(y, found.shape, seen), _seen(weight, (len(found),), seen)
        if callable(self.oob_score):
            self.oob_score_ = self.oob_score(truth, found[seen])
            return
        enough = len(truth) > 1
        self.oob_score_ = float(r2_score(truth, found[seen], sample_weight=w) if enough else "nan")


def _seen(values: Any, shape: tuple[int, ...], seen: NDArray[np.bool_]) -> Any:
    """What was given in ``fit``, of the rows that some tree did not see."""
    return None if values is None else np.asarray(unwrap(values)[0]).reshape(shape)[seen]


__all__ = ["ForestClassifier", "ForestRegressor"]
