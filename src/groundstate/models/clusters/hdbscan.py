"""Groups of dense rows, of any density."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.cluster import HDBSCAN as ScikitHDBSCAN
from torch import Tensor

from groundstate.energy.neighbors.memory import Memory
from groundstate.learn.solvers.latent.groups import KeepGroups
from groundstate.models import settings
from groundstate.models.clusters.groups import GroupClusterer
from groundstate.models.traits import Traits
from groundstate.registry import models


@models.register(family="clusters", task="clustering", role="clusterer")
class HDBSCAN(GroupClusterer):
    r"""The groups of ``DBSCAN`` at every ε at once, of which the most lasting are kept.

    .. math::
        e(x, z) = \tfrac12\min_{i\in G_z}\max(d(x, x_i), c_i)^2, \qquad
        e(x, -1) = \tfrac12 r_z^2 ,

    with the core distance :math:`c_i` of a row to its ``min_samples``-th nearest (itself the first)
    and :math:`r_z` the largest core distance in the group nearest to x: a new row is noise where it is
    farther away than the loosest row of that group is from its neighbours.

    Groups are scikit-learn's: distances :math:`\max(c_i, c_j, d_{ij}/\alpha)` make a tree by single
    linkage, and the nodes that live longest while the distance shrinks are the groups. The largest
    is number 0, whatever the order of the rows. NaN and infinite rows are refused. ``sample_weight``
    holds whole numbers.

    Parameters
    ----------
    min_cluster_size : int, default=5
        Fewer rows are noise.
    min_samples : int, default=None
        Rows that the core distance counts; None is ``min_cluster_size``.
    cluster_selection_epsilon : float, default=0.0
        Groups nearer than this are not split.
    max_cluster_size : int, default=None
    metric : str or callable, default="euclidean"
        "precomputed" takes the matrix of distances as X.
    metric_params : dict, default=None
    alpha : float, default=1.0
    algorithm : {"auto", "brute", "kd_tree", "ball_tree"}, default="auto"
    leaf_size : int, default=40
    cluster_selection_method : {"eom", "leaf"}, default="eom"
        The most lasting groups, or the leaves of the tree.
    allow_single_cluster : bool, default=False
    store_centers : {None, "centroid", "medoid", "both"}, default=None
    copy : bool, default=True
        Kept for scikit-learn's signature; X is never changed.

    Attributes
    ----------
    labels_ : (n_samples,) array
        The group of each row, −1 for noise.
    probabilities_ : (n_samples,) array
        How far inside its group each row is; 0 for noise.
    centroids_ : (n_clusters, n_features) array, with ``store_centers``
    medoids_ : (n_clusters, n_features) array, with ``store_centers``
    energy_ : LinkageEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import HDBSCAN
    >>> rng = np.random.default_rng(0)
    >>> X = np.r_[rng.normal(0, 0.1, (20, 2)), rng.normal(5, 1.0, (20, 2)), [[30.0, 30.0]]]
    >>> model = HDBSCAN().fit(X)
    >>> set(model.labels_[:20].tolist()), int(model.labels_[-1])
    ({0}, -1)
    >>> model.predict([[0.0, 0.0], [5.0, 5.0], [-20.0, 0.0]]).tolist()
    [0, 1, -1]
    """

    traits = Traits(space={"min_cluster_size": settings.Whole(3, 50, log=True)})
    _algorithm: ClassVar[Any] = ScikitHDBSCAN
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ScikitHDBSCAN._parameter_constraints
    }

    def __init__(
        self,
        min_cluster_size: int = 5,
        min_samples: int | None = None,
        cluster_selection_epsilon: float = 0.0,
        max_cluster_size: int | None = None,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        alpha: float = 1.0,
        algorithm: str = "auto",
        leaf_size: int = 40,
        n_jobs: int | None = None,
        cluster_selection_method: str = "eom",
        allow_single_cluster: bool = False,
        store_centers: str | None = None,
        copy: bool = True,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _min_rows(self) -> int:
        return 2

    def _peer(self) -> Any:
        return super()._peer().set_params(copy=True)

    def _grouped(self, X: NDArray[Any], x: Tensor, weight: Tensor | None) -> tuple[Any, Any]:
        found, index = super()._grouped(X, x, weight)
        _by_size(found, X[index])
        return found, index

    def _kept(self, found: Any, x: Tensor, index: Any) -> KeepGroups:
        label = found.labels_
        inside = label >= 0
        rows = x[torch.from_numpy(index)]
        if self._is_square:
            rows = rows[:, torch.from_numpy(index)]
        memory = Memory(rows.shape[1], 1, **self._memory()).to(x.dtype)
        memory.keep(rows, None)
        near = min(self.min_samples or self.min_cluster_size, len(rows))
        core = memory.nearest(rows, near)[0][:, -1].numpy()
        reach = np.full(max(1, int(label.max(initial=-1)) + 1), float(core.max()))
        for z in range(label.max(initial=-1) + 1):
            reach[z] = core[label == z].max()
        return KeepGroups(
            torch.from_numpy(index[inside]),
            torch.from_numpy(label[inside]),
            torch.from_numpy(core[inside]),
            torch.from_numpy(reach),
        )

    def _learned(self, energy: Any) -> dict[str, Any]:
        found, index = self._found
        probabilities = np.zeros(len(self._rows_now))
        probabilities[index] = found.probabilities_
        centers = {
            name: getattr(found, name)
            for name in ("centroids_", "medoids_")
            if hasattr(found, name)
        }
        return {**super()._learned(energy), "probabilities_": probabilities, **centers}


def _by_size(found: Any, rows: NDArray[Any]) -> None:
    """Number the groups by size, the largest first; of equal ones the first by its mean."""
    label = found.labels_
    k = int(label.max(initial=-1)) + 1
    if k < 2:
        return
    means = [rows[label == z].mean(0).round(9).tolist() for z in range(k)]
    order = sorted(range(k), key=lambda z: (-int((label == z).sum()), means[z]))
    number = np.empty(k, label.dtype)
    number[order] = np.arange(k)
    found.labels_ = np.where(label >= 0, number[label], label)
    for name in ("centroids_", "medoids_"):
        if hasattr(found, name):
            setattr(found, name, getattr(found, name)[order])
