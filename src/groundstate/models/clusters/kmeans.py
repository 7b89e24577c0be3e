"""k-means."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.compute.reduce import current
from groundstate.energy.base import Energy
from groundstate.energy.basic import CentroidEnergy
from groundstate.learn import Lloyd, Naive
from groundstate.learn.solvers.latent.kmeans.rows import BOUNDS
from groundstate.models import settings
from groundstate.models.base import Plan
from groundstate.models.clusters.centroids import CentroidClusterer
from groundstate.models.streamed import Mapped
from groundstate.models.traits import Traits
from groundstate.registry import models


@models.register(family="clusters", task="clustering", role="clusterer")
class KMeans(Mapped, CentroidClusterer):
    r"""Squared distance to the nearest of k centroids, minimised in turn over labels and centroids.

    .. math::
        e(x, z) = \tfrac12\|x - \mu_z\|^2, \qquad
        \min_\mu\; \sum_i w_i \min_z e(x_i, z) .

    Free z is clustering: :math:`\hat z(x)` is the nearest centroid. The answer depends on the start;
    ``n_init`` tries several.

    Parameters
    ----------
    n_clusters : int, default=8
    init : {"k-means++", "scalable-k-means++", "random"}, array (n_clusters, n_features) or callable, \
            default="k-means++"
        Where the centroids start: rows far from each other, the same in a few passes (for very
        many rows or centroids), random rows, or these. A callable gets
        ``(X, n_clusters, random_state=...)``.
    n_init : "auto" or int, default="auto"
        Starts that are tried, side by side; "auto" is 10 for random and callable starts, else 1.
    max_iter : int, default=300
    tol : float, default=1e-4
        Stop when the summed squared moves of the centroids, in units of the mean variance of the
        columns, are at most this.
    verbose : int, default=0
        Above zero, a progress bar.
    random_state : int, default=None
    copy_x : bool, default=True
        Kept for scikit-learn's signature; X is never changed.
    algorithm : {"auto", "lloyd", "hamerly", "yinyang", "elkan"}, default="auto"
        Which rows are skipped because the triangle inequality proves their label: none, by one
        bound for each row, one for each ten centroids or one for each centroid. Labels are those
        of "lloyd" at every iteration; "auto" is what is fastest.
    empty : {"relocate", "keep"}, default="relocate"
        A centroid that loses all its rows moves to the row farthest from its own, or stays.
    stop : {"shift", "max_shift"}, default="shift"
        What ``tol`` is compared with; "max_shift" is the largest move of a centroid, absolute.

    Attributes
    ----------
    cluster_centers_ : (n_clusters, n_features) array
    labels_ : (n_samples,) int32 array
    inertia_ : float
        Weighted sum of squared distances to the nearest centroid, :math:`2\sum_i w_i e`.
    energy_ : CentroidEnergy
    history_ : History
        Half the mean inertia after each iteration, and in ``extra["max_shift"]`` the largest move.
    n_iter_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import KMeans
    >>> X = np.array([[0.0], [1.0], [9.0], [10.0]])
    >>> model = KMeans(2, random_state=0).fit(X)
    >>> sorted(model.cluster_centers_.ravel().tolist()), model.inertia_
    ([0.5, 9.5], 1.0)
    """

    traits = Traits(
        space={"n_clusters": settings.Whole(2, 20), "init": settings.Choice("k-means++", "random")}
    )

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "init": [StrOptions({"k-means++", "scalable-k-means++", "random"}), callable, "array-like"],
        "n_init": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "copy_x": ["boolean"],
        "algorithm": [StrOptions(set(BOUNDS))],
        "empty": [StrOptions({"relocate", "keep"})],
        "stop": [StrOptions({"shift", "max_shift"})],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Any = "k-means++",
        n_init: Any = "auto",
        max_iter: int = 300,
        tol: float = 1e-4,
        verbose: int = 0,
        random_state: Any = None,
        copy_x: bool = True,
        algorithm: str = "auto",
        empty: str = "relocate",
        stop: str = "shift",
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state
        self.copy_x = copy_x
        self.algorithm = algorithm
        self.empty = empty
        self.stop = stop
        self.device = device
        self.callbacks = callbacks

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        self._enough(X)
        self._seen = (X, weight)
        several = callable(self.init) or (isinstance(self.init, str) and self.init == "random")
        n_init = (10 if several else 1) if self.n_init == "auto" else self.n_init
        if n_init != 1 and not isinstance(self.init, str) and not callable(self.init):
            warnings.warn(
                "Explicit initial center position passed: performing only one init in "
                f"{type(self).__name__} instead of n_init={n_init}.",
                RuntimeWarning,
                stacklevel=2,
            )
            n_init = 1
        if self.n_clusters == 1 and self.algorithm == "elkan":
            warnings.warn(
                "algorithm='elkan' doesn't make sense for a single cluster. Using 'lloyd' instead.",
                RuntimeWarning,
                stacklevel=2,
            )
        return Plan(
            energy=CentroidEnergy(self.n_clusters, X.shape[1], scale=0.0),
            rule=Naive(latent="minimise"),
            solver=Lloyd(
                self._start(X),
                n_init,
                self.max_iter,
                self.tol,
                self.stop,
                self.algorithm,
                self.empty == "relocate",
            ),
        )

    def _learned(self, energy: Energy) -> dict[str, Any]:
        found = super()._learned(energy)
        if current().world > 1:
            return found
        count = np.count_nonzero(np.bincount(found["labels_"]))
        if count < self.n_clusters:
            warnings.warn(
                f"Number of distinct clusters ({count}) found smaller than n_clusters "
                f"({self.n_clusters}). Possibly due to duplicate points in X.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return found
