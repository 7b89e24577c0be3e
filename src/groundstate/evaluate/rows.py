"""Rows of whatever a table comes as: arrays, sparse matrices, frames, groundstate tables."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.rows import RowContainer
from groundstate.data import Table, rows_of
from groundstate.errors import DataError, ShapeError
from groundstate.models.weighted import n_rows, take

Floats = NDArray[np.float64]


def columns(X: Any) -> list[Any]:
    """What a row consists of, as arrays or containers to be hashed together."""
    if isinstance(X, RowContainer):
        return [X]
    if isinstance(X, list | tuple) and not _is_rectangle(X):
        return [rows_of(X).rows]
    if isinstance(X, Table):
        return [X.values(name) for name in X.columns]
    if hasattr(X, "columns") and not isinstance(X, np.ndarray):
        import narwhals.stable.v1 as nw

        frame = nw.from_native(X, eager_only=True)
        return [_plain(frame[name].to_numpy()) for name in frame.columns]
    return [X if hasattr(X, "tocsr") or hasattr(X, "detach") else np.asarray(X)]


def weights_of(sample_weight: Any, n: int) -> Floats:
    """One finite weight of at least zero for each row, one each by default."""
    if sample_weight is None:
        return np.ones(n)
    weights = np.asarray(sample_weight, np.float64)
    if weights.shape != (n,):
        raise ShapeError(f"sample_weight has shape {weights.shape}; expected one per row, ({n},)")
    if not np.isfinite(weights).all() or (weights < 0).any() or not weights.sum() > 0:
        raise DataError("sample_weight must be finite, not negative, and positive somewhere")
    return weights


def classes_of(y: Any) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """The distinct labels, sorted, and the number of each row's label.  # (K,), (N,)"""
    labels = np.asarray(y)
    try:
        classes, codes = np.unique(labels, return_inverse=True)
    except TypeError as error:
        raise DataError("the target mixes text and numbers; make it one of the two") from error
    return classes, codes.reshape(-1)


def sides(split: Any, whole: bool = False) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Training and test rows of any kind of split; validation rows train if it is ``whole``."""
    if hasattr(split, "train_rows"):
        held = whole and len(getattr(split, "val", ()))
        return np.asarray(split.development if held else split.train_rows), np.asarray(
            split.test_rows
        )
    train, test = split
    return np.asarray(train), np.asarray(test)


def _is_rectangle(rows: Any) -> bool:
    """Whether a list is of texts, numbers or lists of them, all of one length."""
    try:
        return bool(np.asarray(rows).dtype != object)
    except ValueError:  # rows of different length
        return False


def _plain(values: NDArray[Any]) -> NDArray[Any]:
    return values if values.dtype.kind in "fiubmMUS" else values.astype(object)


__all__ = ["Floats", "classes_of", "columns", "n_rows", "sides", "take", "weights_of"]
