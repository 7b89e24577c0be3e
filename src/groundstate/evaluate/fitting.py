"""Fit a clone of an estimator: weights where it takes them, randomness from a key."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from groundstate.compute.random import Key
from groundstate.evaluate.rows import Floats
from groundstate.models.tables.table import TablePredictor
from groundstate.models.weighted import fit_weighted, weight_arguments

_SEEDS = 2**31 - 1  # scikit-learn's estimators take a 32-bit seed


def fit_clone(estimator: Any, X: Any, y: NDArray[Any], weight: Floats, key: Key) -> Any:
    """A fitted clone; every ``random_state`` left at None gets a seed from the key.

    Weights of one are not passed on. An estimator that takes no weights gets the rows repeated
    when the weights are whole numbers.
    """
    model = with_seed(estimator, random_names(estimator, unset=True), key)
    return fit_weighted(model, X, y, weight)


def random_names(estimator: Any, unset: bool = False) -> list[str]:
    """Names of all seeds an estimator takes, or of those alone that it leaves at None."""
    return sorted(
        name
        for name, value in estimator.get_params(deep=True).items()
        if (name == "random_state" or name.endswith("__random_state"))
        and not (unset and value is not None)
    )


def seeds_of(names: list[str], key: Key) -> dict[str, int]:
    """A seed for each name, from the key."""
    return {name: int(key.fold(name).words(1)[0] % _SEEDS) for name in names}


def with_seed(estimator: Any, names: list[str], key: Key | None) -> Any:
    """A clone whose seeds come from the key."""
    from sklearn.base import clone

    model = clone(estimator)
    return model if key is None else model.set_params(**seeds_of(names, key))


def gives_std(model: Any) -> bool:
    """Whether ``predict(X, return_std=True)`` gives standard deviations, behind a preparation too."""
    from inspect import signature

    inner = model.estimator if isinstance(model, TablePredictor) else model
    return "return_std" in signature(inner.predict).parameters


__all__ = [
    "fit_clone",
    "fit_weighted",
    "gives_std",
    "random_names",
    "seeds_of",
    "weight_arguments",
    "with_seed",
]
