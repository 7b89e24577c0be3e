"""Relevant components analysis."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from groundstate.learn import Naive
from groundstate.learn.solvers.metrics.relevant_components import RelevantComponents
from groundstate.models import settings
from groundstate.models.base import Plan
from groundstate.models.metrics.linear_metric import LinearMetricLearner
from groundstate.models.traits import Traits
from groundstate.registry import models


@models.register(family="metrics", task="representation", role="transformer")
class RCA(LinearMetricLearner):
    r"""Distances in units of the spread within the classes.

    .. math:: M = J^\top J = \Sigma_w^{-1}, \qquad
        \Sigma_w = \frac1{\sum_iw_i}\sum_iw_i(x_i - \mu_{y_i})(x_i - \mu_{y_i})^\top .

    What differs within a class does not matter, so that it counts for little. In closed form. The energy
    is that of `NeighborhoodComponentsAnalysis`.

    Parameters
    ----------
    n_components : int, default=None
        Rows of J; None is as many as features. Fewer are the directions in which the classes differ most.
    device : str or torch.device, default=None
    callbacks : sequence, default=None

    Attributes
    ----------
    components_ : (n_components, n_features) array
        J; rows of zeros where there is no spread within the classes.
    classes_ : (n_classes,) array
    energy_ : LinearMetricEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import RCA
    >>> X = np.array([[0.0, 0.0], [0.0, 2.0], [3.0, 1.0], [5.0, 1.0]])
    >>> RCA().fit(X, [0, 0, 1, 1]).get_mahalanobis_matrix().round(6).tolist()
    [[2.0, 0.0], [0.0, 2.0]]
    """

    traits = Traits(space={"n_components": settings.Whole(1, 8)})

    def __init__(
        self, n_components: int | None = None, *, device: Any = None, callbacks: Any = None
    ) -> None:
        self._keep(locals())

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        return Plan(energy=self._energy(X), rule=Naive(), solver=RelevantComponents())
