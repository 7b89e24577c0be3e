"""Columns of categories at the door: words become the numbers of their levels."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import issparse
from torch import Tensor

from groundstate.models.arrays import Home, tensor, unwrap
from groundstate.models.entries import unique_names
from groundstate.models.validation import validate_data


class Categories:
    """How an estimator reads columns of categories, declared once for its class.

    A column of categories becomes the numbers of its levels, which are learned in ``fit`` and kept as
    ``_levels`` of the estimator; a level that was not seen there is treated as missing. Columns are
    categorical by the dtype of a frame (category, enum), or as ``categorical_features`` says where a
    model has it.

    Parameters
    ----------
    text : whether text is a category, whatever the dtype
    every : whether every column is one
    """

    def __init__(self, *, text: bool = False, every: bool = False) -> None:
        self.text, self.every = text, every

    def learned(self, model: Any, X: Any) -> Any:
        """Rows with numbers for the levels that a frame or text tells of, which are found here."""
        model._levels = {}
        if not self.text and model._stays(X) and not self.listed(model, X.shape[1]):
            return X
        return self.coded(model, self.table(model, X), learn=True)

    def numbered(self, model: Any, X: Any) -> Any:
        """Checked rows, with numbers for the levels of columns of numbers that are listed."""
        for j in self.listed(model, X.shape[1]):
            if j not in model._levels:
                model._levels[j] = np.unique(X[:, j][~np.isnan(X[:, j])])
                X = np.array(X)
                X[:, j] = _numbers(X[:, j], model._levels[j])
        return X

    def asked(self, model: Any, X: Any) -> tuple[Tensor, Home]:
        """New rows of a fitted estimator as a tensor, and where answers go."""
        home = unwrap(X)[1]
        X = self.table(model, X)
        device, dtype = model.energy_.placement()
        framed = self.coded(model, X, learn=False)
        kept = np.float64 if dtype == torch.float64 else np.float32
        rows = validate_data(
            model, framed, reset=False, dtype=kept, order="C", ensure_all_finite="allow-nan"
        )
        if framed is X:  # numbers of columns that were declared categorical
            rows = np.array(rows)
            for j, levels in model._levels.items():
                if levels.dtype.kind in "fiub":
                    rows[:, j] = _numbers(rows[:, j], levels)
        return tensor(rows, device), home

    def table(self, model: Any, X: Any) -> Any:
        """Rows as a frame or an array; lists with text become objects."""
        X, _ = unwrap(X)
        if self.text and not hasattr(X, "columns") and not hasattr(X, "dtype"):
            X = np.asarray(X, dtype=object if _has_text(X) else None)
        return X.toarray() if issparse(X) and model._accept_sparse == "dense" else X

    def coded(self, model: Any, X: Any, learn: bool) -> Any:
        """A frame with its category columns as numbers; everything else as it is."""
        if not hasattr(X, "columns"):
            text = self.text and getattr(X, "dtype", np.dtype(float)).kind in "OUS"
            return self._coded_columns(model, X, learn) if text and X.ndim == 2 else X
        import narwhals as nw

        unique_names(X)
        frame = nw.from_native(X, eager_only=True, pass_through=True)
        if not isinstance(frame, nw.DataFrame):
            return X
        new = []
        listed = set(
            self.listed(model, frame.shape[1], list(frame.columns)) if learn else model._levels
        )
        for j, name in enumerate(frame.columns):
            column = frame[:, j]
            by_dtype = column.dtype in (nw.Categorical, nw.Enum)
            if self.text:
                by_dtype |= not column.dtype.is_numeric()
            coded = by_dtype or (j in listed and not column.dtype.is_numeric())
            if not coded and (learn or j not in model._levels):
                continue
            codes = _codes(model, j, np.array(column.to_list(), dtype=object), learn)
            if codes is None:
                continue
            new.append(nw.new_series(name, codes, nw.Float64, backend=frame.implementation))
        return frame.with_columns(new).to_native() if new else X

    def _coded_columns(self, model: Any, X: NDArray[Any], learn: bool) -> NDArray[Any]:
        """An array of objects with its text columns as numbers."""
        out = np.empty(X.shape)
        for j in range(X.shape[1]):
            values = X[:, j]
            words = any(isinstance(v, str) for v in values) if learn else j in model._levels
            codes = _codes(model, j, values, learn) if words else None
            if codes is None:
                codes = np.array([float(v) if _known(v) else np.nan for v in values])
            out[:, j] = codes
        return out

    def listed(self, model: Any, d: int, names: list[str] | None = None) -> list[int]:
        """Columns that are declared categorical, by the class or by its user."""
        if self.every:
            return list(range(d))
        given = getattr(model, "categorical_features", None)
        if given is None or (isinstance(given, str) and given == "from_dtype"):
            return []
        array = np.asarray(given)
        if array.dtype.kind == "b":
            if len(array) != d:
                raise ValueError(
                    f"categorical_features is a mask of {len(array)} columns, but X has {d}; give "
                    "one entry per column"
                )
            return [int(j) for j in np.flatnonzero(array)]
        if array.dtype.kind in "iu":
            if len(array) and (array.min() < 0 or array.max() >= d):
                raise ValueError(
                    f"categorical_features names column {array.max()}, but X has {d} columns"
                )
            return [int(j) for j in array]
        known = names if names is not None else list(getattr(model, "feature_names_in_", []))
        missing = [name for name in array.tolist() if name not in known]
        if missing:
            raise ValueError(f"categorical_features names {missing[0]!r}, which X does not have")
        return [known.index(name) for name in array.tolist()]


def _codes(model: Any, j: int, values: NDArray[Any], learn: bool) -> NDArray[np.float64] | None:
    """The numbers of the levels of a column, NaN for missing and unseen ones."""
    known = np.array([_known(v) for v in values], dtype=bool)
    if learn:
        model._levels[j] = np.unique(values[known].astype(_kind(values[known])))
    if j not in model._levels:
        return None
    place = {v: float(i) for i, v in enumerate(model._levels[j].tolist())}
    text = model._levels[j].dtype.kind == "U"
    codes = np.full(len(values), np.nan)
    for i in np.flatnonzero(known):
        codes[i] = place.get(str(values[i]) if text else values[i], np.nan)
    return codes


def _known(value: Any) -> bool:
    """Whether a value is there: not None, NaN or a table's own mark of what is missing."""
    same = value == value
    return value is not None and isinstance(same, bool | np.bool_) and bool(same)


def _has_text(X: Any) -> bool:
    """Whether rows given as lists hold text."""
    try:
        return any(isinstance(v, str) for row in X for v in row)
    except TypeError:
        return False


def _kind(values: NDArray[Any]) -> Any:
    """Numbers stay numbers, anything else is read as text."""
    numeric = all(isinstance(v, int | float | np.number) for v in values)
    return np.float64 if numeric else str


def _numbers(column: NDArray[Any], levels: NDArray[Any]) -> NDArray[Any]:
    """The number of each value's level, NaN for unknown ones."""
    if not len(levels):
        return np.full_like(column, np.nan)
    at = np.minimum(np.searchsorted(levels, column), len(levels) - 1)
    return np.where(levels[at] == column, at, np.nan).astype(column.dtype)
