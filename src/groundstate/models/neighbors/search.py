"""What the neighbour models have in common: their settings and the search itself."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from scipy.sparse import csr_matrix
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from groundstate.models.arrays import Home
from groundstate.models.base import EnergyEstimator


class NeighborSearch(EnergyEstimator):
    """Settings, ``kneighbors`` and ``kneighbors_graph``."""

    _store_skip: ClassVar[tuple[str, ...]] = ("callbacks",)
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "weights": [StrOptions({"uniform", "distance"}), callable, None],
        "algorithm": [StrOptions({"auto", "ball_tree", "kd_tree", "brute"})],
        "leaf_size": [Interval(Integral, 1, None, closed="left")],
        "p": [Interval(Real, 0, None, closed="right")],
        "metric": [str, callable],
        "metric_params": [dict, None],
        "n_jobs": [Integral, None],
        "device": "no_validation",  # type: ignore[dict-item]
        "callbacks": "no_validation",  # type: ignore[dict-item]
    }
    n_neighbors: int
    weights: Any
    algorithm: str
    p: float
    metric: Any
    metric_params: dict[str, Any] | None
    n_samples_fit_: int

    def _memory(self) -> dict[str, Any]:
        """Arguments of the energy's memory."""
        extra = dict(self.metric_params or {})
        VI = extra.pop("VI", None)
        p = extra.pop("p", self.p)
        if VI is None and "V" in extra:
            VI = np.linalg.inv(np.asarray(extra.pop("V"), dtype=np.float64))
        metric = self.metric
        if callable(metric):
            chosen = metric
            settings = extra
            metric = (lambda a, b: chosen(a, b, **settings)) if settings else chosen
        elif extra:
            raise ValueError(f"metric {metric!r} has no parameter {sorted(extra)[0]!r}")
        tree = self.algorithm in ("kd_tree", "ball_tree")
        return {
            "n_neighbors": self.n_neighbors,
            "votes": self.weights or "uniform",
            "metric": metric,
            "p": p,
            "VI": VI,
            "algorithm": "tree" if tree else self.algorithm,
        }

    def _learned(self, energy: Any) -> dict[str, Any]:
        return {
            "n_samples_fit_": len(energy.memory.rows),
            "effective_metric_": "euclidean"
            if self.metric == "minkowski" and self.p == 2
            else self.metric,
        }

    def kneighbors(
        self, X: Any = None, n_neighbors: int | None = None, return_distance: bool = True
    ) -> Any:
        """Distances and indices of the nearest rows, ``(n_queries, n_neighbors)`` each.

        Parameters
        ----------
        X : rows to ask about; None asks about the fitted rows, which are then not their own
            neighbours
        n_neighbors : how many; None takes the model's
        return_distance : False gives the indices alone
        """
        check_is_fitted(self, "energy_")
        k: Any = self.n_neighbors if n_neighbors is None else n_neighbors
        if not isinstance(k, Integral) or k < 1:
            raise ValueError(f"n_neighbors must be an integer of at least 1, got {k!r}")
        memory: Any = self.energy_.memory
        own = X is None
        x, home = (memory.rows, Home()) if own else self._rows(X)
        if int(k) + own > len(memory.rows):
            raise ValueError(
                f"Expected n_neighbors {'<' if own else '<='} n_samples_fit, but n_neighbors = {k}, "
                f"n_samples_fit = {len(memory.rows)}, n_samples = {len(x)}"
            )
        with torch.no_grad():
            distance, index = memory.nearest(x, k + own)
        if own:
            itself = index == torch.arange(len(x), device=index.device)[:, None]
            itself[~itself.any(1), -1] = True  # crowded out by equal rows: drop the last
            distance, index = (v[~itself].reshape(len(x), k) for v in (distance, index))
        if not return_distance:
            return home.give(index)
        return home.give(distance.to(x.dtype)), home.give(index)

    def kneighbors_graph(
        self, X: Any = None, n_neighbors: int | None = None, mode: str = "connectivity"
    ) -> csr_matrix:
        """The nearest rows as a sparse matrix ``(n_queries, n_samples_fit)`` of ones or distances."""
        if mode not in ("connectivity", "distance"):
            raise ValueError(f"mode must be 'connectivity' or 'distance', got {mode!r}")
        distance, index = (np.asarray(v) for v in self.kneighbors(X, n_neighbors))
        values = np.ones(index.size) if mode == "connectivity" else distance.ravel()
        starts = np.arange(0, index.size + 1, index.shape[1])
        shape = (len(index), self.n_samples_fit_)
        return csr_matrix((values, index.ravel(), starts), shape=shape)


__all__ = ["NeighborSearch"]
