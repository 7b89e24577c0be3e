"""Saved models and the rows they are asked about."""

from __future__ import annotations

import sys
from typing import Any

from sklearn.base import is_classifier, is_regressor

from groundstate.data import Table, read
from groundstate.data.tables.match import matches
from groundstate.errors import DataError, Unsupported
from groundstate.models.rows.kinds import TABLE
from groundstate.models.tables.table import TablePredictor
from groundstate.registry import models as registered
from groundstate.study.rows.source import new_rows


def load_model(path: str, device: str | None) -> Any:
    """What a file holds, on the device asked for; not a model is an error that says so."""
    from groundstate.compute.device import resolve_device
    from groundstate.store import load

    model = load(path, device=str(resolve_device(device)))
    if not hasattr(model, "fit"):
        raise DataError(f"{path} holds a {type(model).__name__} and not a model")
    return model


def inner(model: Any) -> Any:
    """The estimator itself, without the preparation of columns."""
    return model.estimator_ if isinstance(model, TablePredictor) else model


def named(model: Any) -> str:
    """The class of the estimator, for messages."""
    return type(inner(model)).__name__


def rows_for(model: Any, source: str, edges: str | None = None) -> Any:
    """The rows of a source as the model wants them: a `Table`, a matrix for a bare estimator, or
    pictures, texts and nodes."""
    if isinstance(model, TablePredictor):
        found = read(source, schema=model.preparation_.schema_)
        for note in matches(found.notes):
            sys.stderr.write(f"note: {note}\n")
        return found
    if getattr(model, "rows", TABLE) != TABLE:
        return new_rows(model.rows, source, edges)
    table = read(source)
    names = getattr(model, "feature_names_in_", None)
    table = table.features if names is None else table.select([str(name) for name in names])
    wanted = getattr(model, "n_features_in_", table.n_columns)
    if table.n_columns != wanted:
        raise DataError(
            f"{named(model)} was fitted on {wanted} columns and {source!r} has {table.n_columns}"
        )
    return table.matrix()


def column_name(model: Any) -> str:
    """What the predicted column is called."""
    if isinstance(model, TablePredictor) and model.schema_.target is not None:
        return model.target_
    return "y" if is_classifier(inner(model)) or is_regressor(inner(model)) else "group"


def without_distribution(model: Any, what: str) -> Unsupported:
    """The error for a model that has no distribution of its rows."""
    role = next((row.role for row in registered if row.obj is type(inner(model))), "density")
    able = [
        row.name
        for row in registered
        if row.role == role and row.rows == "table" and hasattr(row.obj, "sample")
    ]
    advice = (
        f"models of its kind that have one: {', '.join(able)}" if able else "none of its kind has"
    )
    return Unsupported(
        f"{named(model)} answers for given rows and has no distribution of the rows themselves, so {what}; "
        f"{advice}"
    )


__all__ = [
    "Table",
    "column_name",
    "inner",
    "load_model",
    "named",
    "rows_for",
    "without_distribution",
]
