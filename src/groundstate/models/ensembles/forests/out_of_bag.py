"""What is known about rows from the trees of a forest that did not see them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import r2_score

from groundstate.models.arrays import unwrap


def judge_labels(model: Any, outside: NDArray[Any], y: Any, weight: Any) -> None:
    """Set what class shares of the trees that did not see a row say of it."""
    seen = ~np.isnan(outside[:, 0])
    known = np.nan_to_num(outside)
    if model._many:
        parts = np.split(outside, np.cumsum(model.n_classes_)[:-1], axis=1)
        table = np.zeros((len(outside), max(model.n_classes_), len(parts)))
        for o, part in enumerate(parts):
            table[:, : part.shape[1], o] = part
        model.oob_decision_function_ = table
        best = np.nan_to_num(table).argmax(1)
        labels = np.stack([own[best[:, o]] for o, own in enumerate(model.classes_)], 1)
    else:
        model.oob_decision_function_ = outside
        labels = model.classes_[known.argmax(1)]
    truth, w = _seen(y, labels.shape, seen), _seen(weight, (len(labels),), seen)
    if callable(model.oob_score):
        model.oob_score_ = model.oob_score(truth, labels[seen])
        return
    right = (labels[seen] == truth).reshape(len(truth), -1).all(1)
    model.oob_score_ = float(np.average(right, weights=w)) if len(right) else float("nan")


def judge_values(model: Any, outside: NDArray[Any], y: Any, weight: Any) -> None:
    """Set what means of the trees that did not see a row say of it."""
    found = outside[:, 0] if model._flat_target else outside
    model.oob_prediction_ = found
    seen = ~np.isnan(outside[:, 0])
    truth, w = _seen(y, found.shape, seen), _seen(weight, (len(found),), seen)
    if callable(model.oob_score):
        model.oob_score_ = model.oob_score(truth, found[seen])
        return
    enough = len(truth) > 1
    model.oob_score_ = float(r2_score(truth, found[seen], sample_weight=w) if enough else "nan")


def _seen(values: Any, shape: tuple[int, ...], seen: NDArray[np.bool_]) -> Any:
    """What was given in ``fit``, of the rows that some tree did not see."""
    return None if values is None else np.asarray(unwrap(values)[0]).reshape(shape)[seen]
