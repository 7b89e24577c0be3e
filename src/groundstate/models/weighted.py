"""A fit to weighted rows of whatever a table comes as: a weight of 2 is the row twice."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.foreign.sklearn import safe_indexing
from groundstate.errors import DataError
from groundstate.models.traits import last_step, traits_of

Floats = NDArray[np.float64]


def n_rows(X: Any) -> int:
    """How many rows a table has."""
    shape = getattr(X, "shape", None)
    return int(shape[0]) if shape is not None else len(X)


def take(X: Any, rows: NDArray[np.intp]) -> Any:
    """The chosen rows, in the same form; an estimator sees what it would see in production."""
    if isinstance(X, np.ndarray):
        return X[rows]
    from groundstate.data import Table  # loads polars, which bare arrays do without

    return X.take(rows) if isinstance(X, Table) else safe_indexing(X, rows)


def fit_weighted(model: Any, X: Any, y: Any, weight: Floats | None) -> Any:
    """The model itself, fitted to weighted rows.

    Weights of one are not passed on. An estimator that takes no weights gets the rows repeated
    when the weights are whole numbers.
    """
    if weight is None or (weight == 1).all():
        return model.fit(X, y)
    arguments = weight_arguments(model, weight)
    if arguments:
        return model.fit(X, y, **arguments)
    if (weight != np.round(weight)).any():
        name = type(_taker(model)).__name__
        raise DataError(
            f"{name} takes no sample_weight and the weights are not whole numbers; "
            "leave it out of the candidates or round the weights"
        )
    rows = np.repeat(np.arange(len(weight)), weight.astype(np.int64))
    return model.fit(take(X, rows), None if y is None else np.asarray(y)[rows])


def weight_arguments(model: Any, weight: Floats) -> dict[str, Floats]:
    """Arguments that hand the weights to ``fit``; empty when the predictor takes none.

    Every step of a pipeline that takes weights gets them.
    """
    from sklearn.utils.validation import has_fit_parameter

    steps = getattr(model, "steps", None)
    if steps is None:
        taken = has_fit_parameter(_taker(model), "sample_weight")
        return {"sample_weight": weight} if taken else {}
    takers = [
        name
        for name, step in steps
        if hasattr(step, "fit") and has_fit_parameter(step, "sample_weight")
    ]
    if steps[-1][0] not in takers:
        return {}
    return {f"{name}__sample_weight": weight for name in takers}


def _taker(model: Any) -> Any:
    """Who has to take the weights: the last step, or what learns behind a preparation."""
    return model.estimator if traits_of(model).prepares else last_step(model)
