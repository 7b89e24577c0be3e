r"""Transport distances between samples: exact, and entropic without its bias."""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor

from groundstate.math.arrays import takes_arrays
from groundstate.math.transport.costs import cost, masses, rows
from groundstate.math.transport.exact import emd
from groundstate.math.transport.line import power_cost, root
from groundstate.math.transport.online import entropic, self_entropic

_LOOK = 1000  # rows of each sample that the default ε looks at


@takes_arrays("X", "Y", "x_weights", "y_weights")
def wasserstein(X: Any, Y: Any, p: float = 2, x_weights: Any = None, y_weights: Any = None) -> Any:
    r""":math:`W_p = \big(\min_T\sum_{ij}T_{ij}\|x_i - y_j\|^p\big)^{1/p}` over couplings T.

    Exact; samples of one column are sorted. The gradient in X and Y goes through the fixed plan,
    the one in the weights through the duals.

    Parameters
    ----------
    X, Y : rows ``(..., n, d)`` and ``(..., m, d)``, or values ``(n,)`` and ``(m,)``
    p : exponent, at least 1
    x_weights, y_weights : weights of the rows, divided by their sum; equal unless given

    Examples
    --------
    >>> round(wasserstein([[0, 0], [1, 0]], [[0, 1], [1, 1]]), 6)
    1.0
    """
    if not 1 <= p < math.inf:
        raise ValueError(f"p must be a number of at least 1, got {p!r}")
    x, y = rows(X, Y)
    a, b = masses(x_weights, x, "x_weights"), masses(y_weights, y, "y_weights")
    if x.shape[-1] == 1:
        plain = x_weights is None and y_weights is None
        return root(power_cost(x[..., 0], y[..., 0], p, *((None, None) if plain else (a, b))), p)
    return root(emd(a, b, cost(x, y, p)).cost, p)


@takes_arrays("X", "Y", "x_weights", "y_weights")
def sinkhorn(
    X: Any,
    Y: Any,
    debias: bool = True,
    eps: float | None = None,
    p: float = 2,
    x_weights: Any = None,
    y_weights: Any = None,
    *,
    tol: float = 1e-6,
    max_iter: int = 10_000,
) -> Any:
    r"""Sinkhorn divergence
    :math:`S_\varepsilon = OT_\varepsilon(x,y) - \tfrac12OT_\varepsilon(x,x) - \tfrac12OT_\varepsilon(y,y)`.

    Not negative, 0 for equal samples; :math:`W_p^p` as ε → 0. Above 5,000 rows the matrix of costs
    is never formed. Differentiable in the rows and weights by the envelope theorem.

    Parameters
    ----------
    X, Y : rows ``(..., n, d)`` and ``(..., m, d)``, or values ``(n,)`` and ``(m,)``
    debias : subtract the two terms of a sample with itself
    eps : strength of the entropy in units of the cost; 5 % of the mean cost unless given
    p : the cost is :math:`\|x-y\|^p`
    x_weights, y_weights : weights of the rows, divided by their sum; equal unless given
    tol, max_iter : as in `transport.sinkhorn`

    Examples
    --------
    >>> round(sinkhorn([0, 1], [1, 3], eps=1.0, tol=1e-9), 6)
    2.538778
    """
    if not 1 <= p < math.inf:
        raise ValueError(f"p must be a number of at least 1, got {p!r}")
    x, y = rows(X, Y)
    a, b = masses(x_weights, x, "x_weights"), masses(y_weights, y, "y_weights")
    if eps is None:
        eps = 0.05 * _mean_cost(x, y, p)
    if not (eps > 0 and math.isfinite(eps)):
        raise ValueError(f"eps must be positive, got {eps!r}; wasserstein is the limit eps -> 0")
    value = entropic(x, y, a, b, eps, p, tol, max_iter)
    if not debias:
        return value
    own = [self_entropic(z, w, eps, p, tol, max_iter) for z, w in ((x, a), (y, b))]
    return value - 0.5 * own[0] - 0.5 * own[1]


def _mean_cost(x: Tensor, y: Tensor, p: float) -> float:
    """Mean cost of evenly spaced rows; 1 where all rows are one point."""
    u, v = (z.detach()[..., :: math.ceil(z.shape[-2] / _LOOK), :] for z in (x, y))
    return float(cost(u, v, p).mean()) or 1.0
