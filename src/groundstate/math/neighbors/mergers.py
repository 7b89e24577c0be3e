r"""The tree of groups that are merged, the nearest first, :math:`\arg\min_{G\ne H}D(G, H)`, and its cut."""

from __future__ import annotations

from heapq import heappush, heappushpop

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.cluster.hierarchy import linkage as linked
from scipy.spatial.distance import pdist


def mergers(rows: ArrayLike, linkage: str = "ward") -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Which two nodes each of the n − 1 mergers joins ``(n - 1, 2)``, and at what distance ``(n - 1,)``.

    Nodes below n are rows, node n + i is what merger i made.

    Parameters
    ----------
    rows : (n, d), two or more
    linkage : "ward", "complete", "average" or another name of SciPy's, of Euclidean distances

    Examples
    --------
    >>> children, distances = mergers([[0.0], [1.0], [9.0]], "complete")
    >>> children.tolist(), distances.tolist()
    ([[0, 1], [2, 3]], [1.0, 9.0])
    """
    tree = linked(pdist(np.asarray(rows, np.float64)), linkage)
    return tree[:, :2].astype(np.intp), tree[:, 2]


def cut(children: NDArray[np.intp], groups: int) -> NDArray[np.intp]:
    """The group of each row ``(n,)`` before the last ``groups - 1`` mergers, as scikit-learn numbers them.

    Examples
    --------
    >>> cut(np.array([[0, 1], [2, 3]]), 2).tolist()
    [0, 0, 1]
    """
    n = len(children) + 1
    heads = [-(2 * n - 2)]  # a heap of the nodes that remain, the last first
    for _ in range(groups - 1):
        one, other = children[-heads[0] - n].tolist()
        heappush(heads, -one)
        heappushpop(heads, -other)
    made = np.arange(n, 2 * n - groups)
    above = np.arange(2 * n - 1)
    above[children[: n - groups]] = made[:, None]
    while ((further := above[above]) != above).any():
        above = further
    number = np.empty(2 * n - 1, np.intp)
    number[[-head for head in heads]] = np.arange(groups)
    return number[above[:n]]


__all__ = ["cut", "mergers"]
