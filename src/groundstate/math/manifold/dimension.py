r"""How many numbers it takes to say where a row is: the dimension of the set that rows lie on.

A ball of radius r around a row of an m-dimensional set holds some :math:`r^m` rows, so ratios of
distances to neighbours tell m.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from groundstate.math.arrays import takes_arrays
from groundstate.math.neighbors.graph import nearest_others

METHODS = ("mle", "twonn")


@takes_arrays("X")
def intrinsic_dimension(
    X: Any, method: str = "mle", k: int = 20, local: bool = False, *, metric: Any = "euclidean"
) -> Any:
    r"""The intrinsic dimension of a table.

    Parameters
    ----------
    X : rows ``(n, d)``; of equal rows all but one are left out of their neighbours
    method : "mle" (Levina and Bickel, with MacKay's and Ghahramani's mean):
        :math:`1/m = \overline{\log(T_k/T_j)}` over rows and j < k, with :math:`T_j` the distance to
        the j-th neighbour; "twonn" (Facco and others): :math:`m = n/\sum_i\log(r_2/r_1)`
    k : neighbours of "mle"
    local : one number for each row, ``(n,)``, from its own neighbours ("mle" only)
    metric : as in `groundstate.neighbors.pairwise`

    Both are too low in high dimensions, where no number of rows fills the space: of 2,000 rows of a
    cube "twonn" finds 8.2 for 10 and 15.6 for 20.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).random((500, 2)) @ np.ones((2, 5)) + 0.0
    >>> round(intrinsic_dimension(X, "twonn"))
    1
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    if local and method != "mle":
        raise ValueError("local=True needs method='mle': two neighbours say little of one row")
    if X.ndim != 2:
        raise ValueError(f"X must be a table (n, d), got shape {tuple(X.shape)}")
    need = k if method == "mle" else 2
    if not 2 <= need < len(X):
        raise ValueError(
            f"k must be 2 to {len(X) - 1}, the number of other rows, got {need} of {len(X)} rows"
        )
    if metric != "precomputed":
        X = torch.unique(X.detach(), dim=0)[torch.argsort(_first(X))] if not local else X.detach()
        need = min(need, len(X) - 1)
        if need < 2:
            raise ValueError("X has fewer than 3 different rows; a dimension needs more")
    distance = nearest_others(X, need, metric)[0].double()
    if method == "twonn":
        ratio = (distance[:, 1] / distance[:, 0]).log()
        return len(ratio) / ratio.sum()
    if local:
        return local_dimension(distance)
    logs = (distance[:, -1:] / distance[:, :-1]).log()
    return 1.0 / logs.mean()


def local_dimension(distance: Tensor) -> Tensor:
    r"""The dimension at each row, :math:`1/\overline{\log(T_k/T_j)}`, from sorted distances ``(n, k)``.

    Equal rows are left out; where nothing is left, or all are equally far, it is not known and 1 is
    given.
    """
    last = distance[:, -1:]
    found = distance > 0
    logs = torch.where(found, last / torch.where(found, distance, 1.0), 1.0).log()[:, :-1]
    count = found[:, :-1].sum(1)
    mean = logs.sum(1) / count.clamp_min(1)
    return torch.where(mean > 0, 1.0 / torch.where(mean > 0, mean, 1.0), 1.0)


def _first(X: Tensor) -> Tensor:
    """Where each of the different rows, in the order of ``torch.unique``, stands first."""
    _, inverse = torch.unique(X.detach(), dim=0, return_inverse=True)
    at = torch.full((int(inverse.max()) + 1,), len(X), device=X.device)
    return at.scatter_reduce(0, inverse, torch.arange(len(X), device=X.device), "amin")
