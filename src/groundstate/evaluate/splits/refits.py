"""One recipe fitted to many sets of rows: as one population where it can, else one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.random import Key
from groundstate.data import Table
from groundstate.evaluate.fitting import fit_weighted
from groundstate.evaluate.intervals.retrain import random_names, seeds_of, with_seed
from groundstate.evaluate.rows import Floats, n_rows, take
from groundstate.models.table import TablePredictor


def refits(
    estimator: Any,
    X: Any,
    y: NDArray[Any],
    rows: Sequence[NDArray[np.intp]],
    keys: Sequence[Key],
    *,
    params: Sequence[Mapping[str, Any]] | None = None,
    weight: Floats | None = None,
    n_jobs: int | None = None,
) -> list[Any]:
    """Clones fitted to the given rows, each with the seeds of its key and its own settings.

    Parameters
    ----------
    estimator : unfitted
    X, y : the whole table
    rows : positions of the training rows of each fit; a row may come several times
    keys : one per fit
    params : settings of each fit by name
    weight : ``(N,)``; a weight of 2 is the row twice
    """
    found = refit_together(estimator, X, y, rows, keys, params=params, weight=weight)
    if found is not None:
        return found
    names = random_names(estimator) if hasattr(estimator, "get_params") else []
    own = [{} for _ in rows] if params is None else [dict(p) for p in params]
    jobs = list(zip(rows, keys, own, strict=True))
    if n_jobs in (None, 1):
        return [_one(estimator, names, X, y, weight, *job) for job in jobs]
    from joblib import Parallel, delayed

    return list(
        Parallel(n_jobs=n_jobs)(delayed(_one)(estimator, names, X, y, weight, *job) for job in jobs)
    )


def has_program(estimator: Any) -> bool:
    """Whether many fits of this recipe are one program that gives the numbers of single fits."""
    inner = estimator.estimator if isinstance(estimator, TablePredictor) else estimator
    early = getattr(inner, "_members_stop_early", False)
    return hasattr(inner, "_fit_population") and not early


def refit_together(
    estimator: Any,
    X: Any,
    y: NDArray[Any],
    rows: Sequence[NDArray[np.intp]],
    keys: Sequence[Key],
    *,
    params: Sequence[Mapping[str, Any]] | None = None,
    weight: Floats | None = None,
    names: Sequence[str] | None = None,
) -> list[Any] | None:
    """:func:`refits` as one program; None where the estimator has none or the rows do not suit it.

    ``names`` are the seeds that the keys give, all by default.
    """
    together = getattr(estimator, "_fit_population", None)
    if together is None or len(rows) < 2 or not isinstance(X, np.ndarray | Table):
        return None
    own = [{}] * len(rows) if params is None else params
    names = random_names(estimator) if names is None else names
    seeds = [seeds_of(list(names), k) for k in keys]
    weights = np.stack([np.bincount(r, minlength=n_rows(X)) for r in rows]).astype(np.float64)
    weights = weights if weight is None else weights * weight
    found: list[Any] | None = together(
        X, y, weights, [{**s, **p} for s, p in zip(seeds, own, strict=True)]
    )
    return found


def _one(
    estimator: Any,
    names: list[str],
    X: Any,
    y: NDArray[Any],
    weight: Floats | None,
    rows: NDArray[np.intp],
    key: Key,
    params: dict[str, Any],
) -> Any:
    if not hasattr(estimator, "get_params"):
        from copy import deepcopy

        model = deepcopy(estimator)
    else:
        model = with_seed(estimator, names, key)
        if params:
            model.set_params(**params)
    own = None if weight is None else weight[rows]
    fitted = fit_weighted(model, take(X, rows), y[rows], own)
    return model if fitted is None else fitted


__all__ = ["has_program", "refit_together", "refits"]
