"""The compiled parts of scikit-learn's ``HDBSCAN``, without its checks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster._hdbscan._linkage import mst_from_data_matrix
from sklearn.cluster._hdbscan._tree import tree_to_labels
from sklearn.cluster._hdbscan.hdbscan import _process_mst
from sklearn.metrics import DistanceMetric
from sklearn.neighbors import KDTree


def density_tree(
    rows: NDArray[np.float64], least: int, alpha: float, leaf_size: int
) -> tuple[Any, NDArray[np.float64]]:
    r"""Mergers by single linkage of the distances :math:`\max(c_i, c_j, d_{ij}/\alpha)`.

    Parameters
    ----------
    rows : ``(n, d)`` in C order, n of at least 2
    least : how many rows, itself the first, reach to the core distance :math:`c_i`
    alpha : α
    leaf_size : of the tree that finds them

    Returns
    -------
    mergers, and the core distances ``(n,)``
    """
    found = KDTree(rows, leaf_size).query(rows, least)[0]
    core = np.ascontiguousarray(found[:, -1])
    euclidean = DistanceMetric.get_metric("euclidean")
    return _process_mst(mst_from_data_matrix(rows, core, euclidean, alpha)), core


__all__ = ["density_tree", "tree_to_labels"]
