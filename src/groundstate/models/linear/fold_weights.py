"""Folds as weights: who trains and who is held out, the same however rows are repeated."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.model_selection import check_cv
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.compute.weight_line.line import WeightLine
from groundstate.learn.solvers.linear.least_squares_sums import is_sparse, scipy_rows

FOLDS = 5
F64 = NDArray[np.float64]


def fold_weights(
    X: Tensor, y: Tensor, weight: Tensor | None, cv: Any, random_state: Any
) -> tuple[F64, F64]:
    """Training and held-out weights ``(folds, n)``; a number of folds is cut on the weight line.

    Labels are spread evenly over the folds.
    """
    n = X.shape[0]
    labels = y.cpu().numpy()
    w = np.ones(n) if weight is None else weight.double().cpu().numpy()
    if cv is None or isinstance(cv, Integral):
        line = WeightLine.of(_content(X), labels, weights=None if weight is None else w)
        live = int(np.count_nonzero(w)) and line.n_distinct
        if live < 2:
            raise ValueError(
                f"cross-validation needs at least 2 different rows to hold some out, got n_samples "
                f"= {n} with {live} different"
            )
        counts = np.bincount(labels[w > 0])
        rare = int(counts[counts > 0].min())
        k = min(FOLDS, live, max(2, rare)) if cv is None else int(cv)
        key = Key.of(0 if random_state is None else random_state)
        train = line.folds(key.fold("folds"), k, stratify=labels)
        held = w - train
        some = held.any(1) & train.any(1)  # of few rows a fold may hold none
        return (train, held) if some.all() else (train[some], held[some])
    left_weights, held_weights = [], []
    for left, right in check_cv(cv, labels, classifier=True).split(np.zeros((n, 1)), labels):
        left_weights.append(np.zeros(n))
        held_weights.append(np.zeros(n))
        left_weights[-1][left], held_weights[-1][right] = w[left], w[right]
    return np.array(left_weights), np.array(held_weights)


def _content(X: Tensor) -> Any:
    """What tells rows apart: themselves, or a few sums of sparse ones."""
    if not is_sparse(X):
        return X.cpu().numpy()
    generator = torch.Generator().manual_seed(0)
    mix = torch.randn(X.shape[1], 4, generator=generator, dtype=torch.float64).numpy()
    return scipy_rows(X.cpu()).astype(np.float64) @ mix


__all__ = ["fold_weights"]
