r"""Is a relation straight? A line against a natural cubic spline."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.errors import DataError
from groundstate.math.stats.anova import nested_f_test
from groundstate.math.stats.result import TestResult


def natural_spline(x: NDArray[Any], knots: NDArray[Any]) -> NDArray[np.float64]:
    r"""Columns that, with 1, span the cubic splines that are straight outside the knots.

    The first column is x; the others are :math:`d_j - d_{K-1}` with
    :math:`d_j(x) = \{(x - t_j)_+^3 - (x - t_K)_+^3\}/(t_K - t_j)`.

    Parameters
    ----------
    x : ``(n,)``
    knots : ``(K,)``, increasing

    Returns
    -------
    ``(n, K - 1)``

    Examples
    --------
    >>> basis = natural_spline(np.array([0.0, 1.0, 5.0, 6.0, 7.0]), np.array([1.0, 2.0, 4.0]))
    >>> basis.shape, np.allclose(np.diff(basis[2:], n=2, axis=0), 0)  # straight beyond 4
    ((5, 2), True)
    """
    x, knots = np.asarray(x, np.float64), np.asarray(knots, np.float64)
    if len(knots) < 3 or not (np.diff(knots) > 0).all():
        raise DataError(f"a natural spline needs at least 3 increasing knots, got {knots.tolist()}")
    width = knots[-1] - knots[0]
    u, t = (x - knots[0]) / width, (knots - knots[0]) / width  # units do not matter
    last = np.clip(u - t[-1], 0, None) ** 3
    d = [(np.clip(u - a, 0, None) ** 3 - last) / (t[-1] - a) for a in t[:-1]]
    return np.column_stack([x, *(column - d[-1] for column in d[:-1])])


def linearity_test(x: Any, y: Any, n_knots: int = 5) -> TestResult:
    r"""F test of a straight line against a natural cubic spline of x.

    :math:`F = \frac{(\mathrm{SSE}_1-\mathrm{SSE}_2)/(k_2-k_1)}{\mathrm{SSE}_2/(n-k_2)}` with
    :math:`k_1 = 2` and :math:`k_2 = K`; knots at the quantiles 0.05 … 0.95. Under a straight line
    with Gaussian noise p is uniform.

    Parameters
    ----------
    x, y : ``(n,)``
    n_knots : K

    Examples
    --------
    >>> x = np.linspace(0, 1, 50)
    >>> noise = np.random.default_rng(1).normal(size=50)
    >>> straight, curved = linearity_test(x, x + noise / 9), linearity_test(x, x**2 + noise / 99)
    >>> straight.pvalue > 0.05, curved.pvalue < 1e-6
    (True, True)
    """
    x, y = np.asarray(x, np.float64).reshape(-1), np.asarray(y, np.float64).reshape(-1)
    if len(x) != len(y):
        raise DataError(f"x and y need the same length, got {len(x)} and {len(y)}")
    if n_knots < 3:
        raise DataError(f"n_knots must be at least 3, got {n_knots}")
    knots = np.unique(np.quantile(x, np.linspace(0.05, 0.95, n_knots)))
    distinct = min(len(knots), len(np.unique(x)))
    if distinct < 3:
        raise DataError(f"x has too few distinct values for a curve: {distinct}, 3 are needed")
    ones = np.ones(len(x))
    curve = natural_spline(x, knots)
    fits = [_left(np.column_stack([ones, part]), y) for part in (curve[:, :1], curve)]
    return nested_f_test(*fits[0], *fits[1])


def _left(design: NDArray[Any], y: NDArray[Any]) -> tuple[float, float]:
    """Squared residuals of the best combination of columns, and their degrees of freedom."""
    found, _, rank, _ = np.linalg.lstsq(design, y, rcond=None)
    left = y - design @ found
    return float(left @ left), float(len(y) - int(rank))
