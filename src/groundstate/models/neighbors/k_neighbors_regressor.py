"""Regression by the nearest rows."""

from __future__ import annotations

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

    ``predict(None)`` answers for the fitted rows, each by all others: what it would be if that row had been
    left out.

    Parameters
    ----------
    weights : {"uniform", "distance"} or callable, default="uniform"
        Equal weights, 1/distance (where exact hits win), or a function of the distances.

    Attributes
    ----------
    energy_ : NeighborValueEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import KNeighborsRegressor
    >>> X = np.array([[0.0], [1.0], [5.0]])
    >>> KNeighborsRegressor(2).fit(X, [1.0, 3.0, 9.0]).predict([[0.2]]).tolist()
    [2.0]
    """

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        assert y is not None
        energy = NeighborValueEnergy(X.shape[1], y.shape[1], **self._memory())
        return Plan(energy=energy, rule=Naive(), solver=Memorise())
