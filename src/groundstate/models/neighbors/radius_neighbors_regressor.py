"""Regression by all rows within a radius."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
from torch import Tensor

from groundstate.energy.neighbors.within import RadiusValueEnergy
from groundstate.learn import Naive
from groundstate.learn.solvers.neighbors import Memorise
from groundstate.models import settings
from groundstate.models.base import Plan
from groundstate.models.neighbors.radius import radius_neighbors, radius_neighbors_graph
from groundstate.models.neighbors.search import NeighborSearch
from groundstate.models.roles import EnergyRegressor
from groundstate.models.traits import Traits
from groundstate.registry import models


@models.register(family="neighbors", task="regression", role="regressor", auto=False)
class RadiusNeighborsRegressor(NeighborSearch, EnergyRegressor):
    r"""Squared distance to the mean of all remembered rows within a radius.

    .. math:: e(x, y) = \tfrac12\Bigl\|y - \sum_{i : d(x, x_i) \le r} s_i(x)\,y_i\Bigr\|^2 ,

    with shares s that sum to one. Nothing is learned but the rows; a row of weight w is w rows. Where
    no row is near, the prediction is NaN, with a warning.

    ``predict(None)`` answers for the fitted rows, each by all others within the radius.

    Parameters
    ----------
    radius : float, default=1.0
        r; a row at exactly this distance counts.
    weights : {"uniform", "distance"} or callable, default="uniform"
        Equal weights, 1/distance (where exact hits win), or a function of an array of distances.

    Attributes
    ----------
    energy_ : RadiusValueEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import RadiusNeighborsRegressor
    >>> X = np.array([[0.0], [1.0], [5.0]])
    >>> RadiusNeighborsRegressor(1.0).fit(X, [1.0, 3.0, 9.0]).predict([[0.2]]).tolist()
    [2.0]
    """

    traits = Traits(
        space={
            "radius": settings.Real(0.1, 10.0, log=True),
            "weights": settings.Choice("uniform", "distance"),
            "p": settings.Choice(1, 2),
        }
    )
    n_neighbors: ClassVar[int] = 5  # of `kneighbors`, where none is given

    radius_neighbors = radius_neighbors
    radius_neighbors_graph = radius_neighbors_graph

    def __init__(
        self,
        radius: float = 1.0,
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

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        assert y is not None
        memory = self._memory()
        del memory["n_neighbors"]
        energy = RadiusValueEnergy(X.shape[1], y.shape[1], self.radius, **memory)
        return Plan(energy=energy, rule=Naive(), solver=Memorise())

    def predict(self, X: Any) -> Any:
        """Means of the rows within the radius, ``(n_samples,)`` or ``(n_samples, n_targets)``."""
        found = super().predict(X)
        if np.isnan(np.asarray(found.cpu() if isinstance(found, Tensor) else found)).any():
            warnings.warn(
                "One or more samples have no neighbors within specified radius; predicting NaN.",
                UserWarning,
                stacklevel=2,
            )
        return found
