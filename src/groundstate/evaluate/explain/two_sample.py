"""Whether a classifier can tell two sets of rows apart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.random import Key
from groundstate.evaluate.rows import Floats
from groundstate.evaluate.splits.folds import folds
from groundstate.evaluate.splits.units import group_parts
from groundstate.math.stats.delong import auc_interval
from groundstate.math.stats.interval import Interval

_FOLDS, _TWICE = 3, 2**0.5


def two_sample_auc(
    values: Floats, side: NDArray[np.intp], key: Key, level: float = 0.95
) -> Interval:
    r"""AUC of boosted trees that tell side 0 from side 1 on rows they did not learn from.

    Where the sides do not differ, each pair of rows of different folds counts twice, once as either is
    judged: :math:`\sum_{i,j} s_i s_j k(x_i, x_j)` has twice the variance that rows judged by fits to
    other rows have. The limits are DeLong's, as many times further away as that asks for, √2.
    """
    from sklearn.base import clone
    from sklearn.ensemble import HistGradientBoostingClassifier

    seed = int(key.fold("folds").words(1)[0] % (2**31 - 1))
    model = HistGradientBoostingClassifier(
        max_iter=25, max_leaf_nodes=8, early_stopping=False, random_state=seed
    )
    p = np.empty(len(values))
    # equal rows of a side are draws of their own: kept together they would hide their share
    cells = np.where(np.isnan(values), -np.inf, values)
    alone = np.column_stack([cells, _occurrence(np.column_stack([cells, side]))])
    for train, test in _parts(alone, side, key.fold("folds")):
        fitted = clone(model).fit(values[train], side[train])
        p[test] = fitted.predict_proba(values[test])[:, 1]
    found = auc_interval(side, p, level)
    low, high = (
        min(1.0, max(0.0, found.estimate + _TWICE * (end - found.estimate)))
        for end in (found.low, found.high)
    )
    return replace(found, low=low, high=high, method=f"{found.method}, widened for folds")


def _parts(
    rows: Floats, side: NDArray[np.intp], key: Key
) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Rows to learn from and rows to judge; a row and its equal on the other side stay together,
    or the one learned from would give the other the wrong side."""
    pair = np.unique(rows, axis=0, return_inverse=True)[1].ravel()
    if pair.max() + 1 == len(rows):
        found = folds(rows, side, k=_FOLDS, key=key, stratify=True)
        return [(part.train_rows, part.test_rows) for part in found]
    of = group_parts(rows, pair, [1 / _FOLDS] * _FOLDS, key, side)
    return [(np.flatnonzero(of != i), np.flatnonzero(of == i)) for i in range(_FOLDS)]


def _occurrence(rows: Floats) -> Floats:
    """Which of its copies a row is, counted from zero.

    >>> _occurrence(np.array([[1.0], [2.0], [1.0]])).tolist()
    [0.0, 0.0, 1.0]
    """
    _, of = np.unique(rows, axis=0, return_inverse=True)
    order = np.argsort(of.ravel(), kind="stable")
    ranked = of.ravel()[order]
    found = np.empty(len(rows))
    found[order] = np.arange(len(rows)) - np.searchsorted(ranked, ranked)
    return found
