"""The main job: what ``groundstate fit`` and ``groundstate.study`` run, with the same options."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from groundstate.data import Table, read
from groundstate.data.messages import count, listing
from groundstate.data.preparation.preparation import without_features
from groundstate.errors import DataError
from groundstate.study.assess import Assessment, assess
from groundstate.study.ledger_entry import ledger_of
from groundstate.study.progress import Progress
from groundstate.study.tuning import Search
from groundstate.study.unlabelled.densities import METRIC
from groundstate.study.unlabelled.survey import Survey, survey

_SURVEYED = 0.25  # share of the rows that judge densities
_FEWEST = 5  # rows with a target, below which no score of held-out rows means anything


def run(
    table: Any,
    target: str | int | None = None,
    *,
    model: Any = "auto",
    metric: str | None = None,
    test: float | str | None = None,
    tune: int = 10,
    params: dict[str, Any] | str | Path | None = None,
    folds: int = 5,
    weights: Any = None,
    budget: float | str | None = None,
    thorough: bool = False,
    ledger: str | Path | None = "auto",
    workers: int | None = None,
    seed: int = 0,
    device: str | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Assessment | Survey:
    """Which model predicts the target best, and how good it is on rows it never saw.

    Without a target: which density describes the rows, their groups and the odd ones out.

    Parameters
    ----------
    table
        A path, a built-in name, a `Table`, a frame, or anything else that `data.read` takes.
    target
        Column to predict: its name or position; the table's own by default, ``"none"`` for none.
    model
        ``"auto"``, ``"all"``, names with commas, an estimator, several, or estimators by name.
    metric
        What to choose by and to report. By default candidates are chosen by a proper score (the
        squared error of probabilities or values), and accuracy or r2 are reported.
    test
        Share of the rows to set aside, or a file of further rows.
    tune
        Settings of the best candidate to try.
    params
        Settings of the candidates, or the file that ``groundstate tune`` wrote.
    folds, weights, ledger, workers, seed, device
        As ``folds``, ``sample_weight``, ``ledger``, ``n_jobs``, ``random_state`` and ``device`` of
        :func:`assess`.
    budget
        Time to spend, in seconds or as ``"60s"``, ``"2m"``, ``"1h"``; a minute for tables of up to
        5,000 × 50 cells by default, more for larger ones, ``"none"`` for no limit, see
        :func:`groundstate.study.race.clock.usual_budget`; a sixth of that with ``quick``.
    thorough
        Do everything, however long it takes.
    **options
        Of :func:`assess`: ``quick``, ``without``, ``seen``, ``design``, ``groups``, ``time``,
        ``positive``, ``cost_fp``, ``cost_fn``, ``repeats``, ``seeds``, ``bootstrap``, ``level``.
    """
    unlabelled = target == "none"
    source = read(table) if target is None or unlabelled else read(table).with_target(target)
    if source.target is None or unlabelled:
        return _survey(source, model, metric, test, folds, workers or 1, seed, device, progress)
    _learnable(source)
    model, settings = settings_of(model, params)
    return assess_tuned(
        source,
        models=model,
        params=settings,
        metric=metric,
        test=_test(test),
        folds=folds,
        tune=tune,
        sample_weight=weights,
        budget=_budget(budget, thorough, options.get("quick", False)),
        ledger=ledger_of(table, ledger),
        n_jobs=workers,
        random_state=seed,
        device=device,
        progress=progress,
        **options,
    )


def assess_tuned(
    source: Any,
    target: str | int | None = None,
    *,
    models: Any = "auto",
    tune: int = 0,
    **options: Any,
) -> Assessment:
    """:func:`assess` with a search of settings.

    Parameters
    ----------
    source, target
        A `Table` or anything `data.read` takes, and the column to predict.
    models
        As ``model`` of :func:`assess`.
    tune
        Settings of the best candidate to try.
    **options
        Of :func:`assess`.

    Examples
    --------
    >>> found = assess_tuned("iris", models="LogisticRegression", repeats=1, seeds=0, bootstrap=0)
    >>> found.chosen, len(found.truth), found.scores["accuracy"].low > 0.85
    ('LogisticRegression', 150, True)
    """
    table = read(source) if target is None else read(source).with_target(target)
    options["ledger"] = ledger_of(source, options.get("ledger", "auto"))
    return assess(models, table, tuner=Search(tune) if tune else None, **options)


def _budget(given: float | str | None, thorough: bool, quick: bool) -> float | str | None:
    """Seconds, ``"auto"`` or ``"quick"`` for what the size of the table gets, or None for no limit."""
    if thorough and (given is not None or quick):
        other = "--quick" if quick else "--budget"
        raise DataError(f"--thorough does everything and {other} less; leave one of them out")
    if given == "none":
        return None
    if given is not None or thorough:
        return seconds(given)
    return "quick" if quick else "auto"


def _learnable(source: Table) -> None:
    """Refuse a table that has nothing to learn from before anything is spent on it."""
    if all(column.kind in ("id", "constant") for column in source.features.schema):
        raise without_features(source.features)
    if source.n_rows < _FEWEST:
        raise DataError(
            f"{source.name!r} has {count(source.n_rows, 'row')} with a value of "
            f"{source.target!r}; to learn from some and judge by others takes {_FEWEST} or more"
        )
    if source.task == "classification" and len(set(source.y.tolist())) == source.n_rows:
        raise DataError(
            f"every row has its own value of {source.target!r}, such as {str(source.y[0])!r}, so no "
            "class can be learned; choose another target"
        )


def _survey(
    source: Table,
    model: str,
    metric: str | None,
    test: float | str | None,
    folds: int,
    workers: int,
    seed: int,
    device: str | None,
    progress: Any,
) -> Survey:
    if metric not in (None, METRIC):
        raise DataError(
            f"without a target densities are ranked by {METRIC}, not {metric!r}; say what "
            f"to predict with --target out of {listing(source.columns)}"
        )
    share = _test(test)
    if isinstance(share, str):
        raise DataError("without a target --test is a share of the rows, not a file")
    return survey(
        source, models=model, test=_SURVEYED if share is None else share, seed=seed, cv=folds,
        workers=workers, device=device, progress=progress,
    )  # fmt: skip


def _test(given: float | str | None) -> float | str | None:
    """A share of the rows, or a file."""
    if given is None:
        return None
    try:
        return float(given)
    except ValueError:
        return str(given)


def seconds(given: float | str | None) -> float | None:
    """A time such as 90, "60s", "2m" or "1h".

    >>> seconds("90"), seconds("60s"), seconds("2m"), seconds("0.5h"), seconds(3)
    (90.0, 60.0, 120.0, 1800.0, 3.0)
    """
    if given is None:
        return None
    text = str(given)
    unit = {"s": 1.0, "m": 60.0, "h": 3600.0}.get(text[-1:])
    try:
        return float(text if unit is None else text[:-1]) * (unit or 1.0)
    except ValueError:
        raise DataError(f"--budget is a time such as 60s, 2m or 1h, got {text!r}") from None


def settings_of(model: Any, params: Any) -> tuple[Any, dict[str, Any] | None]:
    """Model and settings, also from a file that ``tune`` wrote or from its text."""
    if params is None or isinstance(params, dict):
        return model, params
    try:
        text = str(params)
        stored = json.loads(text if text.lstrip().startswith("{") else Path(params).read_text())
        found = stored.get("params", stored)
        named = stored.get("model", model) if isinstance(model, str) and model == "auto" else model
        if not isinstance(found, dict):
            raise TypeError("params is not an object")
    except (ValueError, AttributeError, TypeError) as error:
        raise DataError(
            f"{str(params)!r} does not hold settings as written by tune: {error}"
        ) from error
    return named, found
