"""Folds of scikit-learn's splitters as weights: who trains and who is held out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import check_cv
from torch import Tensor

from groundstate.learn.solvers.linear.least_squares_sums import is_sparse, scipy_rows

F64 = NDArray[np.float64]
FOLDS = 5


def fold_weights(
    X: Tensor, y: Tensor, weight: Tensor | None, cv: Any, classifier: bool
) -> tuple[F64, F64]:
    """Training and held-out weights ``(folds, n)``.

    ``cv`` means what it means in scikit-learn: None is 5 folds and a number so many, of rows in
    their order, stratified for classes. Where there are too few rows for 5 folds, None is as many
    as there can be. Folds without weight on a side are left out.
    """
    w = np.ones(X.shape[0]) if weight is None else weight.double().cpu().numpy()
    rows = scipy_rows(X.cpu()) if is_sparse(X) else X.cpu().numpy()
    target = y.cpu().numpy()
    target = target[:, 0] if target.ndim == 2 and target.shape[1] == 1 else target
    if cv is None:
        one = classifier and target.ndim == 1
        most = int(np.bincount(target).max()) if one else len(w)
        cv = max(2, min(FOLDS, most))
    parts = check_cv(cv, target, classifier=classifier).split(rows, target)
    both = np.zeros((2, 0, len(w)))
    for sides in parts:
        fold = np.zeros((2, 1, len(w)))
        for side, at in enumerate(sides):
            fold[side, 0, at] = w[at]
        if fold.any(2).all():
            both = np.concatenate([both, fold], 1)
    if not both.shape[1]:
        raise ValueError("no fold has rows of weight on both sides; pass another cv")
    return both[0], both[1]
