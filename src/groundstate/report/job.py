"""The main job: audit a table, compare models on training rows, look at the test rows once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.device import resolve_device, threads
from groundstate.data import Finding, Table, audit, read
from groundstate.errors import DataError
from groundstate.evaluate import (
    METRICS,
    Assessment,
    Interval,
    Leaderboard,
    Prediction,
    Split,
    assess,
    interval,
    metric,
    train_test,
)
from groundstate.models.table import TablePredictor
from groundstate.report.candidates import DUMMY, chosen_models

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Settings:
    """What was asked for; together with the table it decides every number."""

    seed: int = 0
    test: float = 0.25
    cv: int = 5
    level: float = 0.95
    metric: str = ""
    models: tuple[str, ...] = ()
    device: str | None = None


@dataclass(frozen=True)
class Study:
    """What :func:`study` found.

    Attributes
    ----------
    table : Table
    settings : Settings
    findings : tuple of Finding
        What the audit said, most serious first.
    split : Split
        Training and test rows.
    assessment : Assessment
        Cross-validation on the training rows.
    board : Leaderboard
        Its ranking, with the test score of the chosen model and of the dummy.
    model : TablePredictor
        The chosen candidate, fitted to all training rows.
    truth : (n_test,) array
        Class numbers or values of the test rows.
    prediction : Prediction
        The chosen model's answers for them.
    scores, baseline : dict of Interval
        Every metric of the task on the test rows: of the chosen model and of the dummy.
    seconds : dict
        Wall time of the stages, which no number depends on.
    """

    table: Table
    settings: Settings
    findings: tuple[Finding, ...]
    split: Split
    assessment: Assessment
    board: Leaderboard
    model: TablePredictor
    truth: NDArray[Any]
    prediction: Prediction
    scores: dict[str, Interval]
    baseline: dict[str, Interval]
    seconds: dict[str, float] = field(default_factory=dict, compare=False)

    @property
    def chosen(self) -> str:
        """Name of the chosen candidate."""
        return self.assessment.chosen

    @property
    def task(self) -> str:
        """``classification`` or ``regression``."""
        return str(self.table.task)

    @property
    def test_rows(self) -> Table:
        """The rows that were looked at once."""
        return self.table.take(self.split.test_rows)


def study(
    source: Any,
    target: str | int | None = None,
    *,
    models: str = "auto",
    test: float = 0.25,
    metric: str | None = None,
    seed: int = 0,
    cv: int = 5,
    workers: int = 1,
    device: str | None = None,
    progress: Progress | None = None,
) -> Study:
    """Fit a table: which model predicts the target best, and how well on rows it never saw.

    Every choice is made on the training rows; the test rows are looked at once, when nothing is
    left to choose. All fits run on one thread each, so that the numbers do not depend on how many
    cores or workers there are.

    Parameters
    ----------
    source
        A `Table` or anything `data.read` takes.
    target
        Column to predict; the table's own by default.
    models
        ``"auto"`` for every model of the task, or names separated by commas.
    test
        Share of the rows set aside.
    metric
        What to rank by; accuracy or r2 by default.
    seed, cv, workers, device
        Seed, folds, worker processes, and where to compute.
    progress
        Called with one line of text before each stage.

    Examples
    --------
    >>> found = study("iris", models="LogisticRegression")
    >>> found.chosen, len(found.truth), round(found.scores["accuracy"].estimate, 2)
    ('LogisticRegression', 38, 0.92)
    """
    watch = Watch(progress)
    with watch("reading the table"):
        table = read(source) if target is None else read(source).with_target(target)
        measure, candidates = _checked(table, models, metric, test, cv, workers, device)
        settings = Settings(seed, test, cv, 0.95, measure, tuple(candidates), device)
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1), threads(1):
        return _study(table, settings, candidates, workers, watch)


def _study(
    table: Table,
    settings: Settings,
    candidates: dict[str, Any],
    workers: int,
    watch: Watch,
) -> Study:
    classify, seed = table.task == "classification", settings.seed
    with watch("auditing the table"):
        findings = tuple(audit(table))
        split = train_test(table, table.y, test=settings.test, key=seed, stratify=classify)
        train, rest = table.take(split.train_rows), table.take(split.test_rows)
    with watch(f"comparing {len(candidates)} candidates on {train.n_rows:,} training rows"):
        found = assess(
            candidates,
            train,
            train.y,
            task="classification" if classify else "regression",
            metric=settings.metric,
            cv=settings.cv,
            key=seed,
            n_jobs=workers,
            level=settings.level,
        )
        dummy = TablePredictor(candidates[DUMMY].estimator).fit(train, train.y)
    with watch(f"looking at {rest.n_rows:,} test rows, once"):
        truth: NDArray[Any] = rest.y
        if found.classes is not None:  # the split gives every label a training row
            truth = np.searchsorted(found.classes, rest.y)
        answers = {
            DUMMY: Prediction.of(dummy, rest, found.classes),
            found.chosen: Prediction.of(found.model, rest, found.classes),
        }
        scores = {name: _scores(truth, said, settings) for name, said in answers.items()}
    board = found.board
    for name, said in scores.items():
        seen = said[settings.metric]
        board = board.with_entry(
            name, test_score=seen.estimate, test_low=seen.low, test_high=seen.high
        )
    return Study(
        table=table,
        settings=settings,
        findings=findings,
        split=split,
        assessment=found,
        board=board,
        model=found.model,
        truth=truth,
        prediction=answers[found.chosen],
        scores=scores[found.chosen],
        baseline=scores[DUMMY],
        seconds=watch.seconds,
    )


def _scores(truth: NDArray[Any], prediction: Prediction, settings: Settings) -> dict[str, Interval]:
    task = METRICS[settings.metric].task
    return {
        name: interval(row, truth, prediction, level=settings.level, key=settings.seed)
        for name, row in METRICS.items()
        if row.task == task and row.available(prediction)
    }


def _checked(
    table: Table,
    models: str,
    wanted: str | None,
    test: float,
    cv: int,
    workers: int,
    device: str | None,
) -> tuple[str, dict[str, TablePredictor]]:
    """The metric and the candidates; everything that can be refused is refused here, early."""
    task = table.task
    if task is None:
        raise DataError(f"{table.name!r} has no target to predict; its columns are {table.columns}")
    measure = metric(wanted, task)
    if measure.task != task:
        fitting = ", ".join(name for name, row in METRICS.items() if row.task == task)
        raise DataError(
            f"{measure.name} is a metric for {measure.task} but predicting {table.target!r} is "
            f"{task}; choose among {fitting}"
        )
    if not 0 < test < 1:
        raise DataError(f"test is the share of rows to set aside, between 0 and 1, got {test}")
    if cv < 2 or workers == 0:
        raise DataError(f"cross-validation needs 2 folds and 1 worker, got {cv} and {workers}")
    if len(np.unique(table.y)) < 2:
        raise DataError(
            f"every row has the same value of {table.target!r}, {table.y[0]!s}; there is nothing "
            "to learn"
        )
    if device is not None:
        resolve_device(device)
    made = chosen_models(models, task, device, table.n_rows)
    return measure.name, {name: TablePredictor(model) for name, model in made.items()}


class Watch:
    """Says what starts and remembers how long it took."""

    def __init__(self, progress: Progress | None) -> None:
        self.progress = progress
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        if self.progress is not None:
            self.progress(stage)
        start = time.perf_counter()
        yield
        self.seconds[stage] = time.perf_counter() - start


__all__ = ["Progress", "Settings", "Study", "Watch", "study"]
