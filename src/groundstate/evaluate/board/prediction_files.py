"""Predictions that come as files: a column of answers, and shares of classes where there are any."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.data import Table, read
from groundstate.data.messages import listing
from groundstate.errors import DataError
from groundstate.evaluate.predictions import Prediction

SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".arrow")
_NAMES = ("prediction", "y")


def is_predictions(path: str | os.PathLike[str]) -> bool:
    """Whether a file is a table, and not a saved model."""
    return Path(path).suffix.lower() in SUFFIXES


def truth_of(source: Table) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Class numbers and the classes of a table's target, or values and None.

    >>> from groundstate.data import read
    >>> truth, classes = truth_of(read({"x": [1, 2, 3], "y": ["b", "a", "b"]}).with_target("y"))
    >>> truth.tolist(), classes.tolist()
    ([1, 0, 1], ['a', 'b'])
    """
    if str(source.task) != "classification":
        return source.y.astype(np.float64), None
    classes, codes = np.unique(source.y, return_inverse=True)
    return codes, classes


def read_predictions(
    path: str | os.PathLike[str], n: int, target: str, classes: NDArray[Any] | None
) -> Prediction:
    """Answers for n rows from a file, as ``groundstate predict`` writes it.

    The column is the one called like the target, ``prediction`` or ``y``, or the only one. Columns
    ``p(label)``, one for each class, are probabilities.
    """
    found = read(os.fspath(path))
    if found.n_rows != n:
        raise DataError(f"{str(path)!r} has {found.n_rows} predictions for {n} rows")
    values = found.values(_column(path, found, target))
    if classes is None:
        return Prediction(_numbers(path, values))
    codes = _codes(path, values, classes)
    shares = [f"p({label})" for label in classes]
    table = None
    if all(column in found.columns for column in shares):
        table = np.stack([_numbers(path, found.values(c)) for c in shares], 1)
        if (table < 0).any() or (np.abs(table.sum(1) - 1) > 1e-3).any():
            raise DataError(f"{str(path)!r}: {listing(shares)} are not shares that add up to 1")
    return Prediction(codes, table, table, classes)


def _column(path: Any, found: Table, target: str) -> str:
    wanted = [name for name in (target, *_NAMES) if name in found.columns]
    if wanted:
        return wanted[0]
    rest = [name for name in found.columns if not name.startswith("p(")]
    if len(rest) == 1:
        return rest[0]
    raise DataError(
        f"{str(path)!r} has columns {listing(found.columns)}; call the one with predictions "
        f"{target!r}"
    )


def _numbers(path: Any, values: NDArray[Any]) -> NDArray[np.float64]:
    try:
        numbers = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{str(path)!r} holds predictions that are not numbers") from None
    if not np.isfinite(numbers).all():
        row = int(np.flatnonzero(~np.isfinite(numbers))[0])
        raise DataError(f"{str(path)!r} has no number in row {row + 1}; every row needs one")
    return numbers


def _codes(path: Any, values: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.intp]:
    """Class numbers of labels, which may be written as 1, 1.0 or '1'."""
    place = {_spelled(label): i for i, label in enumerate(classes.tolist())}
    codes = np.array([place.get(_spelled(v), -1) for v in values.tolist()], np.intp)
    if (codes < 0).any():
        row = int(np.flatnonzero(codes < 0)[0])
        known = listing([str(label) for label in classes])
        raise DataError(
            f"{str(path)!r} predicts {str(values[row])!r} in row {row + 1}, which is no class of "
            f"the target: {known}"
        )
    return codes


def _spelled(label: Any) -> str:
    if isinstance(label, float) and label.is_integer():
        return str(int(label))
    return str(label)
