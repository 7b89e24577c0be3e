"""One recipe fitted to many sets of rows: as one population where it can, else one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.random import Key
from groundstate.errors import NotApplicable
from groundstate.evaluate.fitting import fit_weighted, random_names, seeds_of, with_seed
from groundstate.evaluate.rows import Floats, take
from groundstate.evaluate.splits.population import fit_rows
from groundstate.models.population.many import log_reason


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
    names = random_names(estimator) if hasattr(estimator, "get_params") else []
    own = [{} for _ in rows] if params is None else [dict(p) for p in params]
    settings = [{**seeds_of(names, key), **p} for key, p in zip(keys, own, strict=True)]
    try:
        return fit_rows(estimator, X, y, rows, settings, weight)
    except NotApplicable as reason:
        log_reason(estimator, reason)
    jobs = list(zip(rows, keys, own, strict=True))
    if n_jobs in (None, 1):
        return [_one(estimator, names, X, y, weight, *job) for job in jobs]
    from joblib import Parallel, delayed

    return list(
        Parallel(n_jobs=n_jobs)(delayed(_one)(estimator, names, X, y, weight, *job) for job in jobs)
    )


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
