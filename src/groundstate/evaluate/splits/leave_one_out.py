r"""Leave-one-out from one fit, for models whose fit is linear in y.

With :math:`\hat y = Sy` the prediction of row i without row i is off by
:math:`e_i/(1 - S_{ii})`, exactly, so n fits are one.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.errors import DataError, Unreliable
from groundstate.evaluate.intervals.scores import Scores

Floats = NDArray[np.float64]
_MANY = 1000


@dataclass(frozen=True)
class LeaveOneOut:
    r"""What leaving each row out once found.

    Attributes
    ----------
    errors : (n,)
        Truth minus the prediction without that row.
    predictions : (n,)
    mse : float
        Mean squared error of them.
    train_mse : float
        Of the fit on its own rows.
    gcv : float or None
        Generalised cross-validation, :math:`\frac1n\sum e_i^2/(1-\mathrm{tr}S/n)^2`.
    leverage : (n,) or None
        :math:`S_{ii}`.
    method : ``"exact"`` from one fit, or ``"refits"``
    """

    errors: Floats = field(repr=False)
    predictions: Floats = field(repr=False)
    mse: float
    train_mse: float
    gcv: float | None
    leverage: Floats | None = field(repr=False)
    method: str

    @property
    def scores(self) -> Scores:
        """Squared errors, one per row."""
        return Scores(self.errors**2, ("test",), "squared error", greater_is_better=False)

    def __str__(self) -> str:
        return str(self.scores)


def loo(estimator: Any, X: Any, y: Any) -> LeaveOneOut:
    """Leave-one-out errors of a regressor: exact from one fit where it is linear in y.

    Ordinary least squares, ridge, kernel ridge, the mean of a Gaussian process (at its learned
    kernel) and smoothing splines of given λ take the short way; all others are fitted n times, with a warning
    above 1,000 rows. Nearest neighbours are not linear smoothers of the right kind: the short way
    would score k − 1 neighbours.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> found = loo(LinearRegression(), [[1], [2], [3], [4]], [1, 2, 2, 4])
    >>> round(found.mse, 6), round(found.train_mse, 6), round(found.gcv, 6)
    (0.74263, 0.175, 0.7)
    """
    from sklearn.base import clone

    target = np.asarray(y, np.float64)
    if target.ndim != 1 or len(target) < 3:
        raise DataError(f"leave-one-out needs one number per row, three rows, got {target.shape}")
    smooth = _SMOOTHERS.get(type(estimator).__name__)
    if smooth is not None and not _plain(estimator, X):
        smooth = None
    if smooth is None:
        return _refits(estimator, X, target)
    model = clone(estimator).fit(X, target)
    left = target - np.asarray(model.predict(X), np.float64).reshape(-1)
    leverage = smooth(model, X, len(target))
    if (leverage > 1 - 1e-10).any():
        return _refits(estimator, X, target)  # a row that only itself explains
    errors = left / (1 - leverage)
    shrunk = 1 - float(leverage.sum()) / len(target)
    train = float(np.square(left).mean())
    return LeaveOneOut(errors, target - errors, float(np.square(errors).mean()), train,
                       train / shrunk**2, leverage, "exact")  # fmt: skip


def _plain(estimator: Any, X: Any) -> bool:
    """Whether the settings keep the fit linear in y."""
    get = estimator.get_params()
    if "lam" in get:  # a spline: λ given, and one column of different values
        return get["lam"] is not None and np.shape(X)[1] == 1 and len(np.unique(X)) == len(X)
    return not (get.get("positive") or get.get("normalize_y") or np.ndim(get.get("alpha") or 0) > 0)


def _linear(model: Any, X: Any, n: int) -> Floats:
    """Leverages of least squares, penalised or not, from a thin SVD."""
    A = np.asarray(X.toarray() if hasattr(X, "toarray") else X, np.float64)
    centre = bool(model.get_params().get("fit_intercept", True))
    A = A - A.mean(0) if centre else A
    U, s, _ = np.linalg.svd(A, full_matrices=False)
    alpha = float(model.get_params().get("alpha") or 0.0)
    keep = s > max(A.shape) * np.finfo(float).eps * s.max(initial=0)
    share = np.where(keep, s**2 / np.where(keep | (alpha > 0), s**2 + alpha, 1.0), 0.0)
    return np.einsum("ij,j,ij->i", U, share, U) + (1 / n if centre else 0.0)


def _columns(model: Any, X: Any, n: int) -> Floats:
    """Leverages from the answers to every unit vector as target."""
    from sklearn.base import clone

    return np.diag(np.asarray(clone(model).fit(X, np.eye(n)).predict(X), np.float64)).copy()


def _spline(model: Any, X: Any, n: int) -> Floats:
    r"""Diagonal of :math:`(I + \lambda QR^{-1}Q^\top)^{-1}` (Green and Silverman)."""
    x = np.asarray(X, np.float64).reshape(-1)
    order = np.argsort(x)
    h = np.diff(x[order])
    Q, R = np.zeros((n, n - 2)), np.zeros((n - 2, n - 2))
    i = np.arange(n - 2)
    Q[i, i], Q[i + 2, i] = 1 / h[:-1], 1 / h[1:]
    Q[i + 1, i] = -Q[i, i] - Q[i + 2, i]
    R[i, i] = (h[:-1] + h[1:]) / 3
    R[i[1:], i[:-1]] = R[i[:-1], i[1:]] = h[1:-1] / 6
    K = Q @ np.linalg.solve(R, Q.T)
    out = np.empty(n)
    out[order] = np.diag(np.linalg.inv(np.eye(n) + float(model.lam) * K))
    return out


def _process(model: Any, X: Any, n: int) -> Floats:
    kernel = model.kernel_
    rows = np.asarray(X, np.float64)
    try:
        K = np.asarray(kernel(rows), np.float64)
    except TypeError:
        import torch

        at = torch.as_tensor(rows)
        K = kernel(at, at).detach().numpy().astype(np.float64)
    A = K + float(model.alpha) * np.eye(n)
    # scikit-learn's white noise is on the diagonal of kernel(X), not in kernel(X, X)
    try:
        cross = np.asarray(kernel(rows, rows), np.float64)
    except TypeError:
        cross = K
    return np.einsum("ij,ji->i", cross, np.linalg.inv(A))


_SMOOTHERS: dict[str, Any] = {
    "LinearRegression": _linear,
    "Ridge": _linear,
    "KernelRidge": _columns,
    "GaussianProcessRegressor": _process,
    "SmoothingSplineRegressor": _spline,
}


def _refits(estimator: Any, X: Any, y: Floats) -> LeaveOneOut:
    from sklearn.base import clone
    from sklearn.model_selection import LeaveOneOut as Splitter
    from sklearn.model_selection import cross_val_predict

    if len(y) > _MANY:
        warnings.warn(
            f"{type(estimator).__name__} has no short way, so it is fitted {len(y)} times; "
            "cross_validate(cv=10) is nearly as good",
            Unreliable,
            stacklevel=3,
        )
    said = np.asarray(cross_val_predict(estimator, X, y, cv=Splitter()), np.float64).reshape(-1)
    own = np.asarray(clone(estimator).fit(X, y).predict(X), np.float64).reshape(-1)
    errors = y - said
    return LeaveOneOut(errors, said, float(np.square(errors).mean()),
                       float(np.square(y - own).mean()), None, None, "refits")  # fmt: skip


__all__ = ["LeaveOneOut", "loo"]
