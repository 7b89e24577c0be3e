"""Logistic regression on many folds and with many strengths, as one population."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from groundstate.energy.basic import LinearEnergy
from groundstate.learn.base import History
from groundstate.learn.solvers.logistic.folds import FoldPaths, fold_paths, sparse_fold_paths
from groundstate.models.linear.logistic_model import penalty_for
from groundstate.models.members import Members

SETTINGS = frozenset({"C", "l1_ratio", "fit_intercept", "tol", "max_iter"})
EXACT = frozenset({"auto", "lbfgs", "newton-cg", "newton-cholesky", "liblinear", "sag", "saga"})


def logistic_members(
    estimator: Any,
    X: Any,
    y: Any,
    weights: Any = None,
    params: Sequence[Mapping[str, Any]] | None = None,
) -> list[Any] | None:
    r"""Fitted clones of a ``LogisticRegression``; None where they are fitted one by one.

    The folds of all strengths :math:`1/C` are one population of weight vectors (``fold_paths``); with an
    L1 part each fold follows its path from strong to weak. All end one Newton step beyond ``tol``, as
    a single fit does, so that members and single fits agree far below it.
    """
    found = Members.of_rows(estimator, X, y, weights, params, SETTINGS)
    if found is None or found.y.ndim != 1 or not found.have_all_classes():
        return None
    model = found.models[0]
    exact = isinstance(model.solver, str) and model.solver in EXACT
    if not exact or model.class_weight is not None:
        return None
    if any(np.isinf(m.C) for m in found.models):  # separable folds are told by single fits
        return None
    out: dict[int, Any] = {}
    for group in found.groups("C"):
        strong_first = np.unique([found.models[at].C for at in group])
        first = found.models[group[0]]
        rows = sorted({int(found.of[at]) for at in group})
        paths = _paths(found, first, strong_first, found.weights[rows])
        if (paths.steps >= first.max_iter).any():  # the warning belongs to its own fit
            return None
        for at in group:
            f, c = rows.index(int(found.of[at])), int(strong_first.searchsorted(found.models[at].C))
            out[at] = _member(found, at, paths.theta[f, c], int(paths.steps[f, c]))
    return [out[at] for at in range(len(found.models))]


def _paths(found: Members, model: Any, Cs: Any, weights: Any) -> FoldPaths:
    """All folds along the strengths, from strong to weak."""
    classes, ratio = int(found.y.max()) + 1, float(model.l1_ratio or 0.0)
    data, tol = (found.x, found.y, weights), min(model.tol, model.tol**2)  # a Newton step beyond
    if ratio == 0:
        return fold_paths(*data, 1.0 / Cs, classes, model.fit_intercept, tol, model.max_iter)
    penalties: Any = [penalty_for(float(C), ratio, classes) for C in Cs]
    return sparse_fold_paths(*data, penalties, classes, model.fit_intercept, tol, model.max_iter)


def _member(found: Members, at: int, theta: Any, steps: int) -> Any:
    """A fitted model with such parameters ``(R, D)``."""
    p, model = found.x.shape[1], found.models[at]
    values = np.concatenate([-theta / 2, theta / 2]) if len(theta) == 1 else theta
    energy = LinearEnergy(p, len(values), model.fit_intercept)
    energy.W.data = torch.from_numpy(values[:, :p].copy()).to(found.x.dtype)
    if energy.b is not None:
        energy.b.data = torch.from_numpy(values[:, p].copy()).to(found.x.dtype)
    exact = not model.l1_ratio
    history = History(
        n_iter=max(1, steps),
        converged=True,
        solver="Newton" if exact else "ProximalNewton",
        stop="gradient" if exact else "duality gap",
    )
    return found.fitted(at, energy, history.solver, history)


__all__ = ["logistic_members"]
