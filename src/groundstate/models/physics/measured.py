"""Measurements of an unknown function, checked."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.errors import DataError, ShapeError
from groundstate.models.arrays import unwrap
from groundstate.models.physics.problem import Problem

Array = NDArray[np.float64]


def measurements(
    problem: Problem, X: Any, y: Any, weight: Any
) -> tuple[Array | None, Array | None, Array | None]:
    """Points ``(n, d)``, values ``(n, m)`` and weights ``(n,)``; None where there are none."""
    if X is None and y is None:
        return None, None, None
    if X is None or y is None:
        raise ValueError("measurements are points X and values u: pass both, or neither")
    names, m = problem.domain.names, len(problem.unknowns)
    X = np.asarray(unwrap(X)[0], dtype=np.float64)
    u = np.asarray(unwrap(y)[0], dtype=np.float64)
    u = u[:, None] if u.ndim == 1 else u
    if X.ndim != 2 or X.shape[1] != len(names):
        raise ShapeError(f"X must be points (n, {len(names)}) of {', '.join(names)}, got {X.shape}")
    if u.shape != (len(X), m) or not len(X):
        raise ShapeError(
            f"u must hold {', '.join(problem.unknowns)} at each of {len(X)} points, got {u.shape}"
        )
    if not np.isfinite(X).all() or np.isinf(u).any() or np.isnan(u).all(1).any():
        raise DataError("X or u holds NaN or infinity (NaN is allowed for single components of u)")
    if weight is not None:
        weight = np.asarray(unwrap(weight)[0], dtype=np.float64)
        if weight.shape != (len(X),) or (weight < 0).any() or not weight.sum() > 0:
            raise ValueError(
                f"sample_weight must be ({len(X)},), at least 0 and with a positive sum"
            )
    return X, u, weight
