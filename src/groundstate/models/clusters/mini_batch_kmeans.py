"""k-means on mini-batches."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.compute.random import Key
from groundstate.energy.basic import CentroidEnergy
from groundstate.learn import Naive
from groundstate.learn.base import History, Problem
from groundstate.learn.solvers.latent.kmeans.lloyd import Lloyd
from groundstate.learn.solvers.latent.kmeans.minibatch import Centroids, MiniBatchLloyd
from groundstate.learn.solvers.latent.kmeans.rows import nearest
from groundstate.models import settings
from groundstate.models.arrays import tensor
from groundstate.models.base import Plan
from groundstate.models.clusters.centroids import CentroidClusterer
from groundstate.models.resident import places
from groundstate.models.streamed import Mapped
from groundstate.models.traits import Traits
from groundstate.registry import models


@models.register(family="clusters", task="clustering", role="clusterer")
class MiniBatchKMeans(Mapped, CentroidClusterer):
    r"""``KMeans`` that sees a few rows at a time: each centroid is a running mean.

    .. math::
        e(x, z) = \tfrac12\|x - \mu_z\|^2, \qquad
        \mu_z \leftarrow \mu_z + \frac1{c_z}\sum_{batch} w\,(x - \mu_z),\quad
        c_z \leftarrow c_z + \sum_{batch} w .

    Memory does not grow with the rows; ``partial_fit`` takes a stream of chunks. Mini-batches lie on
    the weight line, so a weight of 2 is the row twice and the order of the rows does not matter. Where
    one mini-batch holds all rows, passes are those of ``KMeans``: each centroid is the mean of its rows.

    Parameters
    ----------
    n_clusters : int, default=8
    init : {"k-means++", "scalable-k-means++", "random"}, array or callable, default="k-means++"
    max_iter : int, default=100
        Passes over the rows.
    batch_size : int, default=1024
    verbose : int, default=0
    compute_labels : bool, default=True
        Whether to label all rows at the end.
    tol : float, default=0.0
        Stop when the smoothed squared move of the centroids, in units of the mean variance of the
        columns, is at most this.
    max_no_improvement : int, default=10
        Mini-batches without a lower smoothed inertia after which to stop; None never stops so.
    init_size : int, default=None
        Rows on which starts are drawn and judged; None is three mini-batches.
    n_init : "auto" or int, default="auto"
        Starts that are judged; "auto" is 3 for random and callable starts, else 1.
    reassignment_ratio : float, default=0.01
        Centroids that saw less than this share of what the fullest one saw begin again elsewhere.
        Without effect where one mini-batch holds all rows: the passes are then those of `KMeans`,
        and a small cluster is no accident of the batches.

    Attributes
    ----------
    cluster_centers_ : (n_clusters, n_features) array
    labels_ : (n_samples,) int32 array
    inertia_ : float
    energy_ : CentroidEnergy
    counts_ : (n_clusters,) array
        The weight that each centroid has seen.
    n_steps_ : int
        Mini-batches so far.

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import MiniBatchKMeans
    >>> X = np.array([[0.0], [1.0], [9.0], [10.0]])
    >>> model = MiniBatchKMeans(2, batch_size=4, random_state=0).fit(X)
    >>> sorted(model.cluster_centers_.ravel().tolist())
    [0.5, 9.5]
    """

    traits = Traits(space={"n_clusters": settings.Whole(2, 20)})

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "init": [StrOptions({"k-means++", "scalable-k-means++", "random"}), callable, "array-like"],
        "compute_labels": ["boolean"],
        "max_no_improvement": [Interval(Integral, 0, None, closed="left"), None],
        "init_size": [Interval(Integral, 1, None, closed="left"), None],
        "n_init": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "reassignment_ratio": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Any = "k-means++",
        max_iter: int = 100,
        batch_size: int = 1024,
        verbose: int = 0,
        compute_labels: bool = True,
        random_state: Any = None,
        tol: float = 0.0,
        max_no_improvement: int | None = 10,
        init_size: int | None = None,
        n_init: Any = "auto",
        reassignment_ratio: float = 0.01,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.verbose = verbose
        self.compute_labels = compute_labels
        self.random_state = random_state
        self.tol = tol
        self.max_no_improvement = max_no_improvement
        self.init_size = init_size
        self.n_init = n_init
        self.reassignment_ratio = reassignment_ratio
        self.device = device
        self.callbacks = callbacks

    def _starts(self) -> int:
        if not isinstance(self.init, str) and not callable(self.init):
            return 1
        if self.n_init != "auto":
            return int(self.n_init)
        return 3 if callable(self.init) or self.init == "random" else 1

    def _without_effect(self) -> None:
        """Warn of settings that cannot be followed, as scikit-learn does."""
        given = not isinstance(self.init, str) and not callable(self.init)
        if given and self.n_init not in ("auto", 1):
            warnings.warn(
                "Explicit initial center position passed: performing only one init in "
                f"{type(self).__name__} instead of n_init={self.n_init}.",
                RuntimeWarning,
                stacklevel=3,
            )
        if self.init_size is not None and self.init_size < self.n_clusters:
            warnings.warn(
                f"init_size={self.init_size} should be larger than n_clusters={self.n_clusters}. "
                "Setting it to min(3*n_clusters, n_samples)",
                RuntimeWarning,
                stacklevel=3,
            )

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        self._enough(X)
        self._without_effect()
        size = self.init_size
        if size is not None and size < self.n_clusters:
            size = 3 * self.n_clusters
        self._seen = (X, weight)
        return Plan(
            energy=CentroidEnergy(self.n_clusters, X.shape[1]),
            rule=Naive(latent="minimise"),
            solver=MiniBatchLloyd(
                init=self._start(X),
                n_init=self._starts(),
                batch_size=self.batch_size,
                max_iter=self.max_iter,
                tol=self.tol,
                max_no_improvement=self.max_no_improvement,
                ratio=self.reassignment_ratio,
                init_size=size,
            ),
        )

    def _learned(self, energy: Any) -> dict[str, Any]:
        return super()._learned(energy) if self.compute_labels else {}

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        super()._fit(X, y, sample_weight)
        extra = self.history_.extra
        self.counts_ = torch.tensor(extra.pop("counts"), dtype=torch.float64).numpy()
        self.n_steps_ = int(extra["steps"][0])
        return self

    @torch.no_grad()
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """One step with these rows as the mini-batch; the first call also draws the start."""
        self._validate_params()
        fresh = not hasattr(self, "energy_")
        if fresh:
            X_, _, _ = self._checked(X, None)
            x = tensor(X_, places(self, X)[0])
            self._enough(x)
        else:
            x, _ = self._rows(X)
        weight = self._checked_weight(sample_weight, x)
        w = None if weight is None else tensor(weight, x.device)
        key = Key.of(self.random_state)
        if fresh:
            dtype = x.dtype
            self.energy_ = CentroidEnergy(self.n_clusters, x.shape[1]).to(x.device, dtype)
            problem = Problem(self.energy_, Naive(latent="minimise"), {"x": x}, w, key=key)
            start = Lloyd(self._start(x)).start(problem, 0)
            self.energy_.mu.copy_(start)
            self.counts_ = torch.zeros(self.n_clusters, dtype=torch.float64).numpy()
            self.n_steps_, self.history_, self.n_iter_ = 0, History(solver="MiniBatchLloyd"), 1
        mu: Tensor = self.energy_.mu
        state = Centroids(mu.double(), torch.from_numpy(self.counts_).to(mu.device), self.n_steps_)
        state.step(x, w, self.reassignment_ratio, key.fold("again", self.n_steps_))
        mu.copy_(state.mu)
        self.counts_, self.n_steps_ = state.counts.cpu().numpy(), state.steps
        if self.compute_labels:
            labels, self.inertia_ = nearest(x, mu, w)
            self.labels_ = labels.cpu().numpy()
        return self
