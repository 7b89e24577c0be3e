r"""Whether classes can be told apart by planes without a mistake.

Classes are separable when some W, b have :math:`(W\tilde x_i)_{y_i} - (W\tilde x_i)_k \ge 1` for all rows i
and all :math:`k \ne y_i`: a linear programme without objective.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_matrix, hstack, issparse, vstack

from groundstate.errors import DataError, ShapeError


def is_separable(X: Any, y: Any, *, fit_intercept: bool = True) -> bool:
    r"""Whether planes separate the classes: :math:`y_i f(x_i) \ge 1` has a solution.

    On such rows logistic regression without a penalty has no finite optimum.

    Parameters
    ----------
    X : ``(n, p)`` array or sparse matrix
    y : ``(n,)`` labels
    fit_intercept : whether the planes may miss the origin

    Examples
    --------
    >>> is_separable([[-1.0], [0.0], [1.0], [2.0]], [0, 0, 1, 1])
    True
    >>> is_separable([[-1.0], [0.0], [1.0], [2.0]], [0, 1, 0, 1])
    False
    """
    rows = csr_matrix(X, dtype=np.float64) if issparse(X) else np.asarray(X, dtype=np.float64)
    labels = np.asarray(y)
    if rows.ndim != 2 or labels.shape != (rows.shape[0],):
        raise ShapeError(f"X must be (n, p) and y (n,), got {rows.shape} and {labels.shape}")
    if rows.shape[0] == 0:
        raise DataError("there are no rows to separate")
    classes, index = np.unique(labels, return_inverse=True)
    k = len(classes)
    if k < 2:
        return True
    if fit_intercept:
        ones = np.ones((rows.shape[0], 1))
        rows = hstack([rows, ones]).tocsr() if issparse(rows) else np.hstack([rows, ones])
    sparse = csr_matrix(rows)
    if k == 2:
        signs = np.where(index == 1, 1.0, -1.0)
        A = sparse.multiply(-signs[:, None])
    else:
        A = vstack([_against(sparse, index, other, k) for other in range(k)])
    bound = -np.ones(A.shape[0])
    found = linprog(np.zeros(A.shape[1]), A_ub=A, b_ub=bound, bounds=(None, None), method="highs")
    return bool(found.status == 0)


def _against(rows: csr_matrix, index: Any, other: int, k: int) -> csr_matrix:
    """−(w_y − w_other)ᵀx of the rows of other classes, over the weights of all classes."""
    mine = np.flatnonzero(index != other)
    part = rows[mine]
    blocks = []
    for c in range(k):
        factor = np.where(index[mine] == c, -1.0, 0.0) if c != other else np.ones(len(mine))
        blocks.append(part.multiply(factor[:, None]))
    return hstack(blocks).tocsr()
