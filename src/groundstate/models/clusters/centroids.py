"""What clusterers with centroids answer: nearest centroids, distances, inertia."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.base import TransformerMixin as SklearnTransformerMixin
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils import Tags, check_array
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.compute.reduce import current
from groundstate.compute.thread_policy import answering
from groundstate.energy.base import Energy
from groundstate.energy.basic import CentroidEnergy
from groundstate.learn.solvers.latent.kmeans.rows import nearest
from groundstate.learn.solvers.latent.kmeans.table import as_csr
from groundstate.models.arrays import plain_rows, tensor, unwrap
from groundstate.models.learned import Learned
from groundstate.models.roles import EnergyClusterer


class CentroidClusterer(ClassNamePrefixFeaturesOutMixin, SklearnTransformerMixin, EnergyClusterer):
    r"""Answers of :math:`e(x, z) = \tfrac12\|x - \mu_z\|^2`.

    Attributes
    ----------
    cluster_centers_ : (n_clusters, n_features) array
    labels_ : (n_samples,) int32 array
    inertia_ : float
        Weighted sum of squared distances to the nearest centroid, :math:`2\sum_i w_i e`.
    """

    _accept_sparse: ClassVar[bool | str] = "csr"
    n_clusters: int
    init: Any
    labels_: Any
    inertia_: float

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _enough(self, X: Tensor) -> None:
        if X.shape[0] < self.n_clusters and current().world == 1:
            raise ValueError(f"n_samples={X.shape[0]} should be >= n_clusters={self.n_clusters}.")

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
        return {"labels_": labels.cpu().numpy(), "inertia_": float(total)}

    _seen: Any

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
        with answering(self.energy_, x):
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
        mu: Tensor = self.energy_.mu
        return mu.detach()
