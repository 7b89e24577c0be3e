r"""Domain adaptation: same columns, another distribution of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.errors import ShapeError
from groundstate.models.linear.logistic.logistic_regression import LogisticRegression

Floats = NDArray[np.float64]


def importance_weights(source: Any, target: Any, *, C: float = 1.0, clip: float = 20.0) -> Floats:
    r"""Weights :math:`w_i \propto p_{target}(x_i)/p_{source}(x_i)` of the source rows.

    A logistic regression tells target from source rows; its odds, corrected for the sizes of the two
    tables, are the ratio. Learning with these weights is learning on the target's distribution where
    the source has rows.

    Parameters
    ----------
    source, target : rows ``(n, d)`` and ``(m, d)``
    C : inverse strength of the penalty of the logistic regression
    clip : largest weight; the mean of the weights is 1

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> w = importance_weights(rng.normal(size=(500, 1)), rng.normal(1.0, 1.0, size=(500, 1)))
    >>> round(float(w.mean()), 6), w.shape
    (1.0, (500,))
    """
    a, b = _both(source, target)
    model = LogisticRegression(C=C)
    model.fit(np.vstack([a, b]), np.r_[np.zeros(len(a), int), np.ones(len(b), int)])
    odds = np.exp(np.asarray(model.decision_function(a))) * len(a) / len(b)
    odds = np.minimum(odds, clip)
    weights: Floats = odds / odds.mean()
    return weights


def coral(source: Any, target: Any, *, ridge: float = 1e-6, means: bool = True) -> Floats:
    r"""Source rows with the covariance of the target,
    :math:`\tilde x = (x - \mu_s)\,C_s^{-1/2}C_t^{1/2} + \mu_t`.

    Parameters
    ----------
    source, target : rows ``(n, d)`` and ``(m, d)``
    ridge : added to both covariances, as a share of their mean variance
    means : whether the mean moves too

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> s, t = rng.normal(size=(400, 2)), rng.normal(size=(400, 2)) @ np.array([[2.0, 1.0], [0.0, 1.0]])
    >>> bool(np.allclose(np.cov(coral(s, t).T), np.cov(t.T), rtol=1e-3))
    True
    """
    a, b = _both(source, target)
    parts = []
    for rows, power in ((a, -0.5), (b, 0.5)):
        cov = np.atleast_2d(np.cov(rows.T))
        cov += ridge * max(float(np.trace(cov)) / len(cov), 1e-300) * np.eye(len(cov))
        value, vector = np.linalg.eigh(cov)
        parts.append((vector * value**power) @ vector.T)
    centre = a.mean(0)
    moved: Floats = (a - centre) @ parts[0] @ parts[1] + (b.mean(0) if means else centre)
    return moved


def _both(source: Any, target: Any) -> tuple[Floats, Floats]:
    a, b = np.asarray(source, np.float64), np.asarray(target, np.float64)
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1]:
        raise ShapeError(
            f"domain adaptation compares tables with the same columns, got {a.shape} and {b.shape}; "
            "for other columns train a new network or transfer a part of one"
        )
    return a, b
