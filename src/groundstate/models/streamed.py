"""Fits to rows that are not in memory: in pieces or over shards they learn what they learn from all.

A model of sums (`Streamed`) reads the pieces as they come. One that reads its rows many times
(`Mapped`) has them in a file, a memory map of the user or a copy that is gone after the fit, and works
as if they were in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.device import resolve_device
from groundstate.compute.mapped import mapped, pieces, written
from groundstate.compute.random import Key
from groundstate.errors import DataError
from groundstate.learn.base import Problem
from groundstate.models.arrays import tensor, unwrap
from groundstate.models.base import EnergyEstimator
from groundstate.models.bridge import callbacks_of
from groundstate.models.chunks import ROWS, Chunks, chunks_of
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
        named(self, chunks)
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


@dataclass(frozen=True)
class OnDisk:
    """Checked rows in a file, ``(N, d)``."""

    rows: Tensor


class Mapped(EnergyEstimator):
    """``fit`` also takes rows that are not in memory, and reads them as often as it needs."""

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        chunks = chunks_of(X, sample_weight, torch.device("cpu"))
        if chunks is None:
            return super()._fit(X, y, sample_weight)
        named(self, chunks)
        if _as_it_is(X):
            rows, at = mapped(X), 0
            for part in pieces(rows, ROWS):
                _finite(part, at, self._allow_nan)
                at += len(part)
        else:
            weights: list[NDArray[Any]] = []
            kind = np.float32 if chunks.dtype == torch.float32 else np.float64
            rows = written(_checked(chunks, weights, self._allow_nan), chunks.width, kind)
            sample_weight = np.concatenate(weights) if weights else None
            if sample_weight is not None and len(sample_weight) != len(rows):
                raise DataError("some pieces of the stream have weights and some have none")
        return super()._fit(OnDisk(rows), y, sample_weight)

    def _checked(self, X: Any, y: Any) -> tuple[Any, Any, dict[str, Any]]:
        return (X.rows, None, {}) if isinstance(X, OnDisk) else super()._checked(X, y)


def named(model: Any, chunks: Chunks) -> None:
    """Number and names of the columns of a stream."""
    model.n_features_in_ = chunks.width
    model.__dict__.pop("feature_names_in_", None)
    if chunks.names is not None:
        model.feature_names_in_ = np.asarray(chunks.names, dtype=object)


def _as_it_is(X: Any) -> bool:
    """Whether a memory map holds rows as solvers read them."""
    return (
        isinstance(X, np.memmap)
        and X.dtype.char in "fd"
        and X.dtype.isnative
        and X.flags.c_contiguous
    )


def _checked(chunks: Chunks, weights: list[NDArray[Any]], missing: bool) -> Iterator[NDArray[Any]]:
    """The rows of a stream, whose weights are put into a list."""
    at = 0
    for batch in chunks:
        _finite(batch["x"], at, missing)
        at += len(batch["x"])
        if "weight" in batch:
            weights.append(batch["weight"].double().numpy())
        yield batch["x"].numpy()


def _finite(x: Tensor, at: int, missing: bool) -> None:
    bad = torch.isinf(x) if missing else ~torch.isfinite(x)
    if bool(bad.any()):
        row, column = bad.nonzero()[0].tolist()
        raise DataError(
            f"Input X contains {float(x[row, column])} in row {at + row}, column {column} of the "
            "stream; fill or leave out such rows before the fit"
        )
