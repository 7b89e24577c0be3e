"""What the neighbour models have in common: their settings and the search itself."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from scipy.sparse import csr_matrix
from sklearn.metrics import DistanceMetric
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.compute.thread_policy import answering
from groundstate.models import settings
from groundstate.models.arrays import Home
from groundstate.models.distances import GivenDistances, memory_of
from groundstate.models.traits import Cost, Traits


class NeighborSearch(GivenDistances):
    """Settings, ``kneighbors`` and ``kneighbors_graph``.

    Parameters
    ----------
    n_neighbors : int
    leaf_size : int
        Accepted for scikit-learn's sake; it changes no answer.
    p : float
        Exponent of the Minkowski metric.
    n_jobs : int
        Accepted for scikit-learn's sake; torch's number of threads counts.
    algorithm : {"auto", "brute", "kd_tree", "ball_tree"}
        How to search; all are exact. Both trees are a tree of boxes, which pays off for few features.
    metric : str, callable or DistanceMetric
        Also "euclidean", "manhattan", "chebyshev", "cosine", "mahalanobis" (with
        ``metric_params={"VI": inverse_covariance}``), "seuclidean" (``{"V": variances}``),
        "nan_euclidean" (rows with missing values), "haversine", "canberra", "braycurtis",
        "correlation", "hamming", "jaccard" and other scores of sets, a function of two rows, or
        "precomputed": X then holds distances to the training rows, of a sparse matrix those to
        near rows.
    metric_params : dict
        Arguments of the metric; ``{"w": weights}`` weighs the features of "minkowski".

    Attributes
    ----------
    effective_metric_ : str or callable
    n_samples_fit_ : int
    """

    traits = Traits(
        cost=Cost(0.02, rows=1.7, columns=0.5),
        space={
            "n_neighbors": settings.Whole(1, 50, log=True),
            "weights": settings.Choice("uniform", "distance"),
            "p": settings.Choice(1, 2),
        },
    )

    _store_skip: ClassVar[tuple[str, ...]] = ("callbacks",)
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "weights": [StrOptions({"uniform", "distance"}), callable, None],
        "algorithm": [StrOptions({"auto", "ball_tree", "kd_tree", "brute"})],
        "leaf_size": [Interval(Integral, 1, None, closed="left")],
        "p": [Interval(Real, 0, None, closed="right")],
        "metric": [str, callable, DistanceMetric],
        "metric_params": [dict, None],
        "radius": [Interval(Real, 0, None, closed="both")],
    }
    n_samples_fit_: int

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        weights: Any = "uniform",
        algorithm: str = "auto",
        leaf_size: int = 30,
        p: float = 2,
        metric: Any = "minkowski",
        metric_params: dict[str, Any] | None = None,
        n_jobs: int | None = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._allow_nan
        return tags

    @property
    def _allow_nan(self) -> bool:  # type: ignore[override]
        return bool(self.metric == "nan_euclidean")

    def _rows(self, X: Any) -> tuple[Tensor, Home]:
        """Rows to answer; None asks about the fitted rows, which are then not their own neighbours."""
        if X is not None:
            return super()._rows(X)
        check_is_fitted(self, "energy_")
        memory: Any = self.energy_.memory
        check_enough(memory, memory.n_neighbors, len(memory.rows), own=True)
        return memory.rows, Home()

    def _memory(self) -> dict[str, Any]:
        """Arguments of the energy's memory."""
        tree = self.algorithm in ("kd_tree", "ball_tree")
        return {
            **memory_of(self.metric, self.metric_params, self.p),
            "n_neighbors": self.n_neighbors,
            "votes": getattr(self, "weights", None) or "uniform",
            "algorithm": "tree" if tree else self.algorithm,
        }

    def _learned(self, energy: Any) -> dict[str, Any]:
        params = dict(self.metric_params or {})
        metric = self.metric
        if metric == "minkowski":
            p, w = params.pop("p", self.p), params.pop("w", None)
            named = {1: "manhattan", 2: "euclidean", math.inf: "chebyshev"} if w is None else {}
            metric = named.get(p, metric)
            params |= {"p": p, "w": w} if metric == self.metric else {}
        return {
            "n_samples_fit_": len(energy.memory.rows),
            "effective_metric_": metric,
            "effective_metric_params_": params,
        }

    def kneighbors(
        self, X: Any = None, n_neighbors: int | None = None, return_distance: bool = True
    ) -> Any:
        """Distances and indices of the nearest rows, ``(n_queries, n_neighbors)`` each.

        A row of weight w is listed like w rows: the j-th neighbour is the row at which the summed
        weight reaches j.

        Parameters
        ----------
        X : rows to ask about; None asks about the fitted rows, which are then not their own
            neighbours
        n_neighbors : how many; None takes the model's
        return_distance : False gives the indices alone
        """
        check_is_fitted(self, "energy_")
        k: Any = self.n_neighbors if n_neighbors is None else n_neighbors
        if not isinstance(k, Integral) or k < 1:
            raise ValueError(f"n_neighbors must be an integer of at least 1, got {k!r}")
        memory: Any = self.energy_.memory
        own = X is None
        x, home = (memory.rows, Home()) if own else self._rows(X)
        check_enough(memory, int(k), len(x), own)
        with answering(self.energy_, x):
            distance, index = memory.units(x, int(k), own)
        if not return_distance:
            return home.give(index)
        return home.give(distance.to(x.dtype)), home.give(index)

    def kneighbors_graph(
        self, X: Any = None, n_neighbors: int | None = None, mode: str = "connectivity"
    ) -> csr_matrix:
        """The nearest rows as a sparse matrix ``(n_queries, n_samples_fit)`` of ones or distances.

        Where a weighted row is several of the nearest, its entry counts them.
        """
        check_mode(mode)
        distance, index = (
            v.cpu().numpy() if isinstance(v, torch.Tensor) else v
            for v in self.kneighbors(X, n_neighbors)
        )
        values = np.ones(index.size) if mode == "connectivity" else distance.ravel()
        starts = np.arange(0, index.size + 1, index.shape[1])
        shape = (len(index), self.n_samples_fit_)
        if mode == "distance" and len(self.energy_.memory.weight):  # type: ignore[arg-type,union-attr]
            first = np.ones(index.shape, bool)
            first[:, 1:] = index[:, 1:] != index[:, :-1]  # the copies of a row follow each other
            starts = np.concatenate([[0], first.sum(1).cumsum()])
            values, index = values[first.ravel()], index[first]
        return csr_matrix((values, index.ravel(), starts), shape=shape)


def check_enough(memory: Any, k: int, n: int, own: bool) -> None:
    """Refuse more neighbours than there are rows."""
    if k + own > memory.total() * (1 + 1e-12):
        raise ValueError(
            f"Expected n_neighbors {'<' if own else '<='} n_samples_fit, but n_neighbors = {k}, "
            f"n_samples_fit = {memory.total():g}, n_samples = {n}"
        )


def check_mode(mode: str) -> None:
    """Refuse what no graph of neighbours holds."""
    if mode not in ("connectivity", "distance"):
        raise ValueError(f"mode must be 'connectivity' or 'distance', got {mode!r}")
