"""By which rows settings are judged: validation rows or folds."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from groundstate.compute.random import Key
from groundstate.errors import DataError
from groundstate.evaluate.splits.folds import folds, train_test
from groundstate.tune.rows import Rows, check_disjoint
from groundstate.tune.trials import Part

HELD = 0.2


def judged_parts(
    D: Rows, cv: Any, validation: Any, key: Key, classifier: bool
) -> tuple[list[Part], Rows]:
    """The parts, and all rows together for the final fit."""
    if cv is not None:
        if validation is not None:
            raise DataError("pass validation rows or cv, not both: folds judge without them")
        return _folds(D, cv, key, classifier), D
    if validation is None:
        split = train_test(
            D.X, D.y, test=HELD, key=key, sample_weight=D.weight, stratify=_strata(D, classifier)
        )
        return [Part(D.part(split.train), D.part(split.test))], D
    if isinstance(validation, tuple):
        held = Rows.of(*validation)
        check_disjoint(D, held)
        return [Part(D, held)], D.union(held)
    rows = np.asarray(validation)
    rows = np.flatnonzero(rows) if rows.dtype == bool else rows
    if rows.ndim != 1 or not len(rows) or rows.min() < 0 or rows.max() >= len(D):
        raise DataError(
            f"validation is (X, y) of other rows or positions between 0 and {len(D) - 1}"
        )
    inside = np.zeros(len(D), bool)
    inside[rows] = True
    part = Part(D.part(np.where(inside, 0.0, D.weight)), D.part(np.where(inside, D.weight, 0.0)))
    check_disjoint(part.train, part.test)
    return [part], D


def _strata(D: Rows, classifier: bool) -> bool:
    return classifier and D.y is not None and D.y.ndim == 1


def _folds(D: Rows, cv: Any, key: Key, classifier: bool) -> list[Part]:
    if isinstance(cv, Integral):
        cut = folds(
            D.X, D.y, k=int(cv), key=key, sample_weight=D.weight, stratify=_strata(D, classifier)
        )
        return [Part(D.part(s.train), D.part(s.test), D, (s.train_rows, s.test_rows)) for s in cut]
    from sklearn.model_selection import check_cv

    splitter = check_cv(cv, D.y, classifier=classifier)
    parts = []
    for left, right in splitter.split(np.zeros((len(D), 1)), D.y):
        weights = np.zeros((2, len(D)))
        weights[0, left], weights[1, right] = D.weight[left], D.weight[right]
        parts.append(Part(D.part(weights[0]), D.part(weights[1]), D, (left, right)))
    return parts
