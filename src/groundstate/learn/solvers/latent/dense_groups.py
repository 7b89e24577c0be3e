r"""Groups of dense rows, as components of a graph.

Core rows have a weight of at least m within ε, themselves included; two of them are joined where they
are within ε. A group is a component of that graph, and a row that is not core belongs to the first
group with a core row within ε.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

DEEP = 15  # columns beyond which a tree of boxes prunes nothing


@dataclass(frozen=True)
class DenseGroups:
    """What was found.

    Attributes
    ----------
    labels_ : the group of each row, −1 for noise, ``(n,)``; numbered by their first core rows
    core_sample_indices_ : numbers of the core rows
    """

    labels_: NDArray[np.intp]
    core_sample_indices_: NDArray[np.intp]


def dense_groups(
    x: NDArray[np.floating], weight: NDArray[np.float64] | None, eps: float, least: float
) -> DenseGroups:
    """Groups of rows by Euclidean distance.

    Parameters
    ----------
    x : ``(n, d)``
    weight : ``(n,)``; None is one each
    eps : how far a neighbour may be
    least : weight within ``eps`` that makes a row a core row

    Examples
    --------
    >>> dense_groups(np.array([[0.0], [1.0], [9.0]]), None, 1.0, 2).labels_.tolist()
    [0, 0, -1]
    """
    n = len(x)
    a, b = cKDTree(x).query_pairs(eps, output_type="ndarray").T
    own = np.ones(n) if weight is None else weight
    within = own + np.bincount(a, own[b], n) + np.bincount(b, own[a], n)
    core = within >= least
    number = np.cumsum(core) - 1  # of a core row among them
    both = core[a] & core[b]
    ends = number[a[both]], number[b[both]]
    m = int(core.sum())
    graph = coo_array((np.ones(len(ends[0]), np.bool_), ends), shape=(m, m))
    groups, found = connected_components(graph, directed=False)
    labels = np.full(n, groups)
    labels[core] = found
    for rim, inside in ((a, b), (b, a)):
        border = core[inside] & ~core[rim]
        np.minimum.at(labels, rim[border], labels[inside[border]])
    labels[labels == groups] = -1
    return DenseGroups(labels.astype(np.intp), core.nonzero()[0])


__all__ = ["DEEP", "DenseGroups", "dense_groups"]
