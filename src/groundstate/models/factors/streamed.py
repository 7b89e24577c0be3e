"""Models that are learned from sums: rows in memory, in pieces or over shards give the same."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from torch import Tensor

from groundstate.compute.device import resolve_device
from groundstate.compute.random import Key
from groundstate.learn.base import Problem
from groundstate.models.arrays import tensor, unwrap
from groundstate.models.base import EnergyEstimator
from groundstate.models.bridge import callbacks_of
from groundstate.models.chunks import Chunks, chunks_of
from groundstate.models.resident import places
from groundstate.models.validation import validate_data


class Streamed(EnergyEstimator):
    """``fit`` also takes rows that are not in memory, see ``groundstate.models.chunks``."""

    _counts_rows: bool = True  # False while the rows that ``_build`` sees are the first of a stream

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        device = resolve_device(getattr(self, "device", None))
        chunks = chunks_of(X, sample_weight, device)
        if chunks is None:
            return super()._fit(X, y, sample_weight)
        self._named(chunks)
        self._counts_rows = False
        try:
            plan = self._build(chunks.first.to(device), None, None)
        finally:
            del self._counts_rows
        assert plan.solver is not None
        plan.energy.to(device, chunks.dtype)
        mine, _ = callbacks_of(self, plan.energy, X, y, sample_weight)
        key = Key.of(getattr(self, "random_state", 0))
        problem = Problem(plan.energy, plan.rule, chunks, None, plan.penalty, tuple(mine), key)
        history = plan.solver.run(problem)
        self.energy_, self.history_ = plan.energy, history
        self.n_iter_ = max(1, history.n_iter)
        for name, value in self._learned(plan.energy).items():
            setattr(self, name, value)
        return self

    def _named(self, chunks: Chunks) -> None:
        """Number and names of the columns of a stream."""
        self.n_features_in_ = chunks.width
        self.__dict__.pop("feature_names_in_", None)
        if chunks.names is not None:
            self.feature_names_in_ = np.asarray(chunks.names, dtype=object)

    def _more(self, X: Any, sample_weight: Any) -> tuple[Tensor, Tensor | None]:
        """Further rows for ``partial_fit`` and their weights, checked against those before."""
        first = "n_features_in_" not in vars(self)
        if first:
            rows, _, _ = self._checked(X, None)
        else:
            rows = self._again(X)
        weight = self._checked_weight(sample_weight, rows)
        device, _ = places(self, X)
        x = tensor(rows, device)
        return x, None if weight is None else tensor(weight, device)

    def _again(self, X: Any) -> Any:
        if self._stays(X) and X.shape[1] == self.n_features_in_:
            return X.detach()
        kept = [np.float64, np.float32]
        return validate_data(self, unwrap(X)[0], reset=False, dtype=kept, order="C")
