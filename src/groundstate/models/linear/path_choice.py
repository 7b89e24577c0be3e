"""What the cross-validated lasso and elastic net have in common."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils import Tags
from torch import Tensor

from groundstate.errors import NotConverged
from groundstate.learn.solvers.lasso.coordinate_descent import columns_of
from groundstate.learn.solvers.lasso.cv import PathChoice, choose_penalty
from groundstate.models.base import Plan
from groundstate.models.linear.fold_weights import fold_weights
from groundstate.models.linear.sparse_linear import SparseLinearRegressor


class PathChooser(SparseLinearRegressor):
    """A path on every fold, the best penalty, and the path on all rows."""

    _multi_output: ClassVar[bool] = False
    eps: float
    alphas: Any
    cv: Any
    random_state: Any

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        return tags

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        assert y is not None
        given = getattr(self, "l1_ratio", 1.0)
        ratios = [float(r) for r in np.atleast_1d(given)]
        alphas = int(self.alphas) if isinstance(self.alphas, Integral) else list(self.alphas)
        folds = list(zip(*fold_weights(X, y, weight, self.cv, False), strict=True))
        found = choose_penalty(
            columns_of(X), y, weight, folds, ratios=ratios, alphas=alphas,
            eps=self.eps, intercept=self.fit_intercept, positive=self.positive, tol=self.tol,
            max_iter=self.max_iter, precompute=self._gram(),
        )  # fmt: skip
        self._say(found)
        ratio, alpha = ratios[found.ratio], float(found.alphas[found.ratio, found.alpha])
        self.alpha_ = alpha
        if hasattr(self, "l1_ratio"):
            self.l1_ratio_ = ratio
        several = np.ndim(given) > 0 and len(ratios) > 1
        self.alphas_ = found.alphas if several and isinstance(alphas, int) else found.alphas[0]
        self.mse_path_ = found.mse if several else found.mse[0]
        self.coef_path_ = found.path.coefs
        self.dual_gaps_ = found.path.gaps / found.design.W
        plan = self._penalised(X, y, weight, alpha, ratio)
        with torch.no_grad():
            best = torch.from_numpy(found.path.coefs[:, found.alpha].copy())
            plan.energy.to(X.dtype).W[0].copy_(best)  # type: ignore[index]
        return plan

    def _say(self, found: PathChoice) -> None:
        late = found.path.gaps > self.tol * found.design.yy * (1 + 1e-12)
        if late.any():
            warnings.warn(
                f"{int(late.sum())} of {len(late)} penalties did not reach tol={self.tol} in "
                f"max_iter={self.max_iter} passes; raise max_iter or eps, or scale the columns",
                NotConverged,
                stacklevel=6,
            )


__all__ = ["PathChooser"]
