"""Linear energies seen as scikit-learn's ``coef_`` and ``intercept_``."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from groundstate.energy.base import Energy


def class_coefficients(energy: Energy) -> dict[str, Any]:
    """``coef_`` ``(K, d)`` and ``intercept_`` ``(K,)``; one row for two classes, their difference."""
    W, b = _arrays(energy)
    if len(W) == 2:
        W, b = W[1:] - W[:1], b[1:] - b[:1]
    return {"coef_": W, "intercept_": b}


def output_coefficients(energy: Energy, flat: bool) -> dict[str, Any]:
    """``coef_`` ``(m, d)`` and ``intercept_`` ``(m,)``; ``(d,)`` and a scalar for one flat target."""
    W, b = _arrays(energy)
    has_intercept = energy.b is not None
    if flat:
        return {"coef_": W[0], "intercept_": float(b[0]) if has_intercept else 0.0}
    return {"coef_": W, "intercept_": b if has_intercept else 0.0}


def _arrays(energy: Energy) -> tuple[Any, Any]:
    weight: Tensor = energy.W  # type: ignore[assignment]
    bias: Tensor | None = energy.b  # type: ignore[assignment]
    W = weight.detach().cpu().numpy().copy()
    b = np.zeros(len(W), W.dtype) if bias is None else bias.detach().cpu().numpy().copy()
    return W, b
