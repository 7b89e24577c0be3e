"""The lasso and the elastic net on many folds and with many strengths, by paths on shared sums."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch

from groundstate.energy.basic import SquaredEnergy
from groundstate.errors import NotApplicable, NotConverged
from groundstate.learn.base import History
from groundstate.learn.solvers.lasso.design import Design
from groundstate.learn.solvers.lasso.moments import Moments, designs_of, middle, use_gram
from groundstate.learn.solvers.lasso.path import Path, solve_path
from groundstate.learn.solvers.lasso.polish import polished
from groundstate.models.linear.sparse.model import MAX_ITER
from groundstate.models.population.members import Members, Together


def _sparse_members(found: Members) -> dict[int, Any]:
    r"""Fitted clones of a ``Lasso`` or ``ElasticNet``.

    With :math:`S` the sums of all rows and :math:`S_h` those of the rows a fold leaves out, its own are
    :math:`S - S_h`. The strengths of a fold follow one another from strong to weak, each from the
    solution before it; every one ends at its duality gap.
    """
    if any(m.alpha * _ratio(m) <= 0 for m in found.models):
        raise NotApplicable("without an L1 part there is no path")
    out: dict[int, Any] = {}
    late = 0
    for group in found.groups("alpha"):
        first = found.models[group[0]]
        for fold, designs in enumerate(_designs(found, first, len(group))):
            members = [at for at in group if found.of[at] == fold]
            members.sort(key=lambda at: -found.models[at].alpha)
            paths = [_path(design, first, found, members) for design in designs]
            for k, at in enumerate(members):
                out[at] = _member(found, at, k, designs, paths)
                late += not out[at].history_.converged
    if late:
        warnings.warn(
            f"{late} of {len(out)} fits did not reach their tol in max_iter passes; raise max_iter "
            "or scale the columns",
            NotConverged,
            stacklevel=6,
        )
    return out


def _ratio(model: Any) -> float:
    return float(getattr(model, "l1_ratio", 1.0))


def _designs(found: Members, model: Any, penalties: int) -> list[list[Design]]:
    """The regressions of every fold, one for each target."""
    x, y, table, intercept = found.x, found.y, found.weights, model.fit_intercept
    targets = range(y.shape[1])
    top = table.max(0)  # every fold has some of these rows, with some of their weight
    gone = [np.flatnonzero(row < top) for row in table]
    if not use_gram(int((table > 0).sum(1).min()), x.shape[1], penalties, model.precompute):
        return [_alone(found, row, intercept, penalties, False) for row in table]
    if sum(map(len, gone)) > sum(int((row > 0).sum()) for row in table):
        return [_alone(found, row, intercept, penalties, True) for row in table]
    all_of_it = torch.from_numpy(top)
    total = Moments(x, y, all_of_it, middle(x, y, all_of_it, intercept))
    designs: list[list[Design]] = []
    for row, out in zip(table, gone, strict=True):
        at = torch.from_numpy(out)
        less = Moments(x[at], y[at], torch.from_numpy((top - row)[out]), total.origin)
        designs.append([total.less(less).design(k, intercept) for k in targets])
    return designs


def _alone(found: Members, row: Any, intercept: bool, penalties: int, gram: bool) -> list[Design]:
    """From the rows of the fold alone."""
    live = np.flatnonzero(row)
    at = torch.from_numpy(live)
    weight = None if (row[live] == 1).all() else torch.from_numpy(row[live])
    return designs_of(found.x[at], found.y[at], weight, intercept, penalties, gram)


def _path(design: Design, model: Any, found: Members, members: list[int]) -> Path:
    ratio = _ratio(model)
    alphas = [float(found.models[at].alpha) for at in members]
    penalties = [(a * design.W * ratio, a * design.W * (1 - ratio)) for a in alphas]
    path = solve_path(
        design, penalties, tol=model.tol, max_iter=model.max_iter or MAX_ITER,
        positive=model.positive,
    )  # fmt: skip
    for k, penalty in enumerate(penalties):  # as a single fit ends
        path.coefs[:, k] = polished(design, path.coefs[:, k].copy(), *penalty, model.positive)
    return path


def _member(found: Members, at: int, k: int, designs: list[Design], paths: list[Path]) -> Any:
    """Place k of the paths of all targets as a fitted model."""
    model = found.models[at]
    energy = SquaredEnergy(found.x.shape[1], len(designs), bias=model.fit_intercept)
    energy = energy.to(found.x.dtype)
    W = np.stack([path.coefs[:, k] for path in paths])
    energy.W.data = torch.from_numpy(W).to(found.x.dtype)
    if energy.b is not None:
        bias = [d.mean_y - float(d.mean_x @ w) for d, w in zip(designs, W, strict=True)]
        energy.b.data = torch.tensor(bias, dtype=found.x.dtype)
    both = list(zip(designs, paths, strict=True))
    solved = all(path.gaps[k] <= model.tol * d.yy * (1 + 1e-12) for d, path in both)
    history = History(
        objective=[sum(float(path.objectives[k]) / d.W for d, path in both)],
        n_iter=max(1, int(max(path.epochs[k] for path in paths))),
        converged=solved,
        solver="CoordinateDescent",
        stop="duality gap" if solved else "max_iter",
        extra={
            "dual_gap": [float(path.gaps[k]) / d.W for d, path in both],
            "epochs": [float(path.epochs[k]) for path in paths],
        },
    )
    return found.fitted(at, energy, "CoordinateDescent", history)


sparse_members = Together(
    _sparse_members,
    frozenset({"alpha", "l1_ratio", "fit_intercept", "tol", "max_iter", "positive"}),
)
