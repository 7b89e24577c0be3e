r"""Dependence of any form between two columns, :math:`\max_{f, g}\mathrm{corr}(f(x), g(y))`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from groundstate.compute.random import Key
from groundstate.errors import ShapeError

F64 = NDArray[np.float64]
TOLERANCE = 1e-7  # of the largest singular value, below which a direction is rounding
CONSTANT = 1e-9  # spread of a wave of a row, below which there is none


class Dependence(NamedTuple):
    """The coefficient in [0, 1] and the p-value of independence."""

    coefficient: float
    p_value: float


def randomised_dependence(
    x: Any,
    y: Any,
    weight: Any = None,
    *,
    n_features: int = 20,
    scale: float = 1 / 6,
    random_state: Any = 0,
) -> Dependence:
    r"""The randomised dependence coefficient (Lopez-Paz et al. 2013): the largest canonical correlation of
    :math:`\sin(\tfrac sd[u, 1]W)` with :math:`u` the ranks of x, W normal, and the same of y.

    It does not change under rising maps of either, and is 0 in the limit exactly under independence. The
    p-value is Bartlett's, :math:`-(n - 1 - \tfrac{p + q + 1}2)\sum_i\log(1 - \rho_i^2) \sim \chi^2_{pq}`.

    Parameters
    ----------
    x, y : columns ``(n,)`` or tables ``(n, d)``, such as categories one-hot
    weight : of the rows; 2 is the row twice
    n_features : random waves of each
    scale : s, how bent they are
    random_state : of the waves

    Examples
    --------
    >>> x = np.linspace(-1, 1, 400)
    >>> found = randomised_dependence(x, np.cos(3 * x))
    >>> found.coefficient > 0.9, found.p_value < 1e-9
    (True, True)
    """
    tables = [np.asarray(v, np.float64).reshape(len(v), -1) for v in (x, y)]
    w = np.ones(len(tables[0])) if weight is None else np.asarray(weight, np.float64)
    if not len(tables[0]) == len(tables[1]) == len(w):
        raise ShapeError(f"x, y and weight need one row each, got {len(x)}, {len(y)} and {len(w)}")
    key = Key.of(random_state)
    first, second = (
        wave_directions(t, w, key.fold(name), n_features, scale) for t, name in zip(tables, "xy")
    )
    return dependence_of(first, second, float(w.sum()))


def wave_directions(
    table: F64, weight: F64, key: Key, n_features: int = 20, scale: float = 1 / 6
) -> F64:
    """Orthonormal directions of the random waves of a table's ranks, rows times the root of their weight."""
    ranks = np.stack(
        [weighted_ranks(column, weight) for column in table.T] + [np.ones(len(table))], 1
    )
    normal = key.numpy().normal(size=(ranks.shape[1], n_features))
    waves = np.sin(scale / ranks.shape[1] * ranks @ normal)
    waves = np.sqrt(weight)[:, None] * (waves - np.average(waves, axis=0, weights=weight))
    left, values, _ = np.linalg.svd(waves, full_matrices=False)
    least = max(TOLERANCE * values[0], CONSTANT * float(np.sqrt(weight.sum())))
    return np.asarray(left[:, values > least])


def dependence_of(first: F64, second: F64, n: float) -> Dependence:
    """Of the directions of two tables with the same n rows."""
    p, q = first.shape[1], second.shape[1]
    if not p or not q:
        return Dependence(0.0, 1.0)
    rho = np.linalg.svd(first.T @ second, compute_uv=False).clip(0, 1 - 1e-12)
    value = -max(n - 1 - (p + q + 1) / 2, 0.0) * float(np.log1p(-(rho**2)).sum())
    return Dependence(float(rho[0]), float(chi2.sf(value, p * q)))


def weighted_ranks(v: F64, weight: F64) -> F64:
    """The share of weight below each value, and half of that at it; a weight of 2 is the value twice.

    >>> weighted_ranks(np.array([3.0, 1.0, 3.0]), np.array([1.0, 2.0, 1.0])).tolist()
    [0.75, 0.25, 0.75]
    """
    _, index = np.unique(v, return_inverse=True)
    mass = np.bincount(index, weight)
    below = np.cumsum(mass) - mass
    return np.asarray(((below + mass / 2) / mass.sum())[index])
