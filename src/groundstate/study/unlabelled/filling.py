"""Missing cells filled from the rest of their rows, and how well that works where the truth is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundstate.compute.random import Key
from groundstate.data import Table
from groundstate.models.tables.table import TablePredictor
from groundstate.study.unlabelled.cells import Numbers, columns_of, draws_of, ranges_of, truth_of

F64 = NDArray[np.float64]
LEVEL = 0.9
_ROWS = 100  # test rows whose cells are hidden
_COLUMNS = 40
_DRAWS = 48
_CELLS = 5_000  # filled at once
_RESAMPLES = 1_000


def filling_facts(
    model: TablePredictor, train: Table, rest: Table, key: Key
) -> list[dict[str, Any]]:
    """How well one hidden cell is filled from the rest of its row, column by column.

    Each known cell of the test rows is hidden in turn. ``skill`` is the share of the loss of the
    best constant answer of the training rows (mean, or most frequent level) that is saved: squared
    error for numbers, errors for categories; ``covered`` is how often the 90 % interval of a number
    held the truth.
    """
    rows = rest.take(np.arange(min(rest.n_rows, _ROWS)))
    out = []
    for column in columns_of(model)[:_COLUMNS]:
        kind = model.schema_[column].kind
        truth, seen = truth_of(rows, column, kind), truth_of(train, column, kind)
        known = np.array([v is not None and v == v for v in truth])
        if known.sum() < 10:
            continue
        part, values = rows.take(np.flatnonzero(known)), [v for v, k in zip(truth, known) if k]
        drawn = draws_of(model, part, column, key.fold("hidden", column), _DRAWS)
        fact: dict[str, Any] = {"column": column, "n": int(known.sum())}
        if isinstance(drawn, Numbers):
            exact, low_high = np.array(values), drawn.interval(LEVEL)
            loss = (drawn.mean - exact) ** 2
            base = (np.nanmean(seen) - exact) ** 2
            inside = (exact >= low_high[:, 0]) & (exact <= low_high[:, 1])
            fact["covered"] = float(inside.mean())
        else:
            names, counts = np.unique([v for v in seen if v is not None], return_counts=True)
            common = names[counts.argmax()]
            loss = np.array([a != b for a, b in zip(drawn.mode, values)], np.float64)
            base = np.array([common != v for v in values], np.float64)
            fact["covered"] = None
        out.append({**fact, **_skill(loss, base, key.fold("skill", column))})
    return out


def _skill(loss: F64, base: F64, key: Key) -> dict[str, float | None]:
    """1 - loss/base with a percentile interval of resampled rows."""
    if not base.sum() > 0:
        return {"skill": None, "lo": None, "hi": None}
    picks = key.numpy().integers(0, len(loss), (_RESAMPLES, len(loss)))
    below = base[picks].sum(1)
    ratios = 1 - loss[picks].sum(1)[below > 0] / below[below > 0]
    low, high = np.quantile(ratios, [0.025, 0.975])
    return {"skill": float(1 - loss.sum() / base.sum()), "lo": float(low), "hi": float(high)}


def filled_cells(model: TablePredictor, table: Table, key: Key) -> pl.DataFrame | None:
    """Every missing cell with its best value and how sure that is; None where nothing is missing.

    Columns: row (from 1), column, value, low and high (90 % interval of a number), probability (of
    a level).
    """
    found, ranges = [], ranges_of(table)
    for column in columns_of(model):
        missing = np.flatnonzero(table.frame[column].is_null().to_numpy())
        for at in range(0, len(missing), _CELLS):
            part = missing[at : at + _CELLS]
            own = key.fold("missing", column, *([at] if at else []))
            drawn = draws_of(model, table.take(part), column, own, _DRAWS)
            if isinstance(drawn, Numbers):
                low_high = drawn.interval(LEVEL, ranges.get(column))
                values = [f"{v:.6g}" for v in drawn.best(ranges.get(column))]
                sure = [(float(f"{a:.6g}"), float(f"{b:.6g}"), None) for a, b in low_high]
            else:
                values = drawn.mode
                sure = [(None, None, float(p)) for p in drawn.probability.max(1)]  # type: ignore[misc]
            found += [
                (int(i) + 1, column, v, *s) for i, v, s in zip(part, values, sure, strict=True)
            ]
    if not found:
        return None
    names = ["row", "column", "value", "low", "high", "probability"]
    types = [pl.Int64, pl.String, pl.String, pl.Float64, pl.Float64, pl.Float64]
    return pl.DataFrame(found, schema=dict(zip(names, types)), orient="row")
