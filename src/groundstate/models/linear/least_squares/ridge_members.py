"""Ridge regression on many folds and with many strengths, from one pass over the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from groundstate.energy.basic import SquaredEnergy
from groundstate.errors import NotApplicable
from groundstate.learn.solvers.linear.least_squares import from_sums
from groundstate.learn.solvers.linear.least_squares_sums import RegressionSums
from groundstate.models.population.members import Members, Together

BLOCKS = 64  # kinds of rows, by their weights in all folds


def _ridge_members(found: Members) -> dict[int, Any]:
    """Fitted clones of a ``Ridge``.

    Rows with the same weights in all folds form a block. The sums of a fold are those of its blocks,
    so that all folds together read the rows once; a strength then costs one small system.
    """
    model, p = found.models[0], found.x.shape[1]
    few = int((found.weights > 0).sum(1).min())
    if model.solver not in ("auto", "cholesky") or model.positive or p >= few:
        raise NotApplicable("another solver, signs, or more columns than rows")
    if any(np.ndim(m.alpha) or not m.alpha > 0 for m in found.models):
        raise NotApplicable("a strength for each target, or none")
    out: dict[int, Any] = {}
    for group in found.groups("alpha"):
        intercept = found.models[group[0]].fit_intercept
        sums = _sums(found, intercept)
        for at in group:
            energy = SquaredEnergy(p, found.y.shape[1], bias=intercept).to(found.x.dtype)
            strength = torch.tensor(float(found.models[at].alpha), dtype=torch.float64)
            from_sums(energy, sums[found.of[at]], strength)
            out[at] = found.fitted(at, energy, "LeastSquares")
    return out


def _sums(found: Members, intercept: bool) -> list[RegressionSums]:
    """The sums of every fold."""
    x, y, table = found.x, found.y, found.weights
    mix = np.random.default_rng(0).normal(size=len(table))
    _, first, block = np.unique(mix @ table, return_index=True, return_inverse=True)
    if len(first) > BLOCKS or not np.array_equal(table[:, first][:, block], table):
        return [RegressionSums.of(x, y, torch.from_numpy(w).to(x), intercept) for w in table]
    order = np.argsort(block, kind="stable")
    ends = np.cumsum(np.bincount(block))
    parts = [torch.from_numpy(rows) for rows in np.split(order, ends[:-1])]
    each = [RegressionSums.of(x[at], y[at], None, intercept) for at in parts]
    sums = []
    for weight in table[:, first]:
        scaled = [_times(one, float(w)) for one, w in zip(each, weight, strict=True) if w > 0]
        total = scaled[0]
        for one in scaled[1:]:
            total = total.plus(one)
        sums.append(total)
    return sums


def _times(sums: RegressionSums, w: float) -> RegressionSums:
    """Of the same rows, each with weight w."""
    if w == 1:
        return sums
    return RegressionSums(
        sums.weight * w, sums.mean_x, sums.mean_y, sums.xx * w, sums.xy * w, sums.yy * w
    )


ridge_members = Together(_ridge_members, frozenset({"alpha", "fit_intercept"}))
