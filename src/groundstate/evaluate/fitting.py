"""Fit a clone of an estimator: weights where it takes them, randomness from a key."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from groundstate.compute.random import Key
from groundstate.evaluate.rows import Floats
from groundstate.models.table import TablePredictor
from groundstate.models.weighted import fit_weighted, weight_arguments

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


def gives_std(model: Any) -> bool:
    """Whether ``predict(X, return_std=True)`` gives standard deviations, behind a preparation too."""
    from inspect import signature

    inner = model.estimator if isinstance(model, TablePredictor) else model
    return "return_std" in signature(inner.predict).parameters


__all__ = ["fit_clone", "fit_weighted", "gives_std", "open_seeds", "weight_arguments"]
