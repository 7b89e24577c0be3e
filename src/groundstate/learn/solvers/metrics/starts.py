r"""Where a learned map begins: coordinates, principal or discriminant directions, chance."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.random import Key

F64 = NDArray[np.float64]
STARTS = ("auto", "pca", "lda", "identity", "random")


def first_map(init: Any, X: F64, y: NDArray[np.int64], w: F64, p: int, key: Key) -> F64:
    """The first J, ``(p, d)``.

    "auto" is as in scikit-learn: "lda" where there are classes enough for p directions, else "pca",
    and "identity" where p is d.
    """
    n, d = X.shape
    if not isinstance(init, str):
        return np.asarray(init, dtype=np.float64)
    classes = len(np.unique(y))
    if init == "auto":
        init = "lda" if p <= min(d, classes - 1) else "pca" if p < min(d, n) else "identity"
    if init == "identity":
        return np.eye(p, d)
    if init == "random":
        return key.fold("map").numpy().standard_normal((p, d))
    return principal(X, w, p) if init == "pca" else discriminant(X, y, w, p)


def principal(X: F64, w: F64, p: int) -> F64:
    """Orthonormal directions of largest variance, the entry of largest modulus positive, ``(p, d)``."""
    gap = X - w @ X / w.sum()
    _, vectors = np.linalg.eigh((gap * w[:, None]).T @ gap)
    return _upright(vectors[:, ::-1][:, :p].T)


def within(X: F64, y: NDArray[np.int64], w: F64) -> tuple[F64, F64]:
    """Scatter within the classes ``(d, d)``, and rows about the mean of their class."""
    gap = X.copy()
    for k in np.unique(y):
        mine = y == k
        gap[mine] -= w[mine] @ X[mine] / w[mine].sum()
    return (gap * w[:, None]).T @ gap, gap


def whitener(S: F64, rcond: float = 1e-12) -> F64:
    r"""J with :math:`JSJ^\top = I` on the directions in which S has any spread, ``(r, d)``."""
    values, vectors = np.linalg.eigh(S)
    keep = values > rcond * max(values[-1], np.finfo(float).tiny)
    return (vectors[:, keep] / np.sqrt(values[keep])).T


def discriminant(X: F64, y: NDArray[np.int64], w: F64, p: int) -> F64:
    """Directions in which the means of classes differ most, in units of the spread within, ``(p, d)``."""
    S, gap = within(X, y, w)
    W = whitener(S / w.sum())
    total = X - w @ X / w.sum()
    means = (total - gap) @ W.T  # of its class, for every row
    _, vectors = np.linalg.eigh((means * w[:, None]).T @ means)
    J = _upright(vectors[:, ::-1][:, :p].T @ W)
    return J if len(J) == p else np.vstack([J, np.zeros((p - len(J), X.shape[1]))])


def _upright(J: F64) -> F64:
    peak = np.take_along_axis(J, np.abs(J).argmax(1)[:, None], 1)
    return J * np.where(peak < 0, -1.0, 1.0)
