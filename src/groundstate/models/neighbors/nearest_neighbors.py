"""Which rows are near."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.base import TransformerMixin as SklearnTransformerMixin
from sklearn.utils import Tags
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval
from groundstate.energy.neighbors.index import NeighborIndexEnergy
from groundstate.learn import Naive
from groundstate.learn.solvers.neighbors import Memorise
from groundstate.models.base import Plan
from groundstate.models.neighbors.radius import radius_neighbors, radius_neighbors_graph
from groundstate.models.neighbors.search import NeighborSearch
from groundstate.registry import models


@models.register(family="neighbors", task="representation", role="transformer", auto=False)
class NearestNeighbors(ClassNamePrefixFeaturesOutMixin, SklearnTransformerMixin, NeighborSearch):
    r"""The row that x is most like, as a hidden index.

    .. math:: e(x, z) = \tfrac12\,d(x, x_z)^2 - \log w_z , \qquad z \in \{1, \dots, n\} .

    Free z is search: the k lowest energies are the k nearest rows, :math:`p(z\mid x)` is the softmin
    of half the squared distances, and the energy of x alone is high where no row is near. Nothing
    is learned but the rows. Of equally distant rows the one that came first counts; a row of weight
    w is w rows and one of weight 0 is not there: indices count the rows that are.

    Parameters
    ----------
    radius : float, default=1.0
        How far ``radius_neighbors`` looks.

    Attributes
    ----------
    effective_metric_params_ : dict
    energy_ : NeighborIndexEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import NearestNeighbors
    >>> model = NearestNeighbors(n_neighbors=2).fit(np.array([[0.0], [1.0], [5.0]]))
    >>> distance, index = model.kneighbors([[0.75]])
    >>> distance.tolist(), index.tolist(), model.radius_neighbors([[5.5]])[1][0].tolist()
    ([[0.25, 0.75]], [[1, 0]], [2])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_neighbors": [Interval(Integral, 1, None, closed="left"), None],
        "radius": [Interval(Real, 0, None, closed="both"), None],
    }

    radius_neighbors = radius_neighbors
    radius_neighbors_graph = radius_neighbors_graph

    def __init__(
        self,
        *,
        n_neighbors: int = 5,
        radius: float = 1.0,
        algorithm: str = "auto",
        leaf_size: int = 30,
        metric: Any = "minkowski",
        p: float = 2,
        metric_params: dict[str, Any] | None = None,
        n_jobs: int | None = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        energy = NeighborIndexEnergy(X.shape[1], **self._memory())
        return Plan(energy=energy, rule=Naive(latent="minimise"), solver=Memorise())

    def _memory(self) -> dict[str, Any]:
        memory = super()._memory()
        return {k: v for k, v in memory.items() if k not in ("n_neighbors", "votes")}

    @property
    def _n_features_out(self) -> int:
        return self.n_neighbors

    def transform(self, X: Any) -> Any:
        """Distances to the nearest rows, the smallest first, ``(n_samples, n_neighbors)``."""
        return self.kneighbors(X)[0]
