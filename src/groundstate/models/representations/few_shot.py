r"""Few examples of new classes: prototypes, episodes, and how well neighbours are found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from scipy.special import softmax

from groundstate.compute.random import Key
from groundstate.errors import DataError

F64 = NDArray[np.float64]


def prototypes(Z: Any, y: Any) -> tuple[NDArray[Any], F64]:
    """The labels, and the mean code of each, ``(n_classes, k)``.

    >>> prototypes([[0.0], [2.0], [5.0]], ["a", "a", "b"])
    (array(['a', 'b'], dtype='<U1'), array([[1.],
           [5.]]))
    """
    Z, y = np.asarray(Z, np.float64), np.asarray(y)
    classes, index = np.unique(y, return_inverse=True)
    sums = np.zeros((len(classes), Z.shape[1]))
    np.add.at(sums, index, Z)
    return classes, sums / np.bincount(index)[:, None]


def prototype_proba(centres: Any, Z: Any) -> F64:
    r""":math:`\mathrm{softmax}(-\|z - c_k\|^2)`, ``(n, n_classes)``."""
    found: F64 = softmax(-cdist(np.asarray(Z, np.float64), centres, "sqeuclidean"), axis=1)
    return found


def episodes(
    embed: Callable[[Any], Any],
    X: Any,
    y: Any,
    way: int = 5,
    shot: int = 1,
    queries: int = 15,
    n_episodes: int = 100,
    random_state: Any = 0,
) -> tuple[float, float]:
    """Mean accuracy, and its standard error, of ``way`` classes with ``shot`` examples each."""
    y = np.asarray(y)
    Z = np.asarray(embed(X), np.float64)
    classes, counts = np.unique(y, return_counts=True)
    usable = classes[counts > shot]
    if len(usable) < way:
        raise DataError(
            f"{way}-way {shot}-shot episodes need {way} classes of more than {shot} rows, there are "
            f"{len(usable)}"
        )
    rng = Key.of(random_state).fold("episodes").numpy()
    scores = []
    for _ in range(n_episodes):
        support, query = [], []
        for label in rng.choice(usable, way, replace=False):
            rows = rng.permutation(np.flatnonzero(y == label))
            support.append(rows[:shot])
            query.append(rows[shot : shot + queries])
        s, q = np.concatenate(support), np.concatenate(query)
        known, centres = prototypes(Z[s], y[s])
        scores.append((known[cdist(Z[q], centres).argmin(1)] == y[q]).mean())
    return float(np.mean(scores)), float(np.std(scores, ddof=1) / np.sqrt(n_episodes))


def retrieval(Z: Any, y: Any, k: int = 1) -> tuple[float, float]:
    """Recall at k (a row of one's label is among the k nearest others) and MAP at R.

    MAP at R is, for a row with R others of its label, the mean over ranks r up to R of the precision at r
    where rank r is right.

    >>> retrieval([[0.0], [0.1], [5.0], [5.1]], [0, 0, 1, 1])
    (1.0, 1.0)
    """
    Z, y = np.asarray(Z, np.float64), np.asarray(y)
    hits, precise = [], []
    for at in range(0, len(Z), 512):
        d = cdist(Z[at : at + 512], Z)
        rows = np.arange(len(d))
        d[rows, at + rows] = np.inf
        order = np.argsort(d, axis=1, kind="stable")[:, :-1]
        right = y[order] == y[at : at + 512][:, None]
        R = right.sum(1)
        hits.append(right[:, :k].any(1)[R > 0])
        inside = np.arange(right.shape[1]) < R[:, None]
        each = np.cumsum(right, 1) / np.arange(1, right.shape[1] + 1)
        precise.append(((each * right * inside).sum(1) / np.maximum(R, 1))[R > 0])
    found, exact = np.concatenate(hits), np.concatenate(precise)
    if not len(found):
        raise DataError("no label has two rows, so that there is nothing to retrieve")
    return float(found.mean()), float(exact.mean())
