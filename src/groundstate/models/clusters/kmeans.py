"""k-means."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.base import TransformerMixin as SklearnTransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils import Tags, check_array
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.compute.random import Key
from groundstate.compute.reduce import current
from groundstate.energy.base import Energy
from groundstate.energy.basic import CentroidEnergy
from groundstate.learn import Lloyd, Naive
from groundstate.learn.solvers.latent.kmeans.rows import BOUNDS, nearest
from groundstate.learn.solvers.latent.kmeans.table import as_csr
from groundstate.models import settings
from groundstate.models.arrays import plain_rows, tensor, unwrap
from groundstate.models.base import Plan
from groundstate.models.learned import Learned
from groundstate.models.roles import EnergyClusterer
from groundstate.models.traits import Traits
from groundstate.registry import models


@models.register(family="clusters", task="clustering", role="clusterer")
class KMeans(ClassNamePrefixFeaturesOutMixin, SklearnTransformerMixin, EnergyClusterer):
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
    device : str or torch.device, default=None
        Where to compute; None is where X is.
    callbacks : sequence, default=None
        Callbacks of groundstate or scikit-learn.

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

    _accept_sparse: ClassVar[bool | str] = "csr"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "init": [StrOptions({"k-means++", "scalable-k-means++", "random"}), callable, "array-like"],
        "n_init": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
        "copy_x": ["boolean"],
        "algorithm": [StrOptions(set(BOUNDS))],
        "empty": [StrOptions({"relocate", "keep"})],
        "stop": [StrOptions({"shift", "max_shift"})],
        "device": "no_validation",  # type: ignore[dict-item]
        "callbacks": "no_validation",  # type: ignore[dict-item]
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

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        if X.shape[0] < self.n_clusters and current().world == 1:
            raise ValueError(f"n_samples={X.shape[0]} should be >= n_clusters={self.n_clusters}.")
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
        return Plan(
            energy=CentroidEnergy(self.n_clusters, X.shape[1]),
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

    def _start(self, X: Tensor) -> str | Tensor | Callable[[Key], Tensor]:
        """The start in the solver's terms; centroids given by the user are checked here."""
        init = self.init
        if isinstance(init, str):
            return init

        def checked(values: Any) -> Tensor:
            array = unwrap(values)[0]
            if not plain_rows(array) or array.dtype != np.float64:
                array = check_array(array, dtype=np.float64, order="C", input_name="init")
            if array.shape != (self.n_clusters, X.shape[1]):
                raise ValueError(
                    f"init must hold one row per cluster, ({self.n_clusters}, {X.shape[1]}), got "
                    f"{array.shape}"
                )
            return tensor(array, X.device)

        if callable(init):
            rows = as_csr(X) if X.layout == torch.sparse_csr else X.cpu().numpy()
            return lambda key: checked(
                init(rows, self.n_clusters, random_state=np.random.RandomState(key.low % 2**32))
            )
        return checked(init)

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        try:
            return super()._fit(X, y, sample_weight)
        finally:
            self.__dict__.pop("_seen", None)

    cluster_centers_ = Learned(lambda model: model.energy_.mu)

    def _learned(self, energy: Energy) -> dict[str, Any]:
        assert isinstance(energy, CentroidEnergy)
        X, weight = self._seen
        labels, inertia = nearest(X, energy.mu.detach(), weight)
        total = current().sum(torch.tensor(inertia, dtype=torch.float64))
        found = len(torch.unique(labels)) if current().world == 1 else self.n_clusters
        if found < self.n_clusters:
            warnings.warn(
                f"Number of distinct clusters ({found}) found smaller than n_clusters "
                f"({self.n_clusters}). Possibly due to duplicate points in X.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return {
            "labels_": labels.cpu().numpy(),
            "inertia_": float(total),
        }

    # --- answers -------------------------------------------------------------------------

    @property
    def _n_features_out(self) -> int:
        return int(self.cluster_centers_.shape[0])

    def predict(self, X: Any) -> Any:
        """Index of the nearest centroid, ``(n_samples,)`` int32."""
        x, home = self._rows(X)
        return home.give(nearest(x, self._mu)[0])

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Learn, then the cluster of each row."""
        self.fit(X, y, sample_weight=sample_weight)
        return unwrap(X)[1].give(self.labels_)

    def transform(self, X: Any) -> Any:
        """Distances to the centroids, ``(n_samples, n_clusters)``."""
        x, home = self._rows(X)
        if x.layout == torch.sparse_csr:
            return home.give(torch.from_numpy(euclidean_distances(as_csr(x), self._mu.numpy())))
        exactly = "donot_use_mm_for_euclid_dist"
        return home.give(torch.cdist(x, self._mu, compute_mode=exactly))

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Learn, then the distances of each row to the centroids."""
        return self.fit(X, y, sample_weight=sample_weight).transform(X)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the weighted sum of squared distances to the nearest centroid."""
        x, _ = self._rows(X)
        weight = self._checked_weight(sample_weight, x)
        w = None if weight is None else tensor(weight, x.device)
        return -nearest(x, self._mu, w)[1]

    @property
    def _mu(self) -> Tensor:
        mu: Tensor = self.energy_.mu  # type: ignore[assignment]
        return mu.detach()
