"""Groups of dense rows, of any density."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster
from scipy.sparse import issparse
from sklearn.cluster import HDBSCAN as ScikitHDBSCAN
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from groundstate.compute.foreign.density_tree import density_tree, tree_to_labels
from groundstate.compute.foreign.sklearn import safe_indexing
from groundstate.energy.neighbors.memory import Memory
from groundstate.learn.solvers.latent.groups import KeepGroups
from groundstate.math.distances.euclidean import lowest
from groundstate.models import settings
from groundstate.models.arrays import unwrap
from groundstate.models.clusters.groups import GroupClusterer
from groundstate.models.distances import without_gaps
from groundstate.models.traits import Traits
from groundstate.registry import models

INFINITE, MISSING = -2, -3  # labels of rows that have no place, as scikit-learn has them


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
    is number 0, whatever the order of the rows. Rows with an infinite entry are labelled −2, rows with
    NaN −3, and take no part. ``sample_weight`` holds whole numbers.

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
        "precomputed" takes the matrix of distances as X, infinite for pairs that are not joined, or a
        sparse graph of those that are.
    metric_params : dict, default=None
    alpha : float, default=1.0
    algorithm : {"auto", "brute", "kd_tree", "ball_tree"}, default="auto"
    cluster_selection_method : {"eom", "leaf"}, default="eom"
        The most lasting groups, or the leaves of the tree.
    allow_single_cluster : bool, default=False
    store_centers : {None, "centroid", "medoid", "both"}, default=None
    copy : bool, default=True
        Kept for scikit-learn's signature; X is never changed.

    Attributes
    ----------
    labels_ : (n_samples,) array
        The group of each row, −1 for noise, −2 for infinite rows, −3 for rows with NaN.
    probabilities_ : (n_samples,) array
        How far inside its group each row is; 0 for noise and infinite rows, NaN for those with NaN.
    single_linkage_tree_ : (n_leaves - 1, 4) array
        Mergers of rows as in ``scipy.cluster.hierarchy.linkage``: two nodes, their distance, and how
        many rows they hold. Leaves are the finite rows, each as often as its weight says.
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
    _store_private: ClassVar[tuple[str, ...]] = ("_levels", "_leaves")
    _allow_infinity: ClassVar[bool] = True
    _is_graph: bool  # whether X is a sparse graph, during a fit
    _leaves: NDArray[Any]  # the row of each leaf of the tree
    probabilities_: NDArray[Any]
    single_linkage_tree_: NDArray[Any]
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

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = not self._is_square
        return tags

    def _min_rows(self) -> int:
        return 2

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Any:
        label = None if self._is_square else _without_place(X)
        if label is None:
            return super()._fit(X, y, sample_weight)
        finite = np.flatnonzero(label == 0)
        weight = None if sample_weight is None else np.asarray(unwrap(sample_weight)[0])[finite]
        super()._fit(_taken(X, finite), y, weight)
        inside = np.where(label == MISSING, np.nan, 0.0)
        inside[finite], label[finite] = self.probabilities_, self.labels_
        self.labels_, self.probabilities_ = label, inside
        self._leaves = finite[self._leaves]
        return self

    def predict(self, X: Any) -> Any:
        """The group of lowest energy of each row, ``(n_samples,)``; −1, −2 and −3 as in a fit."""
        label = None if self._is_square else _without_place(X)
        if label is None:
            return super().predict(X)
        check_is_fitted(self, "energy_")
        finite = np.flatnonzero(label == 0)
        if len(finite):
            label[finite] = np.asarray(unwrap(super().predict(_taken(X, finite)))[0])
        return unwrap(X)[1].give(label)

    def dbscan_clustering(self, cut_distance: float, min_cluster_size: int = 5) -> NDArray[Any]:
        """The groups of ``DBSCAN`` without border rows at one distance, ``(n_samples,)``.

        Parameters
        ----------
        cut_distance : mergers at this distance and beyond are undone
        min_cluster_size : smaller groups are noise
        """
        check_is_fitted(self, "energy_")
        tree = self.single_linkage_tree_
        node = fcluster(tree, np.nextafter(cut_distance, -np.inf), "distance") - 1
        size = np.bincount(node)
        kept = np.flatnonzero(size >= min_cluster_size)
        number = np.full(len(size), -1)
        number[kept[np.argsort(-size[kept], kind="stable")]] = np.arange(len(kept))
        out = np.where(self.labels_ < -1, self.labels_, -1)
        out[self._leaves] = number[node]
        return out

    def _checked(self, X: Any, y: Any) -> Any:
        self._is_graph = issparse(X)
        apart = self._is_square and not self._is_graph and _with_gaps(X)
        return super()._checked(without_gaps(np.asarray(X, float)) if apart else X, y)

    def _seen(self, rows: NDArray[Any]) -> Any:
        return super()._seen(rows) if self._is_graph else rows

    def _peer(self) -> Any:
        return super()._peer().set_params(copy=True)

    def _found_by(self, rows: NDArray[Any]) -> Any:
        least = self.min_samples or self.min_cluster_size
        plain = self.metric == "euclidean" and self.algorithm != "brute" and not self.store_centers
        if not plain or not 2 <= len(rows) >= least:
            return super()._found_by(rows)
        table = np.ascontiguousarray(rows, np.float64)
        tree, core = density_tree(table, least, self.alpha, self.leaf_size)
        label, inside = tree_to_labels(
            tree, self.min_cluster_size, self.cluster_selection_method, self.allow_single_cluster,
            self.cluster_selection_epsilon, self.max_cluster_size,
        )  # fmt: skip
        return SimpleNamespace(
            labels_=label, probabilities_=inside, _single_linkage_tree_=tree, core=core
        )

    def _grouped(self, X: NDArray[Any], x: Tensor, weight: Tensor | None) -> tuple[Any, Any]:
        found, index = super()._grouped(X, x, weight)
        _by_size(found, X[index])
        return found, index

    def _kept(self, found: Any, x: Tensor, index: Any) -> KeepGroups:
        label = found.labels_
        inside = label >= 0
        core = found.core if hasattr(found, "core") else self._core(x, torch.from_numpy(index))
        reach = np.full(max(1, int(label.max(initial=-1)) + 1), float(core.max()))
        for z in range(label.max(initial=-1) + 1):
            reach[z] = core[label == z].max()
        return KeepGroups(
            torch.from_numpy(index[inside]),
            torch.from_numpy(label[inside]),
            torch.from_numpy(core[inside]),
            torch.from_numpy(reach),
        )

    def _core(self, x: Tensor, index: Tensor) -> NDArray[Any]:
        """Distances of rows to their nearest that count, ``(m,)``."""
        rows = x[index][:, index] if self._is_square else x[index]
        memory = Memory(rows.shape[1], 1, **self._memory()).to(x.dtype)
        memory.keep(rows, None)
        near = min(self.min_samples or self.min_cluster_size, len(rows))
        found = lowest(memory.every(rows), near) if self._is_square else memory.nearest(rows, near)
        return np.asarray(found[0][:, -1])

    def _learned(self, energy: Any) -> dict[str, Any]:
        found, index = self._found
        probabilities = np.zeros(len(self._rows_now))
        probabilities[index] = found.probabilities_
        centers = {
            name: getattr(found, name)
            for name in ("centroids_", "medoids_")
            if hasattr(found, name)
        }
        tree = found._single_linkage_tree_
        fields = ("left_node", "right_node", "value", "cluster_size")
        return {
            **super()._learned(energy),
            "probabilities_": probabilities,
            "single_linkage_tree_": np.stack([tree[f].astype(np.float64) for f in fields], 1),
            "_leaves": index,
            **centers,
        }


def _without_place(X: Any) -> NDArray[Any] | None:
    """−2 for infinite rows, −3 for rows with NaN, else 0; None where all rows are finite."""
    if issparse(X):
        total = np.asarray(X.sum(1)).ravel()
    else:
        rows = np.asarray(unwrap(X)[0])
        if rows.ndim != 2 or rows.dtype.kind == "c":
            return None  # the checks of every fit report what is wrong with it
        try:
            rows = rows.astype(np.float64, copy=False)
        except (TypeError, ValueError):
            return None
        with np.errstate(invalid="ignore"):
            total = rows.sum(1)
    if np.isfinite(total).all():
        return None
    return np.where(np.isnan(total), MISSING, np.where(np.isinf(total), INFINITE, 0))


def _with_gaps(X: Any) -> bool:
    """Whether a table of distances has pairs that are not joined."""
    table = np.asarray(unwrap(X)[0])
    return table.ndim == 2 and table.dtype.kind == "f" and bool(np.isinf(table).any())


def _taken(X: Any, index: NDArray[Any]) -> Any:
    return X[torch.from_numpy(index)] if isinstance(X, Tensor) else safe_indexing(X, index)


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
