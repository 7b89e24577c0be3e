"""What the cross-validated lasso and elastic net have in common."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.model_selection import check_cv
from sklearn.utils import Tags
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.compute.weight_line.line import WeightLine
from groundstate.errors import NotConverged
from groundstate.learn.solvers.lasso.coordinate_descent import columns_of
from groundstate.learn.solvers.lasso.cv import PathChoice, choose_penalty
from groundstate.models.base import Plan
from groundstate.models.linear.sparse_linear import SparseLinearRegressor

FOLDS = 5


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
        found = choose_penalty(
            columns_of(X), y, weight, self._folds(X, y, weight), ratios=ratios, alphas=alphas,
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

    def _folds(self, X: Tensor, y: Tensor, weight: Tensor | None) -> list[tuple[Any, Any]]:
        """Training and held-out weights of every fold."""
        n = X.shape[0]
        w = np.ones(n) if weight is None else weight.double().numpy()
        if self.cv is None or isinstance(self.cv, Integral):
            rows = X.to_dense() if X.layout == torch.sparse_csr else X
            line = WeightLine.of(rows.numpy(), y.numpy(), weights=None if weight is None else w)
            live = int(np.count_nonzero(w)) and line.n_distinct
            if live < 2:
                raise ValueError(
                    f"{type(self).__name__} needs at least 2 different rows to hold some out, got "
                    f"n_samples = {n} with {live} different"
                )
            k = min(FOLDS, live) if self.cv is None else int(self.cv)
            key = Key.of(0 if self.random_state is None else self.random_state)
            train = line.folds(key.fold("folds"), k)
            return [(t, w - t) for t in train]
        pairs = []
        for train, held in check_cv(self.cv).split(np.zeros((n, 1)), y.numpy()[:, 0]):
            left, right = np.zeros(n), np.zeros(n)
            left[train], right[held] = w[train], w[held]
            pairs.append((left, right))
        return pairs


__all__ = ["PathChooser"]
