"""Logistic regression on many folds and with many strengths, as one population."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from groundstate.errors import NotApplicable
from groundstate.learn.base import Problem
from groundstate.learn.solvers.logistic.folds import FoldPaths, fold_paths, sparse_fold_paths
from groundstate.learn.solvers.logistic.newton import MAX_FEATURES
from groundstate.models.linear.logistic.model import penalty_for
from groundstate.models.population.members import Members, Together

EXACT = ("auto", "newton-cg", "newton-cholesky", "liblinear", "sag", "saga")  # not its own path


def _logistic_members(found: Members) -> dict[int, Any]:
    r"""Fitted clones of a ``LogisticRegression``.

    The folds of all strengths :math:`1/C` are one population of weight vectors (``fold_paths``); with an
    L1 part each fold follows its path from strong to weak. The solver of a single fit makes the last
    steps of each, so that members and single fits end at the same optimum.
    """
    model = found.models[0]
    if found.y.ndim != 1 or model.solver not in EXACT or model.class_weight is not None:
        raise NotApplicable("several labels, another solver, or weights of classes")
    if any(np.isinf(m.C) or m.warm_start for m in found.models):
        raise NotApplicable("without a penalty separable folds are reported by single fits")
    out: dict[int, Any] = {}
    for group in found.groups("C"):
        strong_first = np.unique([found.models[at].C for at in group])
        rows = sorted({int(found.of[at]) for at in group})
        paths = _paths(found, found.models[group[0]], strong_first, found.weights[rows])
        for at in group:
            f, c = rows.index(int(found.of[at])), int(strong_first.searchsorted(found.models[at].C))
            out[at] = _member(found, at, paths.theta[f, c], int(paths.steps[f, c]))
    return out


def _paths(found: Members, model: Any, Cs: Any, weights: Any) -> FoldPaths:
    """All folds along the strengths, from strong to weak."""
    classes, ratio = int(found.y.max()) + 1, float(model.l1_ratio or 0.0)
    data = found.x, found.y, weights
    unknowns = (1 if classes == 2 else classes) * (found.x.shape[1] + 1)
    if unknowns > MAX_FEATURES and found.x.layout == torch.strided:
        raise NotApplicable(f"{unknowns:,} unknowns are too many for a Hessian that folds share")
    if ratio == 0:
        return fold_paths(*data, 1.0 / Cs, classes, model.fit_intercept, model.tol, model.max_iter)
    penalties: Any = [penalty_for(float(C), ratio, classes) for C in Cs]
    return sparse_fold_paths(
        *data, penalties, classes, model.fit_intercept, model.tol**2, model.max_iter
    )


def _member(found: Members, at: int, theta: Any, steps: int) -> Any:
    """A fitted model that begins at such parameters ``(R, D)``."""
    p, model, row = found.x.shape[1], found.models[at], found.weights[found.of[at]]
    live = torch.from_numpy(np.flatnonzero(row))
    x, y = found.x[live], found.y[live]
    some = row[row > 0]
    weight = None if (some == 1).all() else torch.from_numpy(some).to(x.dtype)
    values = torch.from_numpy(np.concatenate([-theta / 2, theta / 2]) if len(theta) == 1 else theta)
    plan = model._plan(x, weight, model.C, model.l1_ratio or 0.0, len(values))
    energy: Any = plan.energy.to(x.dtype)
    with torch.no_grad():
        energy.W.copy_(values[:, :p])
        if energy.b is not None:
            energy.b.copy_(values[:, p])
    problem = Problem(energy, plan.rule, {"x": x, "y": y}, weight, plan.penalty)
    history = plan.solver.run(problem)
    history.n_iter += steps
    return found.fitted(at, energy, history.solver, history)


logistic_members = Together(
    _logistic_members, frozenset({"C", "l1_ratio", "fit_intercept", "tol", "max_iter"})
)
