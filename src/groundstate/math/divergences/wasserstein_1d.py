r"""Wasserstein distances that sorting solves: on the line, and sliced.

.. math:: W_p^p = \int_0^1 |F^{-1}(t) - G^{-1}(t)|^p\,dt

The monotone coupling, smallest to smallest, is optimal for every p ≥ 1.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from groundstate.compute.random import Key, RandomState
from groundstate.errors import ShapeError
from groundstate.math.arrays import as_tensor, takes_arrays
from groundstate.math.divergences.quadrature import unit_interval
from groundstate.math.info.entropy import pair
from groundstate.math.transport.line import power_cost, root

_NODES = 4001
_CELLS = 1 << 24  # numbers projected at a time


def wasserstein_1d(
    x: Any, y: Any, p: float = 1, x_weights: Any = None, y_weights: Any = None
) -> Any:
    r""":math:`W_p = \big(\int_0^1 |F^{-1}-G^{-1}|^p dt\big)^{1/p}` of two samples on the line.

    Parameters
    ----------
    x, y : values ``(..., n)`` and ``(..., m)``; or two torch distributions with ``icdf``
    p : exponent, at least 1
    x_weights, y_weights : weights of the values, equal unless given; divided by their sums

    Examples
    --------
    >>> grid = [0, 1, 2, 3, 4]
    >>> round(wasserstein_1d(grid, grid, 2, [5, 4, 3, 2, 1], [1, 5, 4, 3, 2]), 6)
    0.816497
    >>> from torch.distributions import Normal
    >>> round(float(wasserstein_1d(Normal(0.0, 1.0), Normal(3.0, 2.0), 2)) ** 2, 3)
    10.0
    """
    if not 1 <= p < math.inf:
        raise ValueError(f"p must be a number of at least 1, got {p!r}")
    if pair(x, y):
        t, w = unit_interval(_NODES, x.icdf(torch.tensor(0.5)))
        shape = torch.broadcast_shapes(x.batch_shape, y.batch_shape)
        t, w = (v.reshape(-1, *(1,) * len(shape)) for v in (t, w))
        each = (x.icdf(t) - y.icdf(t)).abs() ** p
        return root((w * each).sum(0), p)
    return _samples(x, y, x_weights, y_weights, p)


@takes_arrays("x", "y", "x_weights", "y_weights")
def _samples(x: Any, y: Any, x_weights: Any, y_weights: Any, p: float) -> Any:
    return root(power_cost(x, y, p, x_weights, y_weights), p)


@takes_arrays("X", "Y", "x_weights", "y_weights")
def sliced_wasserstein(
    X: Any,
    Y: Any,
    n_projections: int = 128,
    p: float = 2,
    x_weights: Any = None,
    y_weights: Any = None,
    *,
    projections: Any = None,
    random_state: RandomState = None,
) -> Any:
    r""":math:`SW_p = \big(\tfrac1L\sum_l W_p^p(X\theta_l, Y\theta_l)\big)^{1/p}` over random unit
    directions θ. Between clouds that differ by a shift it is :math:`\|dm\|/\sqrt d` for p = 2, as L
    grows.

    Parameters
    ----------
    X, Y : rows ``(n, d)`` and ``(m, d)``
    n_projections : L
    p : exponent, at least 1
    x_weights, y_weights : weights of the rows, equal unless given
    projections : the directions ``(L, d)``, instead of random ones
    random_state : of the directions

    Examples
    --------
    >>> X = torch.zeros(4, 2, dtype=torch.float64)
    >>> round(float(sliced_wasserstein(X, X + 1, projections=[[1.0, 0.0], [0.6, 0.8]])), 6)
    1.216553
    """
    if X.ndim != 2 or Y.ndim != 2 or X.shape[1] != Y.shape[1]:
        raise ShapeError(
            f"sliced_wasserstein needs rows (n, d) and (m, d), got {tuple(X.shape)} and "
            f"{tuple(Y.shape)}"
        )
    if not 1 <= p < math.inf:
        raise ValueError(f"p must be a number of at least 1, got {p!r}")
    if projections is None:
        key = Key.of(random_state)
        drawn = torch.randn(n_projections, X.shape[1], generator=key.torch(), dtype=torch.float64)
        directions = (drawn / drawn.norm(dim=1, keepdim=True)).to(X)
    else:
        directions = as_tensor(projections, "projections", X).to(X.dtype)
    costs = []
    for some in directions.split(max(1, _CELLS // (len(X) + len(Y)))):
        costs.append(power_cost(some @ X.mT, some @ Y.to(X.dtype).mT, p, x_weights, y_weights))
    return root(torch.cat(costs).mean(), p)
