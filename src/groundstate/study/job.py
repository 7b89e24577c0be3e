"""The main job: what ``groundstate fit`` and ``groundstate.study`` run, with the same options."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from groundstate.data import Table, read
from groundstate.data.messages import count, listing
from groundstate.data.preparation.preparation import without_features
from groundstate.errors import DataError
from groundstate.study.assess import Assessment, assess
from groundstate.study.facts import fingerprint
from groundstate.study.ledger_entry import ledger_of
from groundstate.study.progress import Progress
from groundstate.study.tuning import Search
from groundstate.study.unlabelled.densities import METRIC
from groundstate.study.unlabelled.survey import Survey, survey

_SURVEYED = 0.25  # share of the rows that judge densities
_FEWEST = 5  # rows with a target, below which no score of held-out rows means anything
_NO_MATTER = ("progress", "n_jobs", "ledger")  # they change no trial: a job goes on with others


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
    ledger: str | Path | None = "auto",
    workers: int | None = None,
    seed: int = 0,
    device: str | None = None,
    resume: str | Path | None = None,
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
        What to rank by; accuracy or r2 by default.
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
        Time to spend, in seconds or as ``"60s"``, ``"2m"``, ``"1h"``.
    resume
        Start of the names of files that keep the search; a job that was stopped goes on from them.
        Whoever passes it removes them with :func:`forget` when the result is safe.
    **options
        Of :func:`assess`: ``design``, ``groups``, ``time``, ``positive``, ``cost_fp``,
        ``cost_fn``, ``repeats``, ``seeds``, ``bootstrap``, ``level``.
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
        budget=seconds(budget),
        ledger=ledger_of(table, ledger),
        resume=resume,
        keep=True,
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
    resume: str | Path | None = None,
    keep: bool = False,
    **options: Any,
) -> Assessment:
    """:func:`assess` with a search of settings that can be taken up again.

    Parameters
    ----------
    source, target
        A `Table` or anything `data.read` takes, and the column to predict.
    models
        As ``model`` of :func:`assess`.
    tune
        Settings of the best candidate to try.
    resume
        Start of the names of files that keep the search; a job that was stopped goes on from
        them, one that ends removes them.
    keep
        Leave those files, for the caller to :func:`forget` once the report is written.
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
    if not tune:
        return assess(models, table, **options)
    prefix = None
    if resume is not None:  # another table or other settings begin anew
        same = {k: v for k, v in options.items() if k not in _NO_MATTER}
        asked = json.dumps([str(models), tune, same], default=str, sort_keys=True)
        mark = hashlib.sha256((fingerprint(table) + asked).encode()).hexdigest()[:12]
        prefix = f"{resume}{mark}-"
    tuner = Search(tune, prefix, options.get("n_jobs") or 1)
    found = assess(models, table, tuner=tuner, **options)
    if not keep:
        forget(prefix)
    return found


def forget(prefix: str | Path | None) -> None:
    """Remove the files of a search that has ended."""
    if prefix is not None:
        start = Path(prefix)
        for path in start.parent.glob(f"{start.name}*.db*"):
            path.unlink(missing_ok=True)


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
