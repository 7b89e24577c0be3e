"""Paths of the lasso and the elastic net as functions."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.validation import check_X_y

from groundstate.learn.solvers.lasso.moments import designs_of, path_alphas
from groundstate.learn.solvers.lasso.path import alpha_max, solve_path
from groundstate.models.arrays import unwrap

F64 = NDArray[np.float64]


def enet_path(
    X: Any,
    y: Any,
    *,
    l1_ratio: float = 0.5,
    eps: float = 1e-3,
    alphas: int | Sequence[float] = 100,
    precompute: Any = "auto",
    coef_init: Any = None,
    return_n_iter: bool = False,
    positive: bool = False,
    tol: float = 1e-4,
    max_iter: int = 1000,
    sample_weight: Any = None,
    Xy: Any = None,
    copy_X: bool = True,
    verbose: Any = False,
    check_input: bool = True,
) -> Any:
    r"""Elastic-net weights along a path of strengths, strongest first, without an intercept.

    .. math:: \min_w \frac1{2n}\|y - Xw\|^2 + \alpha\bigl(\rho\|w\|_1 + \tfrac{1-\rho}2\|w\|^2\bigr)

    Parameters
    ----------
    X, y : rows ``(n, p)``, dense or sparse, and targets ``(n,)``; centre them for an intercept
    l1_ratio : ρ, above 0
    eps : smallest alpha, relative to the largest that matters
    alphas : how many, or the values themselves
    precompute : True or a Gram matrix for the whole of it, computed here, else by cost
    coef_init : ``(p,)`` weights to begin with
    return_n_iter : also give the passes over the working set
    positive : allow no weight below zero
    tol : duality gap at the end, relative to the mean square of y
    max_iter : passes at most, for every alpha
    sample_weight : ``(n,)``; a weight of 2 is the row twice
    Xy, copy_X, verbose, check_input : accepted for scikit-learn's sake

    Returns
    -------
    alphas : ``(n_alphas,)``
    coefs : ``(p, n_alphas)``
    dual_gaps : ``(n_alphas,)``
    n_iters : list, with ``return_n_iter``

    Examples
    --------
    >>> import numpy as np
    >>> X = np.eye(3)
    >>> alphas, coefs, gaps = enet_path(X, [3.0, 1.0, 0.0], l1_ratio=1.0, alphas=[0.5])
    >>> coefs.round(6).ravel().tolist()
    [1.5, 0.0, 0.0]
    """
    if not 0 < l1_ratio <= 1:
        raise ValueError(f"l1_ratio must be above 0 and at most 1, got {l1_ratio}; 0 is Ridge")
    X, y = check_X_y(
        unwrap(X)[0],
        unwrap(y)[0],
        accept_sparse="csc",
        dtype=[np.float64, np.float32],
        y_numeric=True,
    )
    rows = X if issparse(X) else torch.from_numpy(np.ascontiguousarray(X))
    target = torch.from_numpy(np.asarray(y, dtype=np.float64)[:, None].copy())
    weight = None
    if sample_weight is not None:
        weight = torch.from_numpy(np.asarray(sample_weight, dtype=np.float64))
    many = int(alphas) if isinstance(alphas, Integral) else len(alphas)  # type: ignore[arg-type]
    whole = True if np.ndim(precompute) == 2 else precompute
    design = designs_of(rows, target, weight, False, many, whole)[0]
    grid = (
        path_alphas(alpha_max(design, l1_ratio, positive), many, eps)
        if isinstance(alphas, Integral)
        else np.sort(np.asarray(alphas, float))[::-1]
    )
    found = solve_path(
        design, [(a * design.W * l1_ratio, a * design.W * (1 - l1_ratio)) for a in grid],
        tol=tol, max_iter=max_iter, positive=positive,
        start=None if coef_init is None else np.asarray(coef_init, float),
    )  # fmt: skip
    answer = grid, found.coefs, found.gaps / design.W
    return (*answer, found.epochs.tolist()) if return_n_iter else answer


def lasso_path(
    X: Any, y: Any, *, eps: float = 1e-3, alphas: int | Sequence[float] = 100, **settings: Any
) -> Any:
    r"""Lasso weights along a path: :func:`enet_path` with ``l1_ratio=1``.

    Examples
    --------
    >>> import numpy as np
    >>> alphas, coefs, gaps = lasso_path(np.eye(2), [2.0, 1.0], alphas=3)
    >>> alphas.round(4).tolist(), bool((coefs[:, 0] == 0).all())
    ([1.0, 0.0316, 0.001], True)
    """
    return enet_path(X, y, l1_ratio=1.0, eps=eps, alphas=alphas, **settings)
