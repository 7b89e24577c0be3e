"""Ridge regression with its strength chosen by leave-one-out or cross-validation."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import check_scoring
from torch import Tensor

from groundstate.compute.foreign.sklearn import StrOptions
from groundstate.energy.basic import SquaredEnergy
from groundstate.learn import L2, LeastSquares, Naive
from groundstate.learn.solvers.linear.least_squares import OutputL2
from groundstate.learn.solvers.linear.ridge_loo import RidgePath
from groundstate.models import settings
from groundstate.models.base import Plan
from groundstate.models.linear.coefficients import output_part
from groundstate.models.linear.fold_weights import fold_weights
from groundstate.models.roles import EnergyRegressor
from groundstate.models.traits import Traits
from groundstate.registry import models


class _Predicted(RegressorMixin, BaseEstimator):
    """A regressor that predicts what it is given, for scorers."""

    def fit(self, X: Any, y: Any) -> _Predicted:
        return self

    def predict(self, X: Any) -> Any:
        return X


@models.register(family="linear", task="regression", role="regressor")
class RidgeCV(EnergyRegressor):
    r"""Ridge regression whose strength predicts rows that were left out best.

    .. math::
        e(x, y) = \tfrac12\|y - Wx - b\|^2, \qquad
        \hat\alpha = \arg\min_\alpha \sum_i w_i\Bigl(\frac{y_i - \hat y_i}{1 - h_i}\Bigr)^2 .

    One eigendecomposition serves all strengths; :math:`h_i` is the leverage of a row, so that every
    row is left out once without fitting again. Of a row of weight w one of w rows is left out. Sparse
    rows are accepted; their leverages need them dense.

    Parameters
    ----------
    alphas : array of floats, default=(0.1, 1.0, 10.0)
        Strengths to choose from; see ``Ridge``.
    scoring : str or callable, default=None
        What to maximise; None is minus the squared error when rows are left out one by one, and
        R² with ``cv``.
    cv : int, splitter, iterable or None, default=None
        How many folds of rows in their order, as in scikit-learn, a splitter, or pairs of indices; None
        leaves out one row at a time, exactly.
    gcv_mode : {"auto", "svd", "eigen"} or None, default=None
        Accepted for scikit-learn's sake; the smaller side is always decomposed.
    store_cv_results : bool, default=False
        Keep ``cv_results_``; only with ``cv=None``.
    alpha_per_target : bool, default=False
        Choose a strength for every target on its own; only with ``cv=None``.

    Attributes
    ----------
    alpha_, best_score_ : float, or (n_targets,) with ``alpha_per_target``
    cv_results_ : (n_samples, n_alphas) or (n_samples, n_targets, n_alphas) array
        Squared errors of left-out rows, or their predictions where ``scoring`` is given.
    coef_ : (n_features,) or (n_targets, n_features)
    intercept_ : float or (n_targets,)
    energy_ : SquaredEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import RidgeCV
    >>> model = RidgeCV(alphas=[1.0]).fit(np.arange(4.0)[:, None], [1.0, 2.0, 2.0, 4.0])
    >>> round(-model.best_score_, 6)
    0.924644
    """

    traits = Traits(space={"fit_intercept": settings.Choice(True, False)})

    _accept_sparse: ClassVar[bool | str] = "csr"
    alpha_: Any
    best_score_: Any
    _column_is_flat: ClassVar[bool] = True
    coef_ = output_part("W")
    intercept_ = output_part("b")
    _runs_on: Any = "answers"  # folds and leave-one-out are computed on the CPU
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alphas": ["array-like", float, int],
        "scoring": [str, callable, None],
        "gcv_mode": [StrOptions({"auto", "svd", "eigen"}), None],
        "store_cv_results": ["boolean"],
        "alpha_per_target": ["boolean"],
    }

    def __init__(
        self,
        alphas: Any = (0.1, 1.0, 10.0),
        *,
        fit_intercept: bool = True,
        scoring: Any = None,
        cv: Any = None,
        gcv_mode: Any = None,
        store_cv_results: bool = False,
        alpha_per_target: bool = False,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        assert y is not None
        alphas = np.atleast_1d(np.asarray(self.alphas, dtype=np.float64))
        if not len(alphas) or (alphas < 0).any():
            raise ValueError(f"alphas must be at least one number, none below 0, got {self.alphas}")
        for name in ("store_cv_results", "alpha_per_target"):
            if self.cv is not None and getattr(self, name):
                raise ValueError(f"cv!=None and {name}=True are incompatible")
        score = self._left_out if self.cv is None else self._folds
        rows = X.to_dense() if X.layout == torch.sparse_csr else X  # their leverages are dense
        scores = np.asarray(score(rows, y, weight, alphas))  # (A,) or (m, A)
        best, top = alphas[scores.argmax(-1)], scores.max(-1)
        several = scores.ndim > 1
        self.alpha_, self.best_score_ = (best, top) if several else (float(best), float(top))
        penalty: L2 | None = L2(float(best)) if not several and best > 0 else None
        if several and best.any():
            penalty = OutputL2(torch.as_tensor(best, dtype=X.dtype, device=X.device))
        energy = SquaredEnergy(X.shape[1], y.shape[1], bias=self.fit_intercept)
        return Plan(energy=energy, rule=Naive(), solver=LeastSquares(), penalty=penalty)

    def _left_out(
        self, X: Tensor, y: Tensor, weight: Tensor | None, alphas: np.ndarray
    ) -> np.ndarray:
        path = RidgePath(X, y, weight, self.fit_intercept)
        errors = path.each_left_out(alphas.tolist())  # (n, m, alphas)
        predicted: Any = None
        if self.scoring is not None:
            predicted = (y.double()[:, :, None] - errors).cpu().numpy()
        wrong = errors.square()
        if self.store_cv_results:
            kept = wrong.cpu().numpy() if self.scoring is None else predicted
            self.cv_results_ = kept[:, 0] if self._flat_target else kept
        each = self.alpha_per_target and not self._flat_target
        if self.scoring is None:
            share = path.w / path.w.sum()
            mean = -torch.einsum("n,nma->ma", share, wrong).cpu().numpy()
            return mean if each else mean.mean(0)
        many = range(len(alphas))
        if not each:
            return np.array([self._score(predicted[:, :, a], y, weight) for a in many])
        one = [
            [self._score(predicted[:, [m], a], y[:, [m]], weight) for a in many]
            for m in range(y.shape[1])
        ]
        return np.array(one)

    def _folds(self, X: Tensor, y: Tensor, weight: Tensor | None, alphas: np.ndarray) -> np.ndarray:
        scores = []
        for both in zip(*fold_weights(X, y, weight, self.cv, False), strict=True):
            train, held = (torch.from_numpy(np.flatnonzero(side)).to(X.device) for side in both)
            w = None if weight is None else weight[train]
            path = RidgePath(X[train], y[train], w, self.fit_intercept)
            W, b = path.solutions(alphas.tolist())
            predicted = (X[held].double() @ W + b[:, None]).cpu().numpy()  # (alphas, held, m)
            own = None if weight is None else weight[held]
            scores.append([self._score(one, y[held], own) for one in predicted])
        return np.mean(scores, 0)

    def _score(self, predicted: np.ndarray, y: Tensor, weight: Tensor | None) -> float:
        scorer = check_scoring(_Predicted(), scoring=self.scoring or "r2")
        true = y.double().cpu().numpy()
        if self._flat_target:
            predicted, true = predicted[:, 0], true[:, 0]
        extra = {} if weight is None else {"sample_weight": weight.cpu().numpy()}
        return float(scorer(_Predicted(), predicted, true, **extra))
