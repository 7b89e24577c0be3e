"""What the cross-validated lasso and elastic net have in common."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any

import numpy as np
import torch
from torch import Tensor

from groundstate.errors import NotConverged
from groundstate.learn.solvers.lasso.coordinate_descent import columns_of
from groundstate.learn.solvers.lasso.cv import PathChoice, choose_penalty
from groundstate.models.base import Plan
from groundstate.models.linear.fold_weights import fold_weights


def path_plan(model: Any, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
    """A path on every fold, the best penalty, and the path on all rows: ``_build`` of the model."""
    assert y is not None
    given = getattr(model, "l1_ratio", 1.0)
    ratios = [float(r) for r in np.atleast_1d(given)]
    alphas = int(model.alphas) if isinstance(model.alphas, Integral) else list(model.alphas)
    folds = list(zip(*fold_weights(X, y, weight, model.cv, False), strict=True))
    found = choose_penalty(
        columns_of(X), y, weight, folds, ratios=ratios, alphas=alphas,
        eps=model.eps, intercept=model.fit_intercept, positive=model.positive, tol=model.tol,
        max_iter=model.max_iter, precompute=model._gram(),
    )  # fmt: skip
    _say(model, found)
    ratio, alpha = ratios[found.ratio], float(found.alphas[found.ratio, found.alpha])
    model.alpha_ = alpha
    if hasattr(model, "l1_ratio"):
        model.l1_ratio_ = ratio
    several = np.ndim(given) > 0 and len(ratios) > 1
    model.alphas_ = found.alphas if several and isinstance(alphas, int) else found.alphas[0]
    model.mse_path_ = found.mse if several else found.mse[0]
    model.coef_path_ = found.path.coefs
    model.dual_gaps_ = found.path.gaps / found.design.W
    plan = model._penalised(X, y, weight, alpha, ratio)
    with torch.no_grad():
        best = torch.from_numpy(found.path.coefs[:, found.alpha].copy())
        plan.energy.to(X.dtype).W[0].copy_(best)
    return plan


def _say(model: Any, found: PathChoice) -> None:
    late = found.path.gaps > model.tol * found.design.yy * (1 + 1e-12)
    if late.any():
        warnings.warn(
            f"{int(late.sum())} of {len(late)} penalties did not reach tol={model.tol} in "
            f"max_iter={model.max_iter} passes; raise max_iter or eps, or scale the columns",
            NotConverged,
            stacklevel=6,
        )
