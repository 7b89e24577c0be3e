"""Linear energies seen as scikit-learn's ``coef_`` and ``intercept_``."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.sparse import csr_matrix, issparse
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from groundstate.energy.base import Energy


class SparseCoefficients:
    """``coef_`` kept sparse or dense, as its owner likes; predictions do not depend on it."""

    coef_: Any

    def sparsify(self) -> Self:
        """Turn ``coef_`` into a sparse matrix, which is smaller where most weights are zero."""
        check_is_fitted(self, "coef_")
        self.coef_ = csr_matrix(self.coef_)
        return self

    def densify(self) -> Self:
        """Turn ``coef_`` back into an array, as it is after ``fit``."""
        check_is_fitted(self, "coef_")
        self.coef_ = self.coef_.toarray() if issparse(self.coef_) else self.coef_
        return self


class ColumnTargets:
    """A target ``(n, 1)`` is one target: ``coef_`` is flat and predictions are, as in scikit-learn."""

    _column_target: bool = False

    def _target(self, y: Any) -> tuple[Any, dict[str, Any]]:
        found: tuple[Any, dict[str, Any]] = super()._target(y)  # type: ignore[misc]
        return self._flattened(found)

    def _resident_target(self, y: Any, X: Tensor) -> tuple[Tensor, dict[str, Any]] | None:
        found: Any = super()._resident_target(y, X)  # type: ignore[misc]
        return None if found is None else self._flattened(found)

    def _flattened(self, found: Any) -> Any:
        values, attributes = found
        column = not attributes["_flat_target"] and values.shape[1] == 1
        return values, {
            "_flat_target": attributes["_flat_target"] or column, "_column_target": column,
        }  # fmt: skip

    def _coefficients(self, energy: Energy, flat: bool) -> dict[str, Any]:
        found = output_coefficients(energy, flat)
        if self._column_target and energy.b is not None:
            found["intercept_"] = np.atleast_1d(found["intercept_"])
        return found


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
