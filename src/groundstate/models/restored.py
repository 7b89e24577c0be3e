"""Prepared numbers back to the columns of a table, for draws and for best values of x."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundstate.data import Preparation

_DAY = 86_400e6  # microseconds


def restored(preparation: Preparation, X: NDArray[Any]) -> pl.DataFrame:
    """The columns whose prepared form is nearest to ``X`` (n, d).

    Numbers and dates are un-standardised, whole numbers rounded, a category is its largest column.
    Hashed text cannot be read back and is left out.

    Examples
    --------
    >>> prep = Preparation().fit({"size": [1.0, 3.0, 5.0], "colour": ["red", "blue", "red"]})
    >>> restored(prep, prep.transform({"size": [3.0], "colour": ["blue"]})).rows()
    [(3.0, 'blue')]
    """
    X = np.asarray(X, np.float64)
    state, schema = preparation.to_state(), preparation.schema_
    out: list[pl.Series] = []
    at = 0
    for name, encoder in state["encoders"].items():
        width = _width(encoder)
        block, at = X[:, at : at + width], at + width
        if encoder["kind"] == "numeric":
            whole = schema[name].integer
            out.append(pl.Series(name, _numbers(encoder, block, whole), nan_to_null=True))
        elif encoder["kind"] == "category":
            levels = [*encoder["levels"], *(["other"] if encoder["other"] else [])]
            levels += [None] if encoder["missing"] else []
            out.append(pl.Series(name, [levels[i] for i in block.argmax(1)], dtype=pl.String))
        elif encoder["kind"] == "date" and "elapsed" in encoder["parts"]:
            days = _numbers(encoder["numbers"][0], block, False)  # elapsed comes first
            stamps = pl.Series(name, days * _DAY, nan_to_null=True).round().cast(pl.Int64)
            out.append(stamps.cast(pl.Datetime("us")))
    return pl.DataFrame(out)


def _width(encoder: dict[str, Any]) -> int:
    kind = encoder["kind"]
    if kind == "numeric":
        return 1 + bool(encoder["indicator"])
    if kind == "category":
        return len(encoder["levels"]) + bool(encoder["other"]) + bool(encoder["missing"])
    if kind == "date":
        return sum(1 + bool(number["indicator"]) for number in encoder["numbers"])
    return int(encoder["size"])


def _numbers(encoder: dict[str, Any], block: NDArray[Any], whole: bool) -> NDArray[np.float64]:
    values = block[:, 0] * encoder["scale"] + encoder["mean"]
    values = np.round(values) if whole else values
    return np.where(block[:, 1] > 0.5, np.nan, values) if encoder["indicator"] else values


__all__ = ["restored"]
