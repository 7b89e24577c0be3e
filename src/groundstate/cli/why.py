"""``groundstate predict --why``: the columns that moved each prediction most."""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
import polars as pl

from groundstate.cli.loading import rows_for
from groundstate.cli.screen import Screen
from groundstate.data.messages import count
from groundstate.errors import DataError
from groundstate.models.shapley import ShapleyValues, shapley_values
from groundstate.models.weighted import n_rows, take
from groundstate.study.progress import Progress, Step

COLUMNS = 3
_FEWEST, _MOST = 20, 100  # rows of the table itself that stand for typical ones


def why(
    model: Any, rows: Any, background: str | None, seed: int, nested: bool, screen: Screen
) -> dict[str, pl.Series]:
    """Further columns for the predictions: what moved them, and by how much.

    Parameters
    ----------
    background : file of typical rows; the model's own by default, else the rows themselves
    nested : one column of objects, for JSON, instead of plain columns
    """
    typical = _typical(model, rows, background)
    with screen.stages() as progress:
        found = shapley_values(
            model, rows, typical, random_state=seed, progress=_Walk(n_rows(rows), progress)
        )
    _tell_error(found)
    n = len(found.values)
    if nested:
        return {"why": pl.Series("why", [_explained(found, i) for i in range(n)], strict=False)}
    out: dict[str, list[Any]] = {"why": [found.sentence(i, COLUMNS) for i in range(n)]}
    for k in range(COLUMNS):
        tops = [found.top(i, COLUMNS) for i in range(n)]
        out[f"why_{k + 1}"] = [t[k]["column"] if k < len(t) else None for t in tops]
        out[f"amount_{k + 1}"] = [t[k]["amount"] if k < len(t) else None for t in tops]
    return {name: pl.Series(name, values, strict=False) for name, values in out.items()}


class _Walk:
    """Share of the explanations that is done, and the time left."""

    def __init__(self, n: int, progress: Progress) -> None:
        self.words, self.progress = f"explaining {count(n, 'row')}", progress
        self.began = time.monotonic()

    def __call__(self, done: float) -> None:
        step = Step(self.words)
        spent = time.monotonic() - self.began
        step.done, step.left = done, spent / max(done, 1e-9) * (1 - done)
        self.progress(step)


def _tell_error(found: ShapleyValues) -> None:
    """Say how far sampled amounts may be off, beside what they are."""
    if found.standard_error is None:
        return
    at = np.arange(len(found.values)), slice(None), found.about
    error, largest = found.standard_error[at], np.abs(found.values[at]).max(1)
    if not error.any():
        return
    sys.stderr.write(
        f"note: amounts are sampled: standard error {error[error > 0].mean():.2g} on average, beside "
        f"{largest.mean():.2g} of the first column; fewer rows at a time are sampled more\n"
    )


def _explained(found: ShapleyValues, i: int) -> dict[str, Any]:
    k = int(found.about[i])
    return {
        "about": str(found.outputs[k]),
        "units": found.units,
        "base": float(found.base[k]),
        "prediction": float(found.prediction[i, k]),
        "exact": found.exact,
        "method": found.method,
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
