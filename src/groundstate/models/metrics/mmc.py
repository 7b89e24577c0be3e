"""Mahalanobis metric for clustering."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from torch import Tensor

from groundstate.compute.foreign.sklearn import StrOptions
from groundstate.learn import Naive
from groundstate.learn.solvers.metrics.clustering_metric import ClusteringMetric
from groundstate.models import settings
from groundstate.models.base import Plan
from groundstate.models.metrics.from_pairs import PRIORS, PairMetricLearner
from groundstate.models.traits import Traits
from groundstate.registry import models


@models.register(family="metrics", task="representation", role="transformer")
class MMC(PairMetricLearner):
    r"""The metric that keeps similar pairs together and puts different ones as far apart as it can.

    .. math::
        \max_{M \succeq 0}\ \sum_{v \in D}\sqrt{v^\top Mv} \qquad\text{under}\qquad
        \sum_{v \in S}v^\top Mv \le 1,

    v the difference of the rows of a pair, S the similar and D the different ones. Convex in M; found by
    L-BFGS over J with :math:`M = J^\top J` (Xing and others, 2002). Learns from labelled rows (``fit``),
    pairs (``fit_pairs``) or triplets (``fit_triplets``). The energy is that of
    `NeighborhoodComponentsAnalysis`.

    Parameters
    ----------
    init : {"identity", "covariance"} or array (n_features, n_features), default="identity"
        The first M; "covariance" is the inverse covariance of the rows.
    diagonal : bool, default=False
        Learn only scales of the features.
    tol : float, default=1e-6
    device : str or torch.device, default=None
    callbacks : sequence, default=None

    Attributes
    ----------
    components_ : (n_components, n_features) array
        J.
    classes_ : (n_classes,) array
    n_iter_ : int
    energy_ : LinearMetricEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import MMC
    >>> pairs = [[[0, 0], [0, 3]], [[1, 0], [1.5, 3]], [[0, 0], [1, 0]], [[0, 3], [1, 3]]]
    >>> M = MMC().fit_pairs(pairs, [1, 1, -1, -1]).get_mahalanobis_matrix()
    >>> bool(M[0, 0] > 20 * M[1, 1])
    True
    """

    traits = Traits(
        space={"diagonal": settings.Choice(False, True), "n_components": settings.Whole(1, 8)}
    )
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "init": [StrOptions(set(PRIORS)), np.ndarray],
        "diagonal": ["boolean"],
    }

    def __init__(
        self,
        init: Any = "identity",
        *,
        diagonal: bool = False,
        n_constraints: int | None = None,
        n_components: int | None = None,
        max_iter: int = 100,
        tol: float = 1e-6,
        random_state: Any = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        assert y is not None
        x, w, pairs = self._pairs(X, y, weight)
        solver = ClusteringMetric(
            pairs, self._first(self.init, x, w, "init"), self.diagonal, self.max_iter,
            float(self.tol), self._given is None,
        )  # fmt: skip
        return Plan(energy=self._energy(X), rule=Naive(), solver=solver)
