"""A map or a metric? What each can say of rows that were not there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from groundstate.compute.display import Displayed
from groundstate.math.neighbors import pairwise


@dataclass(frozen=True)
class Views(Displayed):
    """A map's extension to new rows beside a metric, which needs none.

    Attributes
    ----------
    moved_new : median distance between where ``transform`` puts a new row and where a map of all
        rows has it, in standard deviations of that map
    moved_known : the same of the known rows, between the two maps
    distances : of the new rows to the known ones by the metric, ``(n_new, n)``
    asymmetry : largest difference of d(x, z) and d(z, x)
    """

    moved_new: float
    moved_known: float
    distances: Any
    asymmetry: float

    def _facts(self) -> dict[str, object]:
        return {"moved_new": round(self.moved_new, 4), "moved_known": round(self.moved_known, 4)}


def compare_views(X: Any, X_new: Any, model: Any, *, metric: Any = "euclidean") -> Views:
    """Compare a map's answer for new rows with a refit, and a metric's.

    A map has coordinates for the rows it was fitted to; new ones need an extension, whose error is
    measured here by fitting all rows once more and turning that map onto the first. A metric is
    defined for any pair and needs no refit.

    Parameters
    ----------
    X, X_new : known and new rows
    model : a map with ``transform``, such as ``Isomap()``; it is cloned
    metric : as in `groundstate.neighbors.pairwise`

    Examples
    --------
    >>> from groundstate import ClassicalMDS
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> found = compare_views(X[:30], X[30:], ClassicalMDS())
    >>> found.moved_new < 1e-6, found.asymmetry
    (True, 0.0)
    """
    X, X_new = np.asarray(X), np.asarray(X_new)
    first = clone(model).fit(X)
    ours = np.concatenate([first.embedding_, first.transform(X_new)])
    whole = clone(model).fit(np.concatenate([X, X_new])).embedding_
    a, b = ours - ours.mean(0), whole - whole.mean(0)
    u, _, v = np.linalg.svd(a.T @ b)
    gap = np.linalg.norm(a @ (u @ v) - b, axis=1) / whole.std(0).mean()
    there: Any = pairwise(X_new, X, metric=metric)
    back: Any = pairwise(X, X_new, metric=metric)
    return Views(
        float(np.median(gap[len(X) :])), float(np.median(gap[: len(X)])), there,
        float(np.abs(there - back.T).max()),
    )  # fmt: skip
