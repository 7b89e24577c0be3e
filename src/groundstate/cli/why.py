"""``groundstate predict --why``: the columns that moved each prediction most."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from groundstate.cli.loading import rows_for
from groundstate.errors import DataError
from groundstate.models.shapley import ShapleyValues, shapley_values
from groundstate.models.weighted import n_rows, take

COLUMNS = 3
_FEWEST, _MOST = 20, 100  # rows of the table itself that stand for typical ones


def why(
    model: Any, rows: Any, background: str | None, seed: int, nested: bool
) -> dict[str, pl.Series]:
    """Further columns for the predictions: what moved them, and by how much.

    Parameters
    ----------
    background : file of typical rows; the model's own by default, else the rows themselves
    nested : one column of objects, for JSON, instead of plain columns
    """
    found = shapley_values(model, rows, _typical(model, rows, background), random_state=seed)
    n = len(found.values)
    if nested:
        return {"why": pl.Series("why", [_explained(found, i) for i in range(n)], strict=False)}
    out: dict[str, list[Any]] = {"why": [found.sentence(i, COLUMNS) for i in range(n)]}
    for k in range(COLUMNS):
        tops = [found.top(i, COLUMNS) for i in range(n)]
        out[f"why_{k + 1}"] = [t[k]["column"] if k < len(t) else None for t in tops]
        out[f"amount_{k + 1}"] = [t[k]["amount"] if k < len(t) else None for t in tops]
    return {name: pl.Series(name, values, strict=False) for name, values in out.items()}


def _explained(found: ShapleyValues, i: int) -> dict[str, Any]:
    k = int(found.about[i])
    return {
        "about": str(found.outputs[k]),
        "units": found.units,
        "base": float(found.base[k]),
        "prediction": float(found.prediction[i, k]),
        "exact": found.exact,
        "columns": [
            {**part, "value": None if part["value"] is None else str(part["value"])}
            for part in found.top(i, COLUMNS)
        ],
    }


def _typical(model: Any, rows: Any, background: str | None) -> Any:
    if background is not None:
        return rows_for(model, background)
    kept = getattr(model, "background_", None)
    if kept is not None:
        return kept
    n = n_rows(rows)
    if n < _FEWEST:
        raise DataError(
            f"--why compares with typical rows; the model keeps none and the table has {n}: name a "
            "file of training rows with --background"
        )
    return take(rows, np.arange(0, n, -(-n // _MOST)))
