"""Rows of any kind as a frame of columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray


def frame_of(X: Any) -> pl.DataFrame:
    """The columns of a table, a frame or an array, which calls them ``x0, x1, …``."""
    inner = getattr(X, "frame", None)
    if isinstance(inner, pl.DataFrame):
        return inner
    if hasattr(X, "columns"):
        import narwhals.stable.v1 as nw

        native: pl.DataFrame = nw.from_native(X, eager_only=True).to_polars()
        return native
    array = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
    array = array.reshape(len(array), -1)
    return pl.DataFrame({f"x{j}": array[:, j] for j in range(array.shape[1])})


def numeric_columns(frame: pl.DataFrame) -> dict[str, NDArray[np.float64]]:
    """The columns of numbers, NaN where a value is missing."""
    return {
        name: frame[name].cast(pl.Float64).fill_null(float("nan")).to_numpy()
        for name in frame.columns
        if frame[name].dtype.is_numeric() or frame[name].dtype == pl.Boolean
    }
