"""One recipe fitted to many sets of rows: as one population where it can, else one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.random import Key
from groundstate.data import Table
from groundstate.evaluate.fitting import fit_weighted
from groundstate.evaluate.rows import Floats, n_rows, take
from groundstate.evaluate.seeds import random_names, with_seed


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
    together = getattr(estimator, "_fit_population", None)
    if together is not None and len(rows) > 1 and isinstance(X, np.ndarray | Table):
        seeds = [{n: int(k.fold(n).words(1)[0] % (2**31 - 1)) for n in names} for k in keys]
        weights = np.stack([np.bincount(r, minlength=n_rows(X)) for r in rows]).astype(np.float64)
        weights = weights if weight is None else weights * weight
        found: list[Any] | None = together(
            X, y, weights, [{**s, **p} for s, p in zip(seeds, own, strict=True)]
        )
        if found is not None:
            return found
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


__all__ = ["refits"]
