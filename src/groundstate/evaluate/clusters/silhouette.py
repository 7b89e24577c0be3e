r"""Silhouettes without a matrix of all distances.

.. math:: s_i = \frac{b_i - a_i}{\max(a_i, b_i)},

with :math:`a_i` the mean distance to the rows of one's own cluster and :math:`b_i` the least mean distance
to those of another. Distances are taken chunk by chunk and summed by cluster.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

CELLS = 2**22


def silhouette_samples(X: Any, labels: Any) -> NDArray[np.float64]:
    """The silhouette of every row, ``(n,)``; 0 for a cluster of one row.

    >>> silhouette_samples([[0.0], [1.0], [9.0], [10.0]], [0, 0, 1, 1]).round(3).tolist()
    [0.895, 0.882, 0.882, 0.895]
    """
    rows = np.asarray(X, np.float64)
    classes, z = np.unique(np.asarray(labels), return_inverse=True)
    if rows.ndim != 2 or z.shape != (len(rows),):
        raise ValueError(f"labels must be one for each row of X {rows.shape}, got {z.shape}")
    if not 2 <= len(classes) < len(rows):
        raise ValueError(
            f"silhouettes need between 2 and {len(rows) - 1} clusters, got {len(classes)}"
        )
    order = np.argsort(z, kind="stable")
    starts = np.searchsorted(z[order], np.arange(len(classes)))
    sizes = np.bincount(z)
    out = np.empty(len(rows))
    ordered = rows[order]
    step = max(1, CELLS // len(rows))
    for at in range(0, len(rows), step):
        sums = np.add.reduceat(cdist(rows[at : at + step], ordered), starts, axis=1)
        own = z[at : at + step]
        here = np.arange(len(own))
        a = sums[here, own] / np.maximum(sizes[own] - 1, 1)
        means = sums / sizes
        means[here, own] = np.inf
        b = means.min(1)
        s = (b - a) / np.maximum(np.maximum(a, b), 1e-300)
        out[at : at + step] = np.where(sizes[own] > 1, s, 0.0)
    return out


def silhouette_score(X: Any, labels: Any, sample_weight: Any = None) -> float:
    """The mean silhouette of the rows."""
    return float(np.average(silhouette_samples(X, labels), weights=sample_weight))
