"""What the models of maps have in common: a place for each row, and the energy of one more."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import Any, ClassVar

import torch
from sklearn.base import TransformerMixin as SklearnTransformerMixin
from sklearn.utils import Tags
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval
from groundstate.compute.thread_policy import answering
from groundstate.errors import DataError
from groundstate.learn import Naive
from groundstate.learn.base import Solver
from groundstate.learn.solvers.latent.embedding.common import laid_out, repeated
from groundstate.models import settings
from groundstate.models.arrays import unwrap
from groundstate.models.base import EnergyEstimator, Plan
from groundstate.models.distances import GivenDistances, memory_of
from groundstate.models.traits import Traits


class EnergyEmbedding(SklearnTransformerMixin, GivenDistances):
    r"""A place :math:`y_i` for each row of one table; a new row goes where its energy is lowest.

    Parameters
    ----------
    n_components : int
    metric : str or callable
        Also "manhattan", "cosine" and others of `groundstate.NearestNeighbors`, or "precomputed": X
        then holds the distances between all rows.
    metric_params : dict
    neighbors_algorithm : str
        Accepted for scikit-learn's sake; the search is exact.
    random_state : int
        Accepted for scikit-learn's sake; nothing is random.

    Attributes
    ----------
    embedding_ : (n_samples, n_components) array
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "metric": [str, callable],
        "metric_params": [dict, None],
    }
    traits = Traits(space={"n_components": settings.Whole(1, 3)})
    _places_known_rows: ClassVar[bool] = False  # whether the energy is least at the places of a fit
    _laid: Tensor
    _index: Any  # numbers of the rows that have a place of their own, during a fit
    embedding_: Any
    n_components: int
    metric_params: dict[str, Any] | None

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        assert tags.transformer_tags is not None
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _min_rows(self) -> int:
        return 2

    def _checked_distances(self, D: Any, graph: bool) -> None:
        super()._checked_distances(D, graph)
        check_distances(D, symmetric=not graph)

    def _planned(self, energy: Any, solver: Solver) -> Plan:
        return Plan(energy=energy, rule=Naive(latent="minimise"), solver=solver)

    def _memory(self) -> dict[str, Any]:
        """Arguments of the energy's memory."""
        return memory_of(self.metric, self.metric_params, getattr(self, "p", 2.0))

    def _run(self, plan: Plan, data: Any, weight: Any, callbacks: Any, checked: bool) -> Any:
        self.__dict__.pop("_laid", None)
        history = super()._run(plan, data, weight, callbacks, checked)
        self._index = history.about.pop("places", None)
        self._laid = self._places(plan.energy, data["x"], weight)
        return history

    def _places(self, energy: Any, x: Tensor, weight: Tensor | None) -> Tensor:
        """Coordinates of all rows, in their order."""
        index = repeated(x, weight) if self._index is None else self._index
        return laid_out(energy, x, index, energy.Y.detach())

    def _learned(self, energy: Any) -> dict[str, Any]:
        if "_laid" not in self.__dict__:  # asked by a callback, on the way
            return {"embedding_": energy.Y.detach().cpu().numpy()}
        return {"embedding_": self._laid.cpu().numpy()}

    def _ordered(self) -> Any:
        """Where the rows of the table stand among those that the energy remembers, ``(n,)``."""
        return self._index.argsort(stable=True).cpu().numpy()

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Lay out the map of rows ``X`` (n_samples, n_features), or of distances between them.

        ``sample_weight`` holds whole numbers: a weight of 2 is the row twice, one of 0 a row that
        takes no part and is placed afterwards.
        """
        self.fit_transform(X, y, sample_weight)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Lay out the map; the places of the rows, ``(n_samples, n_components)``."""
        try:
            EnergyEstimator.fit(self, X, y, sample_weight)
            return unwrap(X)[1].give(self._laid) if isinstance(X, Tensor) else self.embedding_
        finally:
            for name in ("_laid", "_index"):
                self.__dict__.pop(name, None)

    def transform(self, X: Any) -> Any:
        """Places of new rows, each where its energy is lowest with the map held fixed.

        A row that is in the map stays where it is.

        Returns
        -------
        (n_samples, n_components)
        """
        x, home = self._rows(X)
        with answering(self.energy_, x):
            return home.give(self._placed(x))

    @torch.no_grad()
    def _placed(self, x: Tensor) -> Tensor:
        energy: Any = self.energy_
        if self._places_known_rows:
            placed: Tensor = energy.place(x)
            return placed
        index = energy.memory.nearest(x, 1)[1][:, 0]
        known = (energy.memory.rows[index] == x).all(1)
        out = energy.Y.detach()[index].to(x.dtype)
        if not bool(known.all()):
            out[~known] = energy.place(x[~known])
        return out

    def energy(self, X: Any, y: Any = None, z: Any = None) -> Any:
        """Energy of each row at place z, low where it fits the map, ``(n_samples,)``.

        Without z, at the place that ``transform`` gives it.
        """
        x, home = self._rows(X)
        with answering(self.energy_, x):
            place = self._placed(x) if z is None else self._observed({"z": z})["z"]
            return home.give(self.energy_(x=x, z=place))

    def infer(
        self, observed: Mapping[str, Any], free: Any, mode: Any = "min", **settings: Any
    ) -> Any:
        """As of every estimator; the best z of observed x is what ``transform`` gives."""
        if free == "z" and mode == "min" and set(observed) == {"x"}:
            return self.transform(observed["x"])
        return super().infer(observed, free, mode, **settings)

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])


def check_distances(D: Any, symmetric: bool = True) -> None:
    """Refuse what cannot be the distances between the rows of a table, or those of near rows."""
    table = torch.as_tensor(D)
    scale = float(torch.where(table.isinf(), 0.0, table).abs().max())
    if symmetric and (gap := float((table - table.T).abs().max())) > 1e-5 * scale:
        raise DataError(
            f"metric='precomputed' needs symmetric distances, got a pair that differs by {gap:g}; "
            "pass (D + D.T) / 2 if that is meant"
        )
    if float(table.diagonal().abs().max()) > 1e-5 * scale:
        raise DataError(
            "metric='precomputed' needs distances that are zero on the diagonal, got "
            f"{float(table.diagonal().abs().max()):g}"
        )
