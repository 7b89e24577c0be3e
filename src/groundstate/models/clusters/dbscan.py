"""Groups of dense rows."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.cluster import DBSCAN as ScikitDBSCAN
from torch import Tensor

from groundstate.learn.solvers.latent.dense_groups import DEEP, dense_groups
from groundstate.learn.solvers.latent.groups import KeepGroups
from groundstate.models import settings
from groundstate.models.clusters.groups import GroupClusterer
from groundstate.models.learned import Learned
from groundstate.models.traits import Traits
from groundstate.registry import models


@models.register(family="clusters", task="clustering", role="clusterer")
class DBSCAN(GroupClusterer):
    r"""Rows with enough others near them, joined where they are near each other; the rest is noise.

    .. math::
        e(x, z) = \tfrac12\min_{i\in C_z}d(x, x_i)^2, \qquad e(x, -1) = \tfrac12\varepsilon^2 ,

    over the core rows :math:`C_z`, those with a weight of at least ``min_samples`` within ε, themselves
    included. A new row goes to the nearest core row within ε, or is noise. No number of groups and no
    shape is asked for, but one ε for all of them: where densities differ, take ``HDBSCAN``.

    Groups are scikit-learn's. A row of weight w counts as w rows; one of weight 0 takes no part and
    is labelled afterwards.

    Parameters
    ----------
    eps : float, default=0.5
        How far a neighbour may be. It has the units of the columns: scale them first.
    min_samples : int, default=5
        Weight within ``eps`` that makes a row a core row.
    metric : str or callable, default="euclidean"
        "precomputed" takes the matrix of distances as X, or a sparse one of those up to ``eps``.
    metric_params : dict, default=None
    algorithm : {"auto", "ball_tree", "kd_tree", "brute"}, default="auto"
        How neighbours are found.
    p : float, default=None
        Exponent of the Minkowski metric; None is 2.

    Attributes
    ----------
    labels_ : (n_samples,) array
        The group of each row, −1 for noise. A row near two groups has the label of the first, while
        ``predict`` looks for the nearest core row.
    core_sample_indices_ : (n_core_samples,) array
    components_ : (n_core_samples, n_features) array
        The core rows.
    energy_ : LinkageEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import DBSCAN
    >>> X = np.array([[1.0, 2], [2, 2], [2, 3], [8, 7], [8, 8], [25, 80]])
    >>> model = DBSCAN(eps=3, min_samples=2).fit(X)
    >>> model.labels_.tolist(), model.predict([[9.0, 9.0], [50.0, 0.0]]).tolist()
    ([0, 0, 0, 1, 1, -1], [1, -1])
    """

    traits = Traits(
        space={
            "eps": settings.Real(0.05, 5.0, log=True),
            "min_samples": settings.Whole(2, 20, log=True),
        }
    )
    _algorithm: ClassVar[Any] = ScikitDBSCAN
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {**ScikitDBSCAN._parameter_constraints}

    def __init__(
        self,
        eps: float = 0.5,
        *,
        min_samples: int = 5,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        algorithm: str = "auto",
        leaf_size: int = 30,
        p: float | None = None,
        n_jobs: int | None = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    components_ = Learned(
        lambda model: model.energy_.memory.rows.clone(), instead="fit the rows that are meant"
    )

    def _grouped(self, X: NDArray[Any], x: Tensor, weight: Tensor | None) -> tuple[Any, Any]:
        w = None if weight is None else weight.double().numpy()
        index = np.arange(len(X)) if w is None else w.nonzero()[0]
        if w is not None:
            X, w = (X[index][:, index] if self._is_square else X[index]), w[index]
        if self.metric == "euclidean" and self.algorithm == "auto" and X.shape[1] <= DEEP:
            return dense_groups(X, w, self.eps, self.min_samples), index
        return self._peer().fit(self._seen(X), sample_weight=w), index

    def _kept(self, found: Any, x: Tensor, index: Any) -> KeepGroups:
        core = found.core_sample_indices_
        return KeepGroups(
            torch.from_numpy(index[core]),
            torch.from_numpy(found.labels_[core]),
            reach=torch.full((max(1, int(found.labels_.max(initial=-1)) + 1),), float(self.eps)),
        )

    def _learned(self, energy: Any) -> dict[str, Any]:
        found, index = self._found
        return {
            **super()._learned(energy),
            "core_sample_indices_": index[found.core_sample_indices_],
        }
