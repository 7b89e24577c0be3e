"""Entries of X and y that are no numbers: which they are, where, and what to do with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.errors import DataError


def no_numbers(estimator: Any, X: Any) -> str:
    """One sentence on why X is no table of numbers; empty where it is one, or something else is wrong.

    >>> no_numbers(None, [[1.0, 2.0], [3.0]])
    'rows of X differ in length: row 0 has 2 values and row 1 has 1'
    """
    if isinstance(X, list | tuple):
        return _uneven(X) or _no_number_in(estimator, np.asarray(X, dtype=object))
    if hasattr(X, "columns") and hasattr(X, "shape"):
        for name in X.columns:
            found = _first(np.asarray(X[name]))
            if found is not None:
                return _sentence(estimator, f"column {name!r} of X", *found)
        return ""
    return _no_number_in(estimator, X) if isinstance(X, np.ndarray) else ""


def target_numbers(estimator: Any, y: Any) -> Any:
    """Targets of a regressor as numbers, None as NaN; what has numbers is passed on as it is.

    Raises
    ------
    DataError : an entry that is no number
    """
    if isinstance(y, str) or getattr(y, "ndim", 1) not in (1, 2) or hasattr(y, "tocsr"):
        return y
    try:
        values = np.asarray(y)
    except ValueError:  # lists of different length, which scikit-learn refuses
        return y
    if values.dtype.kind not in "OUS" or values.ndim not in (1, 2):
        return y
    out = np.full(values.shape, np.nan)
    for at in np.ndindex(*values.shape):
        value = values[at]
        if value is None or type(value).__name__ in ("NAType", "NaTType"):
            continue
        try:
            out[at] = float(value)
        except (TypeError, ValueError):
            raise DataError(
                f"{type(estimator).__name__} predicts numbers, but y holds {str(value)!r:.40} in row "
                f"{at[0]}; for labels take a classifier"
            ) from None
    return out


def unique_names(X: Any) -> None:
    """Refuse a frame in which a name stands twice, before anything looks columns up by name."""
    twice = [name for name, times in Counter(list(X.columns)).items() if times > 1]
    if twice:
        raise DataError(f"several columns of X are named {twice[0]!r}; give each a name of its own")


def no_label_missing(y: Any) -> None:
    """Refuse labels in which None stands for a missing one, which would be a class of its own."""
    values = y if isinstance(y, np.ndarray | list | tuple) else getattr(y, "values", None)
    if isinstance(values, np.ndarray) and values.dtype.kind != "O":
        return
    if isinstance(values, np.ndarray | list | tuple):
        missing = [i for i, value in enumerate(values) if value is None]
        if missing:
            raise DataError(
                f"Input y contains None in {len(missing)} of {len(values)} entries, first in row "
                f"{missing[0]}; drop the rows without a label"
            )


def _uneven(X: Sequence[Any]) -> str:
    sizes = [len(row) for row in X if hasattr(row, "__len__") and not isinstance(row, str | bytes)]
    if len(sizes) < len(X) or len(set(sizes)) < 2:
        return ""
    other = next(i for i, size in enumerate(sizes) if size != sizes[0])
    return (
        f"rows of X differ in length: row 0 has {sizes[0]} values and row {other} has "
        f"{sizes[other]}"
    )


def _no_number_in(estimator: Any, X: NDArray[Any]) -> str:
    if X.ndim != 2:
        return ""
    for j in range(X.shape[1]):
        found = _first(X[:, j])
        if found is not None:
            return _sentence(estimator, f"column {j} of X", *found)
    return ""


def _first(values: NDArray[Any]) -> tuple[str, int, Any] | None:
    """The kind, row and value of the first text or date in a column."""
    if values.dtype.kind in "Mm":
        return ("dates" if values.dtype.kind == "M" else "durations"), 0, values[0]
    if values.dtype.kind not in "OUS":
        return None
    for i, value in enumerate(values):
        if hasattr(value, "isoformat"):
            return "dates", i, value
        if isinstance(value, str | bytes):
            try:
                float(value)
            except ValueError:
                return "text", i, value
    return None


def _sentence(estimator: Any, column: str, kind: str, row: int, value: Any) -> str:
    shown = repr(str(value))[:40]
    way = "turn it into numbers or drop it"
    if str(estimator.__sklearn_tags__().estimator_type) in ("classifier", "regressor"):
        way += ", or let groundstate.TablePredictor prepare the columns for the model"
    return (
        f"{column} holds {kind}, such as {shown} in row {row}, and {type(estimator).__name__} takes "
        f"numbers; {way}"
    )
