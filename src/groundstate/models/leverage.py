r"""Leverages of fits that are linear in y: the diagonal of S in :math:`\hat y = Sy`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.errors import NotApplicable

Floats = NDArray[np.float64]


def least_squares_leverage(model: Any, X: Any) -> Floats:
    """Of least squares, penalised or not, from a thin SVD."""
    get = model.get_params()
    if get.get("positive") or np.ndim(get.get("alpha") or 0) > 0:
        raise NotApplicable("signs or strengths of their own make weights not linear in y")
    A = np.asarray(X.toarray() if hasattr(X, "toarray") else X, np.float64)
    centre = bool(get["fit_intercept"])
    A = A - A.mean(0) if centre else A
    U, s, _ = np.linalg.svd(A, full_matrices=False)
    alpha = float(get.get("alpha") or 0.0)
    keep = s > max(A.shape) * np.finfo(float).eps * s.max(initial=0)
    fraction = np.where(keep, s**2 / np.where(keep | (alpha > 0), s**2 + alpha, 1.0), 0.0)
    return np.einsum("ij,j,ij->i", U, fraction, U) + (1 / len(A) if centre else 0.0)


def unit_leverage(model: Any, X: Any) -> Floats:
    """From the answers to every unit vector as target."""
    from sklearn.base import clone

    if np.ndim(model.alpha) > 0:
        raise NotApplicable("a strength for each target has no unit vectors to learn from")
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    return np.diag(np.asarray(clone(model).fit(X, np.eye(n)).predict(X), np.float64)).copy()


def spline_leverage(model: Any, X: Any) -> Floats:
    r"""Diagonal of :math:`(I + \lambda QR^{-1}Q^\top)^{-1}` (Green and Silverman)."""
    x = np.asarray(X, np.float64)
    if model.lam is None or x.shape[1] != 1 or len(np.unique(x)) < len(x):
        raise NotApplicable("λ must be given, and one column of different values")
    x, n = x[:, 0], len(x)
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


def process_leverage(model: Any, X: Any) -> Floats:
    """Of the mean of a Gaussian process at its learned kernel."""
    if model.normalize_y or np.ndim(model.alpha) > 0:
        raise NotApplicable("a target in units of its own spread is not linear in y")
    import torch

    rows = torch.as_tensor(np.asarray(X, np.float64))
    K = model.kernel_(rows, rows).detach().numpy().astype(np.float64)
    noisy = K + float(model.alpha) * np.eye(len(K))
    return np.einsum("ij,ji->i", K, np.linalg.inv(noisy))
