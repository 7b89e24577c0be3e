"""Groups that are merged, the nearest first."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, ClassVar

import torch
from numpy.typing import NDArray
from sklearn.cluster import AgglomerativeClustering as ScikitAgglomerative
from torch import Tensor

from groundstate.compute.foreign.sklearn import fit_checked
from groundstate.learn.solvers.latent.groups import KeepGroups
from groundstate.math.distances.dissimilarities import OfTable
from groundstate.math.neighbors.mergers import cut, mergers
from groundstate.models import settings
from groundstate.models.clusters.groups import GroupClusterer
from groundstate.models.traits import Traits
from groundstate.registry import models

NAMES = {"l1": "manhattan", "l2": "euclidean"}


@models.register(family="clusters", task="clustering", role="clusterer")
class AgglomerativeClustering(GroupClusterer):
    r"""Every row a group of its own; the two nearest groups are merged, again and again.

    .. math:: e(x, z) = \tfrac12 D(x, G_z)^2

    is the price of one more row in a group, with the distance that merges groups: for "ward"
    :math:`D^2 = \frac{n_z}{n_z+1}\|x-\mu_z\|^2`, so that e is the growth of half the squares within
    groups; the mean ("average"), largest ("complete") or least ("single") distance to the rows of a
    group. ``predict`` gives a new row to the group that it would be merged with.

    Groups are scikit-learn's. ``sample_weight`` holds whole numbers: a weight of 2 is the row twice,
    a row of weight 0 takes no part and is labelled afterwards.

    Parameters
    ----------
    n_clusters : int or None, default=2
        None with ``distance_threshold``.
    metric : str or callable, default="euclidean"
        "euclidean" for "ward"; "precomputed" takes the matrix of distances as X; a callable makes
        that matrix from a table of rows.
    memory : str or joblib.Memory, default=None
        Where the tree is kept between fits.
    connectivity : (n_samples, n_samples) matrix or callable, default=None
        Which rows may be merged; a callable makes it from X. Needs rows without weights.
    compute_full_tree : "auto" or bool, default="auto"
    linkage : {"ward", "complete", "average", "single"}, default="ward"
    distance_threshold : float, default=None
        Groups at least so far apart are not merged.
    compute_distances : bool, default=False
        Whether ``distances_`` are wanted without ``distance_threshold``.

    Attributes
    ----------
    labels_ : (n_samples,) array
    n_clusters_ : int
    n_leaves_ : int
    n_connected_components_ : int
    children_ : (n_leaves_ - 1, 2) array
        Which two nodes each merger joins; nodes below ``n_leaves_`` are rows.
    distances_ : (n_leaves_ - 1,) array, where asked for
    energy_ : LinkageEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import AgglomerativeClustering
    >>> X = np.array([[0.0], [1.0], [9.0], [10.0]])
    >>> model = AgglomerativeClustering().fit(X)
    >>> model.labels_.tolist(), model.predict([[2.0]]).tolist()
    ([1, 1, 0, 0], [1])
    >>> model.energy([[2.0]], z=[1]).round(4).tolist()  # half of 2/3 of 1.5 squared
    [0.75]
    """

    traits = Traits(
        space={
            "n_clusters": settings.Whole(2, 20),
            "linkage": settings.Choice("ward", "complete", "average", "single"),
        }
    )
    _algorithm: ClassVar[Any] = ScikitAgglomerative
    _noise: ClassVar[bool] = False
    _needs_all_pairs: ClassVar[bool] = True
    _store_skip: ClassVar[tuple[str, ...]] = ("callbacks", "memory", "connectivity")
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ScikitAgglomerative._parameter_constraints
    }

    def __init__(
        self,
        n_clusters: int | None = 2,
        *,
        metric: Any = "euclidean",
        memory: Any = None,
        connectivity: Any = None,
        compute_full_tree: Any = "auto",
        linkage: str = "ward",
        distance_threshold: float | None = None,
        compute_distances: bool = False,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _min_rows(self) -> int:
        return 2

    @property
    def _is_plain(self) -> bool:
        """Whether the whole tree of Euclidean distances is cut at a number of groups."""
        return (
            self.n_clusters is not None
            and self.distance_threshold is self.memory is self.connectivity is None
            and self.linkage != "single"
            and self.compute_full_tree in ("auto", True)
            and isinstance(self.metric, str)
            and NAMES.get(self.metric, self.metric) == "euclidean"
        )

    def _memory(self) -> dict[str, Any]:
        if callable(self.metric):
            return {"metric": OfTable(self.metric)}
        return {"metric": NAMES.get(self.metric, self.metric)}

    def _found_by(self, rows: NDArray[Any]) -> Any:
        if self._is_plain and self.n_clusters <= len(rows) > 1:
            children, distances = mergers(rows, self.linkage)
            kept = {"distances_": distances} if self.compute_distances else {}
            return SimpleNamespace(
                labels_=cut(children, self.n_clusters), children_=children, **kept,
                n_clusters_=self.n_clusters, n_leaves_=len(rows), n_connected_components_=1,
            )  # fmt: skip
        peer = self._peer()
        return fit_checked(peer, rows) if len(rows) > 1 else peer.fit(rows)

    def _kept(self, found: Any, x: Tensor, index: Any) -> KeepGroups:
        return KeepGroups(torch.from_numpy(index), torch.from_numpy(found.labels_))

    def _learned(self, energy: Any) -> dict[str, Any]:
        found, _ = self._found
        names = ("n_clusters_", "n_leaves_", "n_connected_components_", "children_", "distances_")
        tree = {name: getattr(found, name) for name in names if hasattr(found, name)}
        return {**super()._learned(energy), **tree}
