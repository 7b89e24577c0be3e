"""Classification by the nearest rows."""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor

from groundstate.energy.neighbors.votes import NeighborClassEnergy
from groundstate.learn import NLL
from groundstate.learn.solvers.neighbors import Memorise
from groundstate.models.base import Plan
from groundstate.models.neighbors.joint_labels import JointLabels
from groundstate.models.neighbors.search import NeighborSearch
from groundstate.registry import models


@models.register(
    family="neighbors", task="classification", role="classifier", shortlist=4, shortlist_rows=20_000
)
class KNeighborsClassifier(NeighborSearch, JointLabels):
    r"""The nearest remembered rows vote on the class.

    .. math:: e(x, y) = -\log\sum_{i \in N_k(x)} s_i(x)\,[y_i = y] ,

    with shares s that sum to one. Nothing is learned but the rows. A tie goes to the first class,
    equally distant rows to the one that came first; a row of weight w is w rows. Rows may have
    several labels, y of shape (n_samples, n_outputs), each of which is voted on.

    Parameters
    ----------
    n_neighbors : int, default=5
    weights : {"uniform", "distance"} or callable, default="uniform"
        Votes of equal weight, of 1/distance (where exact hits win), or a function of the distances.
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
    classes_ : (n_classes,) array, or a list of them for several labels
    outputs_2d_ : bool, whether there are several labels
    n_samples_fit_ : int
    effective_metric_ : str or callable
    energy_ : NeighborClassEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import KNeighborsClassifier
    >>> X, y = np.array([[0.0], [1.0], [2.0], [10.0]]), ["a", "a", "b", "b"]
    >>> [KNeighborsClassifier(3, weights=w).fit(X, y).predict([[3.0]]).tolist()
    ...  for w in ("uniform", "distance")]
    [['a'], ['b']]
    """

    _single_class: ClassVar[bool] = True

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
        energy = NeighborClassEnergy(self._combinations(), X.shape[1], **self._memory())
        return Plan(energy=energy, rule=NLL(), solver=Memorise())
