"""Fit a clone of an estimator: weights where it takes them, randomness from a key."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.random import Key
from groundstate.errors import DataError
from groundstate.evaluate.rows import Floats, take
from groundstate.models.table import TablePredictor

_SEEDS = 2**31 - 1  # scikit-learn's estimators take a 32-bit seed


def fit_clone(estimator: Any, X: Any, y: NDArray[Any], weight: Floats, key: Key) -> Any:
    """A fitted clone; every ``random_state`` left at None gets a seed from the key.

    Weights of one are not passed on. An estimator that takes no weights gets the rows repeated
    when the weights are whole numbers.
    """
    from sklearn.base import clone

    model = clone(estimator)
    seeded = {name: int(key.fold(name).words(1)[0] % _SEEDS) for name in open_seeds(model)}
    if seeded:
        model.set_params(**seeded)
    return fit_weighted(model, X, y, weight)


def open_seeds(estimator: Any) -> list[str]:
    """Names of the seeds that an estimator leaves open."""
    return sorted(
        name
        for name, value in estimator.get_params(deep=True).items()
        if value is None and (name == "random_state" or name.endswith("__random_state"))
    )


def fit_weighted(model: Any, X: Any, y: NDArray[Any], weight: Floats | None) -> Any:
    """The model itself, fitted to weighted rows: a weight of 2 is the row twice."""
    if weight is None or (weight == 1).all():
        return model.fit(X, y)
    arguments = weight_arguments(model, weight)
    if arguments:
        return model.fit(X, y, **arguments)
    if (weight != np.round(weight)).any():
        raise DataError(
            f"{_last(model)} takes no sample_weight and the weights are not whole numbers; "
            "leave it out of the candidates or round the weights"
        )
    rows = np.repeat(np.arange(len(weight)), weight.astype(np.int64))
    return model.fit(take(X, rows), y[rows])


def weight_arguments(model: Any, weight: Floats) -> dict[str, Floats]:
    """Arguments that hand the weights to ``fit``; empty when the predictor takes none.

    Every step of a pipeline that takes weights gets them.
    """
    from sklearn.utils.validation import has_fit_parameter

    steps = getattr(model, "steps", None)
    if steps is None:
        taker = model.estimator if isinstance(model, TablePredictor) else model
        return {"sample_weight": weight} if has_fit_parameter(taker, "sample_weight") else {}
    takers = [
        name
        for name, step in steps
        if hasattr(step, "fit") and has_fit_parameter(step, "sample_weight")
    ]
    if steps[-1][0] not in takers:
        return {}
    return {f"{name}__sample_weight": weight for name in takers}


def gives_std(model: Any) -> bool:
    """Whether ``predict(X, return_std=True)`` gives standard deviations, behind a preparation too."""
    from inspect import signature

    inner = model.estimator if isinstance(model, TablePredictor) else model
    return "return_std" in signature(inner.predict).parameters


def _last(model: Any) -> str:
    steps = getattr(model, "steps", None)
    inner = model.estimator if isinstance(model, TablePredictor) else model
    return type(steps[-1][1] if steps else inner).__name__
