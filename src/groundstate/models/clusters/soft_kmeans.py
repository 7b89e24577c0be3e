"""Soft k-means at a temperature."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import torch
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.compute.thread_policy import answering
from groundstate.energy.basic import CentroidEnergy
from groundstate.learn import Naive
from groundstate.learn.solvers.latent.kmeans.soft import SoftLloyd
from groundstate.math.info.free_energy import boltzmann_logits
from groundstate.models import settings
from groundstate.models.base import Plan
from groundstate.models.clusters.centroids import CentroidClusterer
from groundstate.models.traits import Traits
from groundstate.registry import models


@models.register(family="clusters", task="clustering", role="clusterer")
class SoftKMeans(CentroidClusterer):
    r"""Centroids that share every row: k-means with the entropy of the labels weighted by T.

    .. math::
        e(x, z) = \tfrac12\|x - \mu_z\|^2, \qquad
        \min_\mu\; -T\sum_i w_i\log\frac1k\sum_z e^{-e(x_i, z)/T} .

    The share of centroid z is :math:`\alpha_{iz} = \mathrm{softmax}_z(-e(x_i, z)/T)`. T = 0 is
    ``KMeans``, T = 1 a mixture of unit Gaussians of equal weight, T = ∞ indifference. Above
    :math:`T = \lambda_1`, the largest variance of any direction, all centroids coincide: cooling from
    there (``schedule="anneal"``) lets clusters be born one after the other, whatever the start.

    Parameters
    ----------
    n_clusters : int, default=8
    temperature : float, default=1.0
    schedule : {None, "anneal"}, default=None
        "anneal" comes down from :math:`2\lambda_1` to ``temperature`` by factors of 0.8.
    init : {"k-means++", "scalable-k-means++", "random"} or array, default="k-means++"
        Where the centroids start without a schedule.
    max_iter : int, default=300
        Iterations at one temperature.
    tol : float, default=1e-4
        Stop when the summed squared moves of the centroids, in units of the mean variance of the
        columns, are at most this.

    Attributes
    ----------
    cluster_centers_ : (n_clusters, n_features) array
    labels_ : (n_samples,) int32 array
        The nearest centroid, which has the largest share.
    inertia_ : float
    critical_temperature_ : float
        :math:`\lambda_1`, where the first cluster splits.
    energy_ : CentroidEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import SoftKMeans
    >>> X = np.array([[-2.0], [-1.0], [1.0], [3.0]])
    >>> model = SoftKMeans(2, init=[[-1.0], [1.0]], tol=1e-9).fit(X)
    >>> model.cluster_centers_.ravel().round(3).tolist()
    [-1.397, 2.028]
    """

    traits = Traits(space={"n_clusters": settings.Whole(2, 20)})
    _accept_sparse: ClassVar[bool | str] = False

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "temperature": [Interval(Real, 0, None, closed="left")],
        "schedule": [StrOptions({"anneal"}), None],
        "init": [StrOptions({"k-means++", "scalable-k-means++", "random"}), callable, "array-like"],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        temperature: float = 1.0,
        schedule: str | None = None,
        init: Any = "k-means++",
        max_iter: int = 300,
        tol: float = 1e-4,
        random_state: Any = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.temperature = temperature
        self.schedule = schedule
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.device = device
        self.callbacks = callbacks

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        self._enough(X)
        self._seen = (X, weight)
        return Plan(
            energy=CentroidEnergy(self.n_clusters, X.shape[1]),
            rule=Naive(latent="minimise"),
            solver=SoftLloyd(
                init=self._start(X),  # type: ignore[arg-type]
                T=float(self.temperature),
                anneal=self.schedule == "anneal",
                max_iter=self.max_iter,
                tol=self.tol,
            ),
        )

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Any:
        super()._fit(X, y, sample_weight)
        self.critical_temperature_ = self.history_.extra.pop("critical_temperature")[0]
        return self

    def predict_proba(self, X: Any) -> Any:
        """Shares of the centroids, ``(n_samples, n_clusters)``."""
        x, home = self._rows(X)
        with answering(self.energy_, x):
            table = self.energy_.table("z", x=x)
            return home.give(torch.softmax(boltzmann_logits(table, float(self.temperature)), 1))
