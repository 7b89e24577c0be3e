r"""The matrix S of a fit that is linear in y, :math:`\hat y = Sy`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.evaluate.rows import n_rows
from groundstate.models.traits import last_step, traits_of

Floats = NDArray[np.float64]


def smoother_matrix(estimator: Any, X: Any, points: Any) -> Floats | None:
    r"""S with :math:`\hat f(\text{points}) = S y` for every y, or None where a fit is not linear.

    Models that declare it (linear regression, ridge, kernel ridge), alone or after steps that do not
    look at y: one fit to the unit vectors, checked against a fit to another target.

    Returns
    -------
    ``(m, n)`` or None

    Examples
    --------
    >>> from groundstate import LinearRegression
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> round(float(smoother_matrix(LinearRegression(), X, X).trace()), 6)
    2.0
    """
    from sklearn.base import clone
    from sklearn.utils import get_tags

    last = last_step(estimator)
    if not traits_of(last).linear_in_y or getattr(last, "positive", False):
        return None
    n = n_rows(X)
    if get_tags(last).target_tags.multi_output:
        S = np.asarray(clone(estimator).fit(X, np.eye(n)).predict(points), np.float64)
    else:
        each = [clone(estimator).fit(X, row).predict(points) for row in np.eye(n)]
        S = np.stack([np.asarray(v, np.float64).reshape(-1) for v in each], 1)
    probe = np.cos(np.arange(n, dtype=np.float64) ** 2)
    predicted = np.asarray(clone(estimator).fit(X, probe).predict(points), np.float64).reshape(-1)
    if S.shape != (n_rows(points), n) or not np.allclose(
        S @ probe, predicted, rtol=1e-5, atol=1e-7
    ):
        return None
    return S
