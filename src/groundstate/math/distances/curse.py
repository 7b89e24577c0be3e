r"""What many dimensions do to volumes and distances."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from groundstate.compute.random import Key, RandomState
from groundstate.errors import ShapeError
from groundstate.math.arrays import takes_arrays

TILE = 2**20


def coverage(n: float, d: int) -> float:
    r"""Share of the :math:`2^d` corners of a cube that n rows can reach, :math:`n/2^d`.

    >>> f"{coverage(1e12, 100):.3g}"
    '7.89e-19'
    """
    return float(n) * 2.0 ** -_dimension(d)


def shell(eps: float, d: int) -> float:
    r"""Share of a ball's volume in its outer shell of relative thickness ε,
    :math:`1 - (1 - \varepsilon)^d`.

    >>> round(shell(0.01, 1000), 6)
    0.999957
    """
    if not 0 <= eps <= 1:
        raise ValueError(f"eps is a share of the radius and must lie in [0, 1], got {eps}")
    return -math.expm1(_dimension(d) * math.log1p(-eps)) if eps < 1 else 1.0


def edge_length(share: float, d: int) -> float:
    r"""Edge of the cube that holds a share r of the unit cube's volume, :math:`r^{1/d}`.

    >>> round(edge_length(0.1, 10), 3), round(edge_length(0.1, 100), 3)
    (0.794, 0.977)
    """
    if not 0 <= share <= 1:
        raise ValueError(f"share must lie in [0, 1], got {share}")
    return float(share) ** (1.0 / _dimension(d))


def ball_in_cube(d: int) -> float:
    r"""Share of a cube's volume in the ball it holds, :math:`\pi^{d/2}/(2^d\,\Gamma(d/2 + 1))`.

    >>> round(ball_in_cube(2), 6), round(ball_in_cube(10), 6)
    (0.785398, 0.00249)
    """
    half = 0.5 * _dimension(d)
    return math.exp(half * math.log(math.pi) - d * math.log(2) - math.lgamma(half + 1))


def grid_neighbors(d: int, side: int = 3) -> int:
    r"""How many points of the grid :math:`\{0, \dots, \text{side}-1\}^d` are nearest to its middle,
    by counting: 2d.

    >>> [grid_neighbors(d) for d in range(1, 7)]
    [2, 4, 6, 8, 10, 12]
    """
    if side < 3 or side % 2 == 0:
        raise ValueError(f"a grid with a middle has an odd side of 3 or more, got {side}")
    if side ** _dimension(d) > 10**7:
        raise ValueError(f"{side}^{d} grid points are too many to count; take a smaller d")
    grid = np.array(list(product(range(-(side // 2), side // 2 + 1), repeat=d)))
    square = (grid**2).sum(1)
    return int((square == square[square > 0].min()).sum())


@takes_arrays("X", "queries")
def contrast(X: Any, queries: Any = None) -> Any:
    r"""How well distances tell near from far: the mean over queries of
    :math:`(d_{\max} - d_{\min})/d_{\min}`, distances to the rows of X.

    Parameters
    ----------
    X : ``(n, d)``
    queries : ``(m, d)``; None takes the rows of X, each against the others

    Examples
    --------
    >>> contrast([[1.0], [3.0]], [[0.0]])
    2.0
    """
    own = queries is None
    q = X if own else queries
    if X.ndim != 2 or q.ndim != 2 or X.shape[1] != q.shape[1] or len(X) < 2 + own:
        raise ShapeError(
            f"contrast needs rows of one width, at least {2 + own}, got X {tuple(X.shape)} and "
            f"queries {tuple(q.shape)}"
        )
    found = []
    for start in range(0, len(q), step := max(1, TILE // len(X))):
        part = q[start : start + step]
        far = torch.cdist(part, X, compute_mode="donot_use_mm_for_euclid_dist")
        near = far
        if own:
            mask = torch.zeros_like(far, dtype=torch.bool)
            at = torch.arange(len(part), device=X.device)
            mask[at, at + start] = True
            near = far.masked_fill(mask, math.inf)
        least = near.amin(1)
        found.append((far.amax(1) - least) / least)
    return torch.cat(found).mean()


def noise_features(
    X: Any, n: int, scale: float = 1.0, random_state: RandomState = None
) -> NDArray[np.float64]:
    """X with n further columns of normal noise, which say nothing.

    >>> noise_features(np.zeros((3, 2)), 5, random_state=0).shape
    (3, 7)
    """
    if n < 0:
        raise ValueError(f"n counts columns and must not be negative, got {n}")
    rows = np.asarray(X, dtype=np.float64)
    rng = Key.of(random_state).fold("noise").numpy()
    return np.column_stack([rows, scale * rng.standard_normal((len(rows), n))])


def _dimension(d: int) -> int:
    if d < 1 or int(d) != d:
        raise ValueError(f"d counts dimensions and must be a whole number from 1 up, got {d}")
    return int(d)
