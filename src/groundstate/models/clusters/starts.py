r"""Rows to start clusters from, :math:`p(i) \propto w_i\min_z\|x_i - \mu_z\|^2`."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_array
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.learn.solvers.latent.kmeans.start import drawer_of
from groundstate.models.arrays import Home, tensor, unwrap
from groundstate.models.resident import CPU, is_resident
from groundstate.models.validation import checked_weight


def kmeans_plusplus(
    X: Any,
    n_clusters: int,
    *,
    sample_weight: Any = None,
    x_squared_norms: Any = None,
    random_state: Any = None,
    n_local_trials: int | None = None,
) -> tuple[Any, Any]:
    r"""k rows far from each other: each next one is drawn with :math:`p(i)\propto w_i\min_z\|x_i-\mu_z\|^2`.

    Of ``n_local_trials`` draws the one is kept that leaves the least. Draws are points on the weight
    line: a weight of 2 is the row twice, and the order of the rows does not matter.

    Parameters
    ----------
    X : (n_samples, n_features) array, sparse matrix, frame or tensor
    n_clusters : int
    sample_weight : (n_samples,) array, default=None
    x_squared_norms : default=None
        Kept for scikit-learn's signature.
    random_state : int, generator, key or None
    n_local_trials : int, default=None
        None is :math:`2 + \lfloor\ln k\rfloor`; 1 is the plain algorithm.

    Returns
    -------
    centers : (n_clusters, n_features)
    indices : (n_clusters,)
        The rows: ``X[indices] == centers``.

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import kmeans_plusplus
    >>> X = np.array([[0.0], [1.0], [100.0], [101.0]])
    >>> centers, indices = kmeans_plusplus(X, 2, random_state=0)
    >>> bool((X[indices] == centers).all()), float(abs(centers[0] - centers[1])[0]) > 90
    (True, True)
    """
    return _started("k-means++", X, n_clusters, sample_weight, random_state, n_local_trials)


def kmeans_parallel(
    X: Any,
    n_clusters: int,
    *,
    sample_weight: Any = None,
    random_state: Any = None,
    n_local_trials: int | None = None,
) -> tuple[Any, Any]:
    r"""As ``kmeans_plusplus`` in a few passes over the rows, whatever the number of clusters.

    In each of five rounds every row becomes a candidate with probability
    :math:`2k\,w_iD_i^2/\sum_jw_jD_j^2`; k-means++ then chooses among the candidates, each weighted by
    the rows that are nearest to it. Sparse rows are drawn as by ``kmeans_plusplus``.

    Parameters
    ----------
    X : (n_samples, n_features) array, frame or tensor
    n_clusters : int
    sample_weight : (n_samples,) array, default=None
    random_state : int, generator, key or None
    n_local_trials : int, default=None
        Of the choice among the candidates; None is 2 + ⌊ln k⌋.

    Returns
    -------
    centers : (n_clusters, n_features)
    indices : (n_clusters,)
        The rows: ``X[indices] == centers``.

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import kmeans_parallel
    >>> X = np.arange(200.0)[:, None]
    >>> centers, indices = kmeans_parallel(X, 5, random_state=0)
    >>> centers.shape, bool((X[indices] == centers).all())
    ((5, 1), True)
    """
    return _started(
        "scalable-k-means++", X, n_clusters, sample_weight, random_state, n_local_trials
    )


def _started(
    name: str, X: Any, k: int, sample_weight: Any, random_state: Any, trials: int | None
) -> tuple[Any, Any]:
    x, home = _rows(X)
    n = x.shape[0]
    if not 1 <= k <= n:
        raise ValueError(f"n_samples={n} should be >= n_clusters={k}, and n_clusters at least 1.")
    if trials is not None and trials < 1:
        raise ValueError(f"n_local_trials must be at least 1 or None, got {trials}")
    weight = None if sample_weight is None else tensor(checked_weight(sample_weight, x), x.device)
    index = drawer_of(x, weight, Key.of(random_state)).chosen(name, k, trials)
    if hasattr(X, "tocsr"):
        return X.tocsr()[index.numpy()].toarray(), index.numpy()
    return home.give(x[index]), home.give(index)


def _rows(X: Any) -> tuple[Tensor, Home]:
    if is_resident(X):
        return X.detach(), Home(X.device)
    array, home = unwrap(X)
    device = home.device or CPU
    rows = check_array(array, accept_sparse="csr", dtype=[np.float64, np.float32], order="C")
    return tensor(rows, device), home


__all__ = ["kmeans_parallel", "kmeans_plusplus"]
