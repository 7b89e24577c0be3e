"""Gaussian classes whose covariances an estimator of the user finds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import clone
from torch import Tensor

from groundstate.errors import Unsupported
from groundstate.learn.solvers.given_sums import Given
from groundstate.models.base import Plan
from groundstate.models.bayes.closed_form import ClosedFormClassifier


class EstimatedCovariance(ClosedFormClassifier):
    """``covariance_estimator``: an object with ``fit(X)`` and ``covariance_``, fitted to each class."""

    _store_skip: ClassVar[tuple[str, ...]] = ("callbacks", "covariance_estimator")
    solver: str
    shrinkage: Any
    covariance_estimator: Any

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        if self.covariance_estimator is None:
            return super()._build(X, y, weight)
        if self.solver == "svd":
            raise Unsupported("covariance_estimator needs solver='eigen' (or 'lsqr' where it is)")
        if self.shrinkage is not None and self.shrinkage != 0:
            raise ValueError("covariance_estimator and shrinkage are both given; set one of them")
        plan = super()._build(X, y, weight)
        assert y is not None
        return replace(plan, solver=Given(self._estimated(plan.energy, X, y, weight)))

    def _estimated(
        self, energy: Any, X: Tensor, y: Tensor, weight: Tensor | None
    ) -> dict[str, Tensor]:
        """Sums about the origin of the energy that have the estimated covariances."""
        stats: dict[str, Tensor] = energy.stats(weight, x=X, y=y)
        rows = X.cpu().numpy()
        times = np.ones(len(rows), int) if weight is None else _repeats(weight.cpu().numpy())
        label = y.cpu().numpy()
        found = np.stack([
            self._covariance(np.repeat(rows[label == k], times[label == k], axis=0))
            for k in range(len(self.classes_))
        ])  # fmt: skip
        n = stats["n"].clamp_min(1e-300)[:, None, None]
        shift = stats["x"][:, :, None] / n  # (k, d, 1)
        square = n * (torch.from_numpy(found).to(stats["x"]) + shift @ shift.mT)
        return {**stats, "xx": square if energy.shape.per_class else square.sum(0)}

    def _covariance(self, rows: NDArray[Any]) -> NDArray[np.float64]:
        model = clone(self.covariance_estimator).fit(rows)
        if not hasattr(model, "covariance_"):
            raise ValueError(f"{type(model).__name__} does not have a covariance_ attribute")
        return np.atleast_2d(np.asarray(model.covariance_, dtype=np.float64))

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from further rows; the result is that of ``fit`` on all rows seen so far."""
        if self.covariance_estimator is not None:
            raise Unsupported(
                "a covariance_estimator sees all rows at once; use fit, or shrinkage instead"
            )
        return super().partial_fit(X, y, classes, sample_weight)


def _repeats(weight: NDArray[Any]) -> NDArray[np.int64]:
    times = weight.astype(np.int64)
    if not np.array_equal(times, weight):
        raise Unsupported(
            "a covariance_estimator knows of no weights: sample_weight must be whole numbers, which "
            "repeat rows"
        )
    return times


__all__ = ["EstimatedCovariance"]
