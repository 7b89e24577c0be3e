"""Regression by the nearest rows."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from groundstate.energy.neighbors.votes import NeighborValueEnergy
from groundstate.learn import Naive
from groundstate.learn.solvers.neighbors import Memorise
from groundstate.models.base import Plan
from groundstate.models.neighbors.search import NeighborSearch
from groundstate.models.roles import EnergyRegressor
from groundstate.registry import models


@models.register(
    family="neighbors", task="regression", role="regressor", shortlist=4, shortlist_rows=20_000
)
class KNeighborsRegressor(NeighborSearch, EnergyRegressor):
    r"""Squared distance to the mean of the nearest remembered rows.

    .. math:: e(x, y) = \tfrac12\Bigl\|y - \sum_{i \in N_k(x)} s_i(x)\,y_i\Bigr\|^2 ,

    with shares s that sum to one. Nothing is learned but the rows. Of equally distant rows the one
    that came first counts; a row of weight w is w rows.

    Parameters
    ----------
    n_neighbors : int, default=5
    weights : {"uniform", "distance"} or callable, default="uniform"
        Equal weights, 1/distance (where exact hits win), or a function of the distances.
    algorithm : {"auto", "brute", "kd_tree", "ball_tree"}, default="auto"
        How to search; all are exact. Both trees are a tree of boxes, which pays off for few features.
    leaf_size : int, default=30
        Accepted for scikit-learn's sake; it changes no answer.
    p : float, default=2
        Exponent of the Minkowski metric.
    metric : str or callable, default="minkowski"
        Also "euclidean", "manhattan", "chebyshev", "cosine", "mahalanobis" (with
        ``metric_params={"VI": inverse_covariance}``), "seuclidean" (``{"V": variances}``),
        "nan_euclidean" (rows with missing values), "haversine", "canberra", "braycurtis",
        "correlation", "hamming", "jaccard" and other scores of sets, a function of two rows, or
        "precomputed": X then holds distances to the training rows.
    metric_params : dict, default=None
        Arguments of the metric; ``{"w": weights}`` weighs the features of "minkowski".
    n_jobs : int, default=None
        Accepted for scikit-learn's sake; torch's number of threads counts.
    device : str or torch.device, default=None
        Where to compute; None is where X is.
    callbacks : sequence, default=None
        Callbacks of groundstate or scikit-learn.

    Attributes
    ----------
    n_samples_fit_ : int
    effective_metric_ : str or callable
    energy_ : NeighborValueEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import KNeighborsRegressor
    >>> X = np.array([[0.0], [1.0], [5.0]])
    >>> KNeighborsRegressor(2).fit(X, [1.0, 3.0, 9.0]).predict([[0.2]]).tolist()
    [2.0]
    """

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
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.algorithm = algorithm
        self.leaf_size = leaf_size
        self.p = p
        self.metric = metric
        self.metric_params = metric_params
        self.n_jobs = n_jobs
        self.device = device
        self.callbacks = callbacks

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        assert y is not None
        energy = NeighborValueEnergy(X.shape[1], y.shape[1], **self._memory())
        return Plan(energy=energy, rule=Naive(), solver=Memorise())
