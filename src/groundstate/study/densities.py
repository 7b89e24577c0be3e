"""Candidates for a table without a target, compared by the energy they give to held-out rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.random import Key
from groundstate.data import Preparation, Table
from groundstate.errors import DataError, Unsupported
from groundstate.evaluate import (
    METRICS,
    Entry,
    Prediction,
    Split,
    Standings,
    folds,
    interval,
    tied_with_best,
)
from groundstate.evaluate.fitting import fit_clone
from groundstate.models.explain import explain
from groundstate.models.tables.table import TablePredictor
from groundstate.registry import ModelRow
from groundstate.registry import models as registered
from groundstate.study.candidates import placed

METRIC = "mean_nll"
_SIZES = (1, 2, 3, 4, 6, 8)
_ROWS_PER_COMPONENT = 5


def density_models(
    names: str, train: Table, device: str | None = None
) -> dict[str, TablePredictor]:
    """Unfitted densities of several sizes by name, such as ``GaussianMixture(3)``.

    They are the registered models that judge and draw rows of real numbers; a code has fewer
    directions than there are numbers, a mixture at least five rows per component.
    """
    fitting = {row.name: row for row in registered if _is_density(row)}
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    wanted = list(fitting) if wanted == ["auto"] else wanted
    for name in wanted:
        if name not in fitting:
            role = registered[name].role  # an unknown name raises, with the nearest known one
            raise Unsupported(
                f"{name} is a {role} without a density of real rows; without a target choose "
                f"among {', '.join(fitting)}, or say what to predict with target"
            )
    d = len(Preparation().fit(train).feature_names_out())
    found: dict[str, TablePredictor] = {}
    for name in wanted:
        is_code = fitting[name].role == "transformer"
        limit = d - 1 if is_code else max(1, train.n_rows // _ROWS_PER_COMPONENT)
        for k in (k for k in _SIZES if k <= limit):
            model = placed(fitting[name].obj(n_components=k), device)
            found[f"{name}({k})"] = TablePredictor(model)
    if not found:
        raise DataError("no model fits a table this small; bring more rows or columns")
    return found


def _is_density(row: ModelRow) -> bool:
    able = hasattr(row.obj, "score_samples") and hasattr(row.obj, "sample")
    return able and explain(row.name).spaces["x"].startswith("Real")


def compare_densities(
    candidates: Mapping[str, Any],
    train: Table,
    *,
    cv: int = 5,
    key: int = 0,
    n_jobs: int = 1,
    level: float = 0.95,
) -> Standings:
    """Rank densities by the mean negative log density of held-out rows, in nats.

    Parameters
    ----------
    candidates : unfitted estimators with ``score_samples``, by name
    train : training rows
    cv, key, n_jobs : folds, seed, worker processes
    level : confidence of the intervals

    Examples
    --------
    >>> from groundstate.data import load
    >>> from groundstate import GaussianMixture
    >>> ring = load("rings").features
    >>> sizes = {str(k): TablePredictor(GaussianMixture(k)) for k in (1, 8)}
    >>> compare_densities(sizes, ring).best.name
    '8'
    """
    from joblib import Parallel, delayed

    parts = folds(train, k=cv, key=Key.of(key).fold("folds"))
    jobs = [(name, i) for name in candidates for i in range(len(parts))]
    found = Parallel(n_jobs=n_jobs)(
        delayed(_fold)(candidates[name], train, parts[i], Key.of(key).fold("fit", name, i))
        for name, i in jobs
    )
    by = dict(zip(jobs, found, strict=True))
    predicted: dict[str, Prediction] = {}
    entries = []
    for name in candidates:
        mine = [by[name, i] for i in range(len(parts))]
        failed = [note for note in mine if isinstance(note, str)]
        if failed:
            entries.append(Entry(name, math.nan, math.nan, math.nan, notes=(failed[0],)))
            continue
        values = np.zeros(train.n_rows)
        for part, judged in zip(parts, mine, strict=True):
            values[part.test_rows] = judged
        predicted[name] = Prediction(values)
        seen = interval(METRICS[METRIC], values, predicted[name], level=level, key=key)
        each = tuple(-float(judged.mean()) for judged in mine)
        entries.append(Entry(name, seen.estimate, seen.low, seen.high, each))
    if not predicted:
        raise DataError(f"no candidate could be fitted; {entries[0].notes[0]}")
    board = Standings(tuple(entries), METRIC, False, level)
    zeros = np.zeros(train.n_rows)
    for name in tied_with_best(METRICS[METRIC], zeros, predicted, key=Key.of(key).fold("tied")):
        board = board.with_entry(name, tied_with_best=True)
    return board


def _fold(estimator: Any, train: Table, part: Split, key: Key) -> NDArray[np.float64] | str:
    """Log densities of the held-out rows, or why there are none."""
    import warnings

    from threadpoolctl import threadpool_limits

    from groundstate.compute.device import threads

    with warnings.catch_warnings(), threadpool_limits(1), threads(1):
        warnings.simplefilter("ignore")
        try:
            rows = train.take(part.train_rows)
            model = fit_clone(estimator, rows, None, np.ones(rows.n_rows), key)  # type: ignore[arg-type]
            judged = np.asarray(model.score_samples(train.take(part.test_rows)), np.float64)
        except Exception as error:  # any estimator may fail in any way; the others go on
            return f"failed: {type(error).__name__}: {' '.join(str(error).split())}"[:300]
    if not np.isfinite(judged).all():
        return "failed: some held-out rows have no finite density"
    return judged
