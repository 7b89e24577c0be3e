"""The area under the ROC curve for many weightings of the same rows at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.random import Key
from groundstate.evaluate.rows import Floats


def weighted_auc(y: NDArray[Any], ranking: Floats, weights: Floats) -> Floats:
    r"""Chance that a row of a class has the larger score, ties counting half, for B weightings.

    .. math:: \mathrm{AUC}_k = \frac{\sum_{i: y_i = k}\sum_{j: y_j \ne k} w_i w_j
              \left([s_i > s_j] + \tfrac12 [s_i = s_j]\right)}
              {\sum_{i: y_i = k} w_i \sum_{j: y_j \ne k} w_j}

    Two classes give the area of the second; more give the mean over the classes that occur
    (one against the rest). NaN when all weight is on one class.

    Parameters
    ----------
    y : (N,)
        Class numbers.
    ranking : (N, K)
    weights : (B, N)

    Examples
    --------
    >>> s = np.array([0.1, 0.4, 0.35, 0.8])
    >>> weighted_auc(np.array([0, 0, 1, 1]), np.stack([-s, s], 1), np.ones((1, 4)))
    array([0.75])
    """
    k = ranking.shape[1]
    if k == 2:
        return _binary(y == 1, ranking[:, 1], weights)
    areas = np.stack([_binary(y == c, ranking[:, c], weights) for c in range(k)])  # (K, B)
    known = ~np.isnan(areas)
    total = np.where(known, areas, 0.0).sum(0)
    with np.errstate(invalid="ignore"):
        return total / known.sum(0)


def _binary(positive: NDArray[np.bool_], score: Floats, weights: Floats) -> Floats:
    order = np.argsort(score, kind="stable")
    score, w, p = score[order], weights[:, order], positive[order]
    starts = np.flatnonzero(np.r_[True, score[1:] != score[:-1]])  # ties form one step
    up, down = np.where(p, w, 0.0), np.where(p, 0.0, w)  # (B, N)
    if len(starts) < len(score):
        up, down = np.add.reduceat(up, starts, 1), np.add.reduceat(down, starts, 1)  # (B, steps)
    pairs = up.sum(1) * down.sum(1)
    below = np.cumsum(down, 1)
    below -= down / 2
    won = np.einsum("bs,bs->b", up, below)
    with np.errstate(invalid="ignore"):
        return won / np.where(pairs > 0, pairs, np.nan)


def resampled_auc(
    y: NDArray[Any],
    ranking: Floats,
    weight: Floats,
    n: int,
    key: Key,
    groups: NDArray[np.intp] | None = None,
    strata: NDArray[np.intp] | None = None,
) -> Floats:
    """The area of n bootstrap resamples, from one sort per class.  # (n,)

    Every resample has a random stream of its own, so two rankings of the same rows see the same
    resamples.

    Parameters
    ----------
    y, ranking
        As in :func:`weighted_auc`.
    weight : (N,)
        Whole numbers; a weight of 2 is the row twice.
    groups, strata : (N,), optional
        Numbers of groups that are drawn whole; numbers of strata that are drawn within.
    """
    from groundstate.evaluate.metrics.auc_numba import areas

    if groups is None:
        unit, row_weight = np.arange(len(weight)), np.ones(len(weight))
        pick = np.repeat(unit, weight.astype(np.int64))
    else:
        unit, row_weight = groups.astype(np.int64), weight
        pick = np.arange(int(unit.max()) + 1)
    starts = np.array([0, len(pick)])
    if strata is not None:
        of = np.empty(int(unit.max()) + 1, np.intp)
        of[unit] = strata
        pick = pick[np.argsort(of[pick], kind="stable")]
        starts = np.r_[0, np.cumsum(np.bincount(of[pick]))]

    def one(positive: NDArray[np.bool_], score: Floats) -> Floats:
        order = np.argsort(score, kind="stable")
        s = score[order]
        last = np.r_[s[1:] != s[:-1], True]
        found: Floats = areas(
            positive[order], last, unit[order], row_weight[order], pick.astype(np.int64),
            starts.astype(np.int64), int(unit.max()) + 1, np.uint64(key.high), np.uint64(key.low),
            0, n,
        )  # fmt: skip
        return found

    if ranking.shape[1] == 2:
        return one(y == 1, ranking[:, 1])
    each = np.stack([one(y == c, ranking[:, c]) for c in range(ranking.shape[1])])
    known = ~np.isnan(each)
    with np.errstate(invalid="ignore"):
        return np.where(known, each, 0.0).sum(0) / known.sum(0)
