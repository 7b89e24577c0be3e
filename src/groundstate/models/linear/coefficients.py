"""Linear energies seen as scikit-learn's ``coef_`` and ``intercept_``."""

from __future__ import annotations

from typing import Any

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


def sparsify(model: Any) -> Any:
    """Turn ``coef_`` into a sparse matrix, which is smaller where most weights are zero."""
    check_is_fitted(model, "coef_")
    model.coef_ = csr_matrix(model.coef_)
    return model


def densify(model: Any) -> Any:
    """Turn ``coef_`` back into an array, as it is after ``fit``."""
    check_is_fitted(model, "coef_")
    model.coef_ = model.coef_.toarray() if issparse(model.coef_) else model.coef_
    return model
