"""Maps of fuzzy neighbours."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.energy.latent.embedding.fuzzy_map import FuzzyMapEnergy
from groundstate.learn.solvers.latent.embedding.common import metric_of
from groundstate.learn.solvers.latent.embedding.umap import FuzzyDescent
from groundstate.math.manifold.fuzzy import fuzzy_graph, membership_curve
from groundstate.models import settings
from groundstate.models.arrays import unwrap
from groundstate.models.base import Plan
from groundstate.models.distances import memory_of
from groundstate.models.manifolds.base import EnergyEmbedding
from groundstate.models.traits import Traits
from groundstate.registry import models


@models.register(family="manifolds", task="representation", role="embedding", auto=False)
class UMAP(ClassNamePrefixFeaturesOutMixin, EnergyEmbedding):
    r"""A map with the fuzzy neighbours that rows have among the features (UMAP).

    .. math::
        \min_Y\; -\sum_{i \ne j}\bigl[p_{ij}\log q_{ij} + (1 - p_{ij})\log(1 - q_{ij})\bigr], \qquad
        q_{ij} = \frac1{1 + a\|y_i - y_j\|^{2b}} ,

    with :math:`p_{ij}` the memberships of rows in each other's neighbourhoods. Pairs of the graph pull
    as often as :math:`p_{ij}` says; in place of all other pairs a few random rows push for every pull,
    which weighs the second term less than the formula does (see `FuzzyMapEnergy
    <groundstate.energy.latent.embedding.fuzzy_map>`). The rates of the steps fall with the square of what
    is left, to take the noise of the draws out. The same seed gives the same map.

    ``transform`` puts new rows into the frozen map, each where its energy is lowest by its own
    neighbours; rows that are in it stay.

    Parameters
    ----------
    n_neighbors : int, default=15
        Rows of a neighbourhood, the row itself counted: few show detail, many the large arrangement.
    metric_kwds : dict, default=None
        Parameters of the metric.
    n_epochs : int, default=None
        None is 500, and 200 beyond 10,000 rows.
    learning_rate : float, default=1.0
        Of the first epoch.
    init : {"spectral", "pca", "random"} or array (n_samples, n_components), default="spectral"
    min_dist : float, default=0.1
        How near rows may lie in the map.
    spread : float, default=1.0
        The scale of the map, at least ``min_dist``.
    set_op_mix_ratio : float, default=1.0
        Between the intersection (0) and the union (1) of the two directions of a pair.
    local_connectivity : float, default=1.0
        How many others belong to a neighbourhood entirely.
    repulsion_strength : float, default=1.0
        Weight of the pushes.
    negative_sample_rate : int, default=5
        Random rows that push for every pull.
    a, b : float, default=None
        Of q; None are fitted to ``min_dist`` and ``spread``.
    random_state : int, default=None
    n_jobs : int, default=None
        Accepted for umap-learn's sake; one thread takes the steps, in a fixed order.
    verbose : int, default=0
        Above zero, a progress bar.
    device : str or torch.device, default=None
        Where new rows are placed; the map itself is laid out on the CPU.
    callbacks : sequence, default=None
        Callbacks of groundstate or scikit-learn, called ten times.

    Attributes
    ----------
    embedding_ : (n_samples, n_components) array
    cross_entropy_ : float
        The energy of the map per row, its pushes estimated by random pairs.
    graph_ : (n_samples, n_samples) sparse array
        Memberships, computed when asked for.
    n_iter_ : int
        Epochs.
    energy_ : FuzzyMapEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import UMAP
    >>> X = np.repeat(np.eye(3), 20, axis=0) + np.random.default_rng(0).normal(0, 0.1, (60, 3))
    >>> model = UMAP(n_neighbors=8, random_state=0).fit(X)
    >>> Y = model.embedding_.reshape(3, 20, 2)
    >>> middle = Y.mean(1, keepdims=True)
    >>> within = np.linalg.norm(Y - middle, axis=2).max()
    >>> bool(np.linalg.norm(middle - middle[[1, 2, 0]], axis=2).min() > within)
    True
    """

    traits = Traits(
        space={
            "n_neighbors": settings.Whole(5, 50, log=True),
            "min_dist": settings.Real(0.001, 0.5, log=True),
        }
    )
    _runs_on = "answers"
    _store_private: ClassVar[tuple[str, ...]] = ("_levels", "_order")
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_neighbors": [Interval(Integral, 2, None, closed="left")],
        "metric_kwds": [dict, None],
        "n_epochs": [Interval(Integral, 0, None, closed="left"), None],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "init": [StrOptions({"spectral", "pca", "random"}), "array-like"],
        "min_dist": [Interval(Real, 0, None, closed="left")],
        "spread": [Interval(Real, 0, None, closed="neither")],
        "set_op_mix_ratio": [Interval(Real, 0, 1, closed="both")],
        "local_connectivity": [Interval(Real, 0, None, closed="neither")],
        "repulsion_strength": [Interval(Real, 0, None, closed="left")],
        "negative_sample_rate": [Interval(Integral, 1, None, closed="left")],
        "a": [Interval(Real, 0, None, closed="neither"), None],
        "b": [Interval(Real, 0, None, closed="neither"), None],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_neighbors: int = 15,
        n_components: int = 2,
        *,
        metric: Any = "euclidean",
        metric_kwds: dict[str, Any] | None = None,
        n_epochs: int | None = None,
        learning_rate: float = 1.0,
        init: Any = "spectral",
        min_dist: float = 0.1,
        spread: float = 1.0,
        set_op_mix_ratio: float = 1.0,
        local_connectivity: float = 1.0,
        repulsion_strength: float = 1.0,
        negative_sample_rate: int = 5,
        a: float | None = None,
        b: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _memory(self) -> dict[str, Any]:
        return memory_of(self.metric, self.metric_kwds)

    def _curve(self) -> tuple[float, float]:
        if (self.a is None) != (self.b is None):
            raise ValueError(f"give both a and b, or neither; got a={self.a}, b={self.b}")
        if self.a is not None and self.b is not None:
            return float(self.a), float(self.b)
        if self.min_dist > self.spread:
            raise ValueError(
                f"min_dist={self.min_dist} must be at most spread={self.spread}; raise spread"
            )
        return membership_curve(self.spread, self.min_dist)

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        init = self.init
        if not isinstance(init, str):
            init = check_array(unwrap(init)[0], dtype=np.float64, input_name="init")
            if init.shape != (len(X), self.n_components):
                raise ValueError(
                    f"init must hold the coordinates of all rows, ({len(X)}, {self.n_components}), "
                    f"got {init.shape}"
                )
            init = torch.from_numpy(init)
        a, b = self._curve()
        energy = FuzzyMapEnergy(
            X.shape[1], self.n_components, self.n_neighbors, a=a, b=b,
            connectivity=max(0.0, self.local_connectivity - 1.0),
            repulsion=self.repulsion_strength * self.negative_sample_rate, **self._memory(),
        )  # fmt: skip
        solver = FuzzyDescent(
            init, self.n_epochs, self.learning_rate, self.negative_sample_rate,
            self.repulsion_strength, self.set_op_mix_ratio, self.local_connectivity,
        )  # fmt: skip
        return self._planned(energy, solver)

    def _learned(self, energy: Any) -> dict[str, Any]:
        found = super()._learned(energy)
        history = self.__dict__.get("history_")
        if history is not None and history.objective:
            found["cross_entropy_"] = history.objective[-1]
            found["_order"] = self._ordered()
        return found

    @property
    def graph_(self) -> Any:
        check_is_fitted(self, "energy_")
        memory: Any = self.energy_.memory
        rows = memory.rows[:, memory.column] if memory.metric == "precomputed" else memory.rows
        metric, params = metric_of(memory)
        graph = fuzzy_graph(
            rows.detach().cpu().numpy(), self.n_neighbors, metric=metric, metric_params=params,
            set_op_mix_ratio=self.set_op_mix_ratio, local_connectivity=self.local_connectivity,
        )  # fmt: skip
        return graph[self._order][:, self._order]
