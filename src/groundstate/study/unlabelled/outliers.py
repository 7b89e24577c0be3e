"""Rows of the highest energy, and which of their cells the rest of the row does not expect."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.random import Key
from groundstate.data import Table
from groundstate.models.tables.table import TablePredictor
from groundstate.study.unlabelled.cells import (
    Levels,
    Numbers,
    Ranges,
    column_itself,
    columns_of,
    draws_of,
    ranges_of,
    truth_of,
)

ROWS = 10
_REASONS = 3  # columns named for a row
_COLUMNS = 40  # asked about; of more, those farthest from their middle
_NOTABLE = 2.0  # nats: two standard deviations, or a level of probability .14


def outlier_facts(
    model: TablePredictor, table: Table, energies: NDArray[np.float64], key: Key
) -> list[dict[str, Any]]:
    """The rows of highest energy with their energy, how rare that is, the cells that cause it,
    and those that are missing where few rows miss them."""
    odd = np.argsort(-energies, kind="stable")[:ROWS]
    rows = table.take(odd)
    reasons = _reasons(model, rows, table, key)
    gaps = _rarely_missing(table)
    return [
        {
            "row": int(i) + 1,
            "energy": float(energies[i]),
            "above": float((energies <= energies[i]).mean()),
            "missing": [name for name in gaps if rows.frame[name][place] is None],
            "reasons": reasons[place],
        }
        for place, i in enumerate(odd)
    ]


def _rarely_missing(table: Table) -> list[str]:
    """The columns in which a missing cell is as surprising as a value that is named."""
    few = math.exp(-_NOTABLE) * table.n_rows
    return [n for n in table.columns if 0 < table.frame[n].null_count() < few]


def _reasons(
    model: TablePredictor, rows: Table, table: Table, key: Key
) -> list[list[dict[str, Any]]]:
    """The cells of each row that the others do not expect, and those that are rarer still in their
    own columns, where cells explain each other (a column and its copy)."""
    found: list[list[dict[str, Any]]] = [[] for _ in range(rows.n_rows)]
    ranges, columns = ranges_of(table), _candidates(model, rows)
    for column in columns:
        drawn = draws_of(model, rows, column, key.fold("cell", column))
        for i, reason in _odd_cells(model, rows, column, drawn, ranges):
            found[i].append(reason)
    strongest = [max((one["surprise"] for one in own), default=0.0) for own in found]
    for column in columns:
        kind = model.schema_[column].kind
        drawn = column_itself(table, column, kind, model.schema_[column].integer, rows.n_rows)
        for i, reason in _odd_cells(model, rows, column, drawn, ranges):
            named = any(one["column"] == column for one in found[i])
            if reason["surprise"] > strongest[i] and not named:
                found[i].append({**reason, "alone": True})
    return [sorted(r, key=lambda one: -one["surprise"])[:_REASONS] for r in found]


def _odd_cells(
    model: TablePredictor, rows: Table, column: str, drawn: Numbers | Levels, ranges: Ranges
) -> Iterator[tuple[int, dict[str, Any]]]:
    truth = truth_of(rows, column, model.schema_[column].kind)
    surprise = drawn.surprise(truth)
    expected = drawn.interval(within=ranges[column]) if isinstance(drawn, Numbers) else ()
    for i in range(rows.n_rows):
        value = truth[i]
        if value is None or value != value or not surprise[i] >= _NOTABLE:
            continue  # a missing cell is not odd
        reason: dict[str, Any] = {"column": column, "surprise": float(surprise[i])}
        if isinstance(drawn, Numbers):
            low, high = expected[i]
            if low <= value <= high:
                continue  # far from the mean of draws that lie to one side
            reason |= {"value": float(value), "expected": [float(low), float(high)]}
        else:
            chance = float(drawn.of(truth)[i])
            reason |= {"value": str(value), "probability": chance, "expected": drawn.mode[i]}
        yield i, reason


def _candidates(model: TablePredictor, rows: Table) -> list[str]:
    """The columns to ask about."""
    columns = columns_of(model)
    if len(columns) <= _COLUMNS:
        return columns
    away = np.abs(model.prepare(rows)).max(0)  # prepared numbers have mean 0 and spread 1
    sizes = {name: len(e.names(name)) for name, e in model.preparation_.encoders_.items()}
    ends = np.cumsum(list(sizes.values()))
    far = {name: away[end - sizes[name] : end].max() for name, end in zip(sizes, ends, strict=True)}
    return sorted(columns, key=lambda name: -far[name])[:_COLUMNS]
