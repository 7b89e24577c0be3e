r"""Interpolation with more parameters than rows: of all solutions, the one gradient descent finds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from groundstate.errors import DataError

F64 = NDArray[np.float64]


def min_norm_solution(X: ArrayLike, y: ArrayLike, start: ArrayLike | None = None) -> F64:
    r"""The least-squares solution nearest to a start,
    :math:`\theta = X^+y + (I - X^+X)\theta_0`; of least norm from zero.

    Gradient descent on :math:`\|X\theta - y\|^2` moves within the row space of X only, so that is
    where it ends.

    Parameters
    ----------
    X : ``(n, p)``
    y : ``(n,)`` or ``(n, m)``
    start : :math:`\theta_0`, ``(p,)`` or ``(p, m)``; None is zero

    Examples
    --------
    >>> min_norm_solution([[1.0, 1.0]], [2.0]).round(12).tolist()
    [1.0, 1.0]
    >>> min_norm_solution([[1.0, 1.0]], [2.0], start=[1.0, 0.0]).round(12).tolist()
    [1.5, 0.5]
    """
    A, b = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if A.ndim != 2 or b.shape[:1] != A.shape[:1]:
        raise DataError(f"X (n, p) and y (n,) are needed, got shapes {A.shape} and {b.shape}")
    if not (np.isfinite(A).all() and np.isfinite(b).all()):
        raise DataError("X or y holds NaN or infinity; impute or drop such rows")
    theta0 = np.zeros((A.shape[1], *b.shape[1:])) if start is None else np.asarray(start, float)
    if theta0.shape != (A.shape[1], *b.shape[1:]):
        raise DataError(f"start must have shape {(A.shape[1], *b.shape[1:])}, got {theta0.shape}")
    step = np.linalg.lstsq(A, b - A @ theta0, rcond=None)[0]
    return np.asarray(theta0 + step, dtype=np.float64)


def solution_norm(parameters: ArrayLike | Iterable[ArrayLike]) -> float:
    r"""The Euclidean norm :math:`\|\theta\|` of all parameters together.

    Examples
    --------
    >>> solution_norm([[3.0], [4.0]])
    5.0
    """
    if isinstance(parameters, np.ndarray):
        return float(np.linalg.norm(parameters))
    squares = [float(np.square(np.asarray(p, dtype=np.float64)).sum()) for p in parameters]  # type: ignore[union-attr]
    return float(np.sqrt(sum(squares)))


def interpolation_threshold(
    sizes: Sequence[int], train_error: ArrayLike, tol: float = 1e-10
) -> int | None:
    """The least number of parameters from which on the training rows are fitted exactly.

    Parameters
    ----------
    sizes : numbers of parameters, ascending
    train_error : error on the training rows of each
    tol : what counts as exact

    Returns
    -------
    int, or None where the last size still errs. For linear models with one output in general
    position it is the number of rows.

    Examples
    --------
    >>> interpolation_threshold([10, 20, 40, 80], [0.5, 0.2, 1e-20, 1e-25])
    40
    """
    exact = np.asarray(train_error, dtype=float) <= tol
    if len(exact) != len(sizes):
        raise DataError(f"there are {len(sizes)} sizes but {len(exact)} errors")
    wrong = np.flatnonzero(~exact)
    first = 0 if not len(wrong) else int(wrong[-1]) + 1
    return int(sizes[first]) if first < len(sizes) else None
