r"""Cross-validation of a path of penalties: all folds share the rows and, where it pays, one Gram matrix.

A fold is a vector of training weights. With :math:`S` the sums of all rows and :math:`S_h` those of
the held-out ones, the training fold is :math:`S - S_h`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.display import Displayed
from groundstate.learn.solvers.lasso.design import Design, GramDesign
from groundstate.learn.solvers.lasso.moments import (
    Moments,
    designs_of,
    middle,
    path_alphas,
    use_gram,
)
from groundstate.learn.solvers.lasso.path import Path, alpha_max, solve_path
from groundstate.learn.solvers.lasso.polish import polished

F64 = NDArray[np.float64]
CLOSER, EXACT = 1e-7, 1e-10  # duality gaps, relative to ‖y‖²: few may be best, nothing to polish


@dataclass
class PathChoice(Displayed):
    """The path of the best mixing, and what the folds found about all of them.

    Attributes
    ----------
    alphas : ``(ratios, alphas)``
    mse : ``(ratios, alphas, folds)``
    ratio, alpha : indices of the best pair
    path : solutions on all rows for the best ratio
    design : all rows
    """

    alphas: F64
    mse: F64
    ratio: int
    alpha: int
    path: Path
    design: Design


def choose_penalty(
    X: Any,
    y: Tensor,
    weight: Tensor | None,
    folds: Sequence[tuple[F64, F64]],
    *,
    ratios: Sequence[float],
    alphas: int | Sequence[float],
    eps: float = 1e-3,
    intercept: bool = True,
    positive: bool = False,
    tol: float = 1e-4,
    max_iter: int = 1000,
    precompute: Any = "auto",
) -> PathChoice:
    """Mean squared errors of held-out rows along the paths of all folds, and the best penalty.

    Parameters
    ----------
    X : dense rows ``(n, p)`` as a tensor, or a CSC matrix
    y : ``(n, 1)``
    folds : training and held-out weights ``(n,)`` of each fold
    ratios : shares of the L1 part
    alphas : how many, from the largest that matters down to ``eps`` of it, or the values themselves
    """
    many = alphas if isinstance(alphas, int) else len(alphas)
    dense = isinstance(X, Tensor)
    gram = dense and use_gram(len(y), X.shape[1], many * (len(folds) + 1), precompute)
    total: Moments | None = None
    if gram:
        total = Moments(X, y, weight, middle(X, y, weight, intercept))
        whole: Design = total.design(0, intercept)
    else:
        whole = designs_of(X, y, weight, intercept, many, False)[0]
    grids = np.array(
        [
            path_alphas(alpha_max(whole, r, positive), alphas, eps)
            if isinstance(alphas, int)
            else np.sort(np.asarray(alphas, float))[::-1]
            for r in ratios
        ]
    )
    settings: dict[str, Any] = {"tol": tol, "max_iter": max_iter, "positive": positive}
    mse, slack = np.empty((2, len(ratios), many, len(folds)))
    curves = []
    for f, (train, held) in enumerate(folds):
        out = np.flatnonzero(held)
        rest = _fold(X, y, train, out, held, total, weight, intercept, many)
        for i, (ratio, grid) in enumerate(zip(ratios, grids, strict=True)):
            path = solve_path(rest, _strengths(grid, ratio, rest.W), **settings)
            mse[i, :, f] = _errors(X, y, out, held[out], path.coefs, rest)
            slack[i, :, f] = _slack(mse[i, :, f], path.gaps / rest.W)
            curves.append(_Curve(i, f, rest, out, held[out], path))
    seen = np.array([held.sum() > 0 for _, held in folds])
    near = _near(mse[..., seen], slack[..., seen])
    for goal in (CLOSER, EXACT):
        if near.sum() > 1:
            for curve in curves:
                strengths = _strengths(grids[curve.ratio], ratios[curve.ratio], curve.design.W)
                at = _settle(curve, near[curve.ratio], strengths, goal, max_iter, positive)
                i, f, rest = curve.ratio, curve.fold, curve.design
                mse[i, at, f] = _errors(X, y, curve.out, curve.held, curve.path.coefs[:, at], rest)
                slack[i, at, f] = _slack(mse[i, at, f], curve.path.gaps[at] / rest.W)
            near &= _near(mse[..., seen], slack[..., seen])
    mean = np.where(near, mse[:, :, seen].mean(-1), np.inf)
    best = np.unravel_index(int(mean.argmin()), mean.shape)
    ratio_at, alpha_at = int(best[0]), int(best[1])
    ratio = ratios[ratio_at]
    path = solve_path(whole, _strengths(grids[ratio_at], ratio, whole.W), **settings)
    return PathChoice(grids, mse, ratio_at, alpha_at, path, whole)


@dataclass
class _Curve:
    """The path of one mixing on the training rows of one fold."""

    ratio: int
    fold: int
    design: Design
    out: Any  # held-out rows
    held: F64  # their weights
    path: Path


def _slack(mse: F64, gap: F64) -> F64:
    r"""How far errors are from those at the optimum: predictions stand within :math:`\sqrt{2\,gap}` of it."""
    away = 2.0 * np.maximum(gap, 0.0)
    return 2.0 * np.sqrt(mse * away) + away


def _near(mse: F64, slack: F64) -> NDArray[np.bool_]:
    """``(ratios, alphas)``: what may be the best."""
    near: NDArray[np.bool_] = (mse - slack).mean(-1) <= (mse + slack).mean(-1).min()
    return near


def _settle(
    curve: _Curve, near: Any, strengths: list[tuple[float, float]], goal: float, max_iter: int,
    positive: bool,
) -> Any:  # fmt: skip
    """Solutions within the goal where the choice may fall; at the end the optimum itself.

    So the choice does not depend on the way there. The alphas whose solutions are new.
    """
    rest, path = curve.design, curve.path
    if not isinstance(rest, GramDesign):
        return np.empty(0, np.int64)
    at = np.flatnonzero(near & (path.gaps > goal * rest.yy))
    if goal > EXACT and len(at):
        closer = solve_path(
            rest, [strengths[k] for k in at], tol=goal, max_iter=max_iter, positive=positive,
            start=path.coefs[:, at[0]],
        )  # fmt: skip
        path.coefs[:, at], path.gaps[at] = closer.coefs, closer.gaps
        return at
    for k in at:
        path.coefs[:, k] = polished(rest, path.coefs[:, k].copy(), *strengths[k], positive)
    return at


def _strengths(alphas: F64, ratio: float, W: float) -> list[tuple[float, float]]:
    return [(a * W * ratio, a * W * (1 - ratio)) for a in alphas]


def _fold(
    X: Any, y: Tensor, train: F64, out: Any, held: F64, total: Moments | None,
    weight: Tensor | None, intercept: bool, many: int,
) -> Design:  # fmt: skip
    """The training rows of a fold."""
    everything = np.ones(len(train)) if weight is None else weight.double().numpy()
    if total is not None and np.allclose(train + held, everything, rtol=1e-12):
        picked = torch.from_numpy(out)
        gone = Moments(X[picked], y[picked], torch.from_numpy(held[out]), total.origin)
        return total.less(gone).design(0, intercept)
    kept = np.flatnonzero(train)
    w = None if (train[kept] == 1).all() else torch.from_numpy(train[kept])
    rows = X[torch.from_numpy(kept)] if isinstance(X, Tensor) else X[kept]
    return designs_of(rows, y[torch.from_numpy(kept)], w, intercept, many, False)[0]


def _errors(X: Any, y: Tensor, out: Any, held: F64, coefs: F64, design: Design) -> F64:
    """Weighted mean squared errors of the held-out rows, ``(alphas,)``."""
    if isinstance(X, Tensor):
        rows = X[torch.from_numpy(out)].double() - torch.from_numpy(design.mean_x)
        predicted = (rows @ torch.from_numpy(coefs)).numpy()
    else:
        predicted = X[out] @ coefs - design.mean_x @ coefs
    wrong = y.double().numpy()[out] - design.mean_y - predicted
    return (held @ wrong**2) / held.sum()
