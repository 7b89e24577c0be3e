"""Linear energies seen as scikit-learn's ``coef_`` and ``intercept_``."""

from __future__ import annotations

from typing import Any, Self

import torch
from scipy.sparse import csr_matrix, issparse
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from groundstate.models.learned import Learned


def output_part(name: str) -> Learned:
    """W or b of outputs, ``(m, d)`` and ``(m,)``; ``(d,)`` and a number for one flat target."""

    def read(model: Any) -> Tensor | None:
        part: Tensor | None = getattr(model.energy_, name)
        column = part is not None and part.ndim == 1 and getattr(model, "_column_target", False)
        flat = part is not None and model._flat_target and not column
        return part[0] if flat and part is not None else part

    return Learned(read)


def class_part(name: str) -> Learned:
    """W or b of classes, ``(K, d)`` and ``(K,)``; one row for two classes, their difference."""

    def read(model: Any) -> Tensor:
        W, part = model.energy_.W, getattr(model.energy_, name)
        part = W.new_zeros(len(W)) if part is None else part
        return part[1:] - part[:1] if len(W) == 2 else part

    def write(model: Any, value: Tensor) -> None:
        part = getattr(model.energy_, name)
        if part is not None:
            part.copy_(torch.cat([-value / 2, value / 2]))
        elif value.any():
            raise ValueError(
                f"{type(model).__name__} was fitted without an intercept; fit it with "
                "fit_intercept=True to have one"
            )

    return Learned(read, write)


class SparseCoefficients:
    """``coef_`` kept sparse or dense, as its owner likes; predictions do not depend on it."""

    coef_ = class_part("W")
    intercept_ = class_part("b")

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
    coef_ = output_part("W")
    intercept_ = output_part("b")

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


__all__ = ["ColumnTargets", "SparseCoefficients", "class_part", "output_part"]
