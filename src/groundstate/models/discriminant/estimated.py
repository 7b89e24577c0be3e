"""Gaussian classes whose covariances an estimator of the user finds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import clone
from torch import Tensor

from groundstate.errors import Unsupported
from groundstate.learn.solvers.sufficient_statistics import FromStatistics
from groundstate.models.base import Plan


def with_covariances(model: Any, plan: Plan, X: Tensor, y: Tensor, weight: Tensor | None) -> Plan:
    """A plan with the covariances of ``covariance_estimator``, an object with ``fit(X)`` and
    ``covariance_`` that is fitted to each class; the plan itself where there is none.
    """
    if model.covariance_estimator is None:
        return plan
    if model.solver == "svd":
        raise Unsupported("covariance_estimator needs solver='eigen' (or 'lsqr' where it is)")
    if model.shrinkage is not None and model.shrinkage != 0:
        raise ValueError("covariance_estimator and shrinkage are both given; set one of them")
    return replace(plan, solver=FromStatistics(_estimated(model, plan.energy, X, y, weight)))


def _estimated(
    model: Any, energy: Any, X: Tensor, y: Tensor, weight: Tensor | None
) -> dict[str, Tensor]:
    """Sums about the origin of the energy that have the estimated covariances."""
    stats: dict[str, Tensor] = energy.stats(weight, x=X, y=y)
    rows = X.cpu().numpy()
    times = np.ones(len(rows), int) if weight is None else _repeats(weight.cpu().numpy())
    label = y.cpu().numpy()
    found = np.stack([
        _covariance(model, np.repeat(rows[label == k], times[label == k], axis=0))
        for k in range(len(model.classes_))
    ])  # fmt: skip
    n = stats["n"].clamp_min(1e-300)[:, None, None]
    shift = stats["x"][:, :, None] / n  # (k, d, 1)
    square = n * (torch.from_numpy(found).to(stats["x"]) + shift @ shift.mT)
    return {**stats, "xx": square if energy.shape.per_class else square.sum(0)}


def _covariance(model: Any, rows: NDArray[Any]) -> NDArray[np.float64]:
    own = clone(model.covariance_estimator).fit(rows)
    if not hasattr(own, "covariance_"):
        raise ValueError(f"{type(own).__name__} does not have a covariance_ attribute")
    return np.atleast_2d(np.asarray(own.covariance_, dtype=np.float64))


def _repeats(weight: NDArray[Any]) -> NDArray[np.int64]:
    times = weight.astype(np.int64)
    if not np.array_equal(times, weight):
        raise Unsupported(
            "a covariance_estimator knows of no weights: sample_weight must be whole numbers, which "
            "repeat rows"
        )
    return times
