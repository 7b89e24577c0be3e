"""The whole assessment: audit, split, one race, refit, one look, and everything that look says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.device import resolve_device, threads
from groundstate.compute.display import Displayed
from groundstate.data import Finding, Table
from groundstate.evaluate.audit.leaks import LEAKS
from groundstate.evaluate.board.ranked_table import Standings
from groundstate.evaluate.metrics import Metric
from groundstate.evaluate.metrics import metric as metric_named
from groundstate.evaluate.predictions import Prediction
from groundstate.math.stats.interval import Interval
from groundstate.study import held_out
from groundstate.study.candidates import (
    DUMMY,
    candidates_of,
    check_params,
    parts_without,
    text_in,
    with_params,
)
from groundstate.study.design import Design
from groundstate.study.ledger_entry import ledger_of
from groundstate.study.progress import Progress, Watch
from groundstate.study.question import Settings, ask
from groundstate.study.race.clock import QUICK, Clock, usual_budget
from groundstate.study.race.names import FIRST
from groundstate.study.selection import Developed
from groundstate.study.tuning import Search

_ALL_PICTURES = 3.0  # times as long as the first report, which has two, the last one takes


@dataclass(frozen=True)
class Assessment(Displayed):
    """What :func:`assess` found.

    Attributes
    ----------
    table, settings : what was assessed, and how
    findings : tuple of Finding
        What the audit predicted, most serious first.
    design : Design
    developed : Developed
        The chosen model and the comparison of candidates, from all rows but the held ones.
    board : Standings
        Candidates by validation score; the chosen one and the dummy with their test score.
    truth : (n,) class numbers or values of the held-out rows
    judged : (n,) their positions in the table
    predictions : dict of Prediction
        Of the chosen recipe (under its name) and of the baselines.
    scores : dict of Interval
    baselines : dict of dict of Interval
    skill : Interval
        Share of the dummy's loss that is saved.
    comparison, calibration, variation, curve, diagnosis, bound, decision : dict or None
    ledger : dict
        How often the held-out rows were looked at, and every opening of held rows.
    skipped : tuple of str
        Parts that were left out, and how to ask for them.
    seconds : dict
        Wall time of the stages, which no number depends on.
    explained : dict or None
        What the model looks at.
    columns : dict or None
        Profiles of the columns.
    stage : str
        How far the study has come: a study is valid, and its report whole, after each stage.
    unfinished : tuple of str
        Parts that were not reached yet, or left out for time.
    ran : Settings or None
        Settings that give the same again without a clock.
    """

    table: Table
    settings: Settings
    findings: tuple[Finding, ...]
    design: Design
    developed: Developed
    board: Standings
    truth: NDArray[Any]
    judged: NDArray[np.intp]
    predictions: dict[str, Prediction]
    classes: NDArray[Any] | None
    scores: dict[str, Interval]
    baselines: dict[str, dict[str, Interval]]
    skill: Interval
    comparison: dict[str, Any]
    calibration: dict[str, Any] | None
    variation: dict[str, Any] | None
    curve: dict[str, Any] | None
    diagnosis: dict[str, Any] | None
    bound: dict[str, Any] | None
    decision: dict[str, Any] | None
    chosen_in_folds: dict[str, int]
    ledger: dict[str, Any]
    skipped: tuple[str, ...]
    seconds: dict[str, float] = field(default_factory=dict, compare=False)
    explained: dict[str, Any] | None = None
    columns: dict[str, Any] | None = None
    stage: str = "done"
    unfinished: tuple[str, ...] = ()
    ran: Settings | None = None

    @property
    def chosen(self) -> str:
        """Name of the chosen candidate."""
        return self.developed.chosen

    @property
    def model(self) -> Any:
        """The chosen recipe, fitted to every row that was not held back."""
        return self.developed.model

    @property
    def prediction(self) -> Prediction:
        """Predictions of the chosen recipe for the held-out rows."""
        return self.predictions[self.chosen]

    @property
    def task(self) -> str:
        """``classification`` or ``regression``."""
        return str(self.table.task)

    @property
    def better_than_dummy(self) -> bool:
        """Whether the model certainly saves some of the dummy's loss."""
        return held_out.beats_constant(
            self.chosen, DUMMY, self.skill, self.comparison["test"], self.settings.level
        )

    @property
    def leaks(self) -> tuple[Finding, ...]:
        """Findings by which the score would be too good to be true."""
        return tuple(f for f in self.findings if f.code in LEAKS)

    def __str__(self) -> str:
        found = self.scores[self.settings.metric]
        return f"{self.chosen}: {self.settings.metric} {found} ({self.design.kind})"


def assess(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    target: str | int | None = None,
    metric: str | None = None,
    design: str = "auto",
    test: float | str | None = None,
    groups: Any = None,
    time: Any = None,
    sample_weight: Any = None,
    positive: Any = None,
    cost_fp: float | None = None,
    cost_fn: float | None = None,
    folds: int = 5,
    repeats: int | None = None,
    tuner: Search | None = None,
    seeds: int | None = None,
    bootstrap: int | None = None,
    level: float = 0.95,
    budget: float | str | None = None,
    params: dict[str, Any] | None = None,
    ledger: str | Path | None = "auto",
    random_state: int = 0,
    n_jobs: int | None = 1,
    device: str | None = None,
    progress: Progress | None = None,
    quick: bool = False,
    without: Sequence[str] | str | None = None,
    seen: Callable[[Assessment], None] | None = None,
    begun: float | None = None,
) -> Assessment:
    """Which model predicts the target best, how good it is on rows it never saw, how sure that is.

    Every choice is made on rows that do not judge; those are held by position and opened once.
    Fits run on one thread each, so that numbers do not depend on cores or workers.

    Parameters
    ----------
    model
        ``"auto"``, names with commas, an estimator, several, or estimators by name.
    X, y, target
        A `Table` or anything `data.read` takes; the target as an array or as a column of X.
    metric
        What to choose by and to report. By default candidates are chosen by a proper score (the
        squared error of probabilities or values), and accuracy or r2 are reported.
    design
        ``"holdout"`` sets rows aside (.7/.2/.1), ``"nested"`` judges every row by a choice that had
        not seen it, ``"auto"`` chooses by the size of the table.
    test
        Share of the rows to set aside, or a file of further rows.
    groups, time, sample_weight
        Name of a column, or one value per row: groups never cross sides; the latest rows judge;
        a weight of 2 is the row twice.
    positive, cost_fp, cost_fn
        The class that matters, of two, and what mistakes cost.
    folds, repeats
        Folds of cross-validation; times every row of a small table is judged: five, when None, or
        as many as slow models or the budget allow.
    tuner
        Settings of the best candidate to try, see :class:`groundstate.study.Search`; None tunes
        nothing. They are taken only when they gain more than one standard error.
    seeds, bootstrap
        Refits with other seeds and to resampled rows; by the size of the table when None.
    budget
        Seconds for everything: the first answer comes first, and what does not fit is listed as
        skipped. It decides how much is done, never a number. None is no limit,
        ``"auto"`` by the size of the table, ``"quick"`` a sixth of that.
    params
        Settings for the candidates that have them.
    ledger
        File in which looks at test rows are counted, see :class:`Ledger`. By default it is beside a
        data file, and rows from memory are counted in this session; None counts none.
    n_jobs
        Processes; -1 for every core, and None for every core where folds take long.
    quick
        Compare the candidates and stop: nothing is tuned, refitted or drawn.
    without
        Candidates and parts to leave out: names, with commas; also ``"ensemble"``, ``"stump"``,
        ``"linear"``, ``"explanation"``, ``"refits"``, ``"learning curve"``, ``"diagnosis"`` and the
        numbers of settings, such as ``"#3"``.
    seen
        Is called with a whole assessment after each stage, the last one too, which is returned.
    begun
        Moment of `time.monotonic` from which the budget counts; now by default.

    Examples
    --------
    >>> found = assess("LogisticRegression", "iris", repeats=1, seeds=0, bootstrap=0)
    >>> found.chosen, found.design.kind, found.design.judged
    ('LogisticRegression', 'nested', 150)
    """
    from threadpoolctl import threadpool_limits

    from groundstate.study.race.stages import Stages

    watch = Watch(progress)
    asked = None if isinstance(budget, str) else budget
    since = Clock.now() if begun is None else begun
    with watch("reading the table"):
        question = ask(
            X, y, target=target, metric=metric, test=test, groups=groups, time=time,
            weights=sample_weight, positive=positive, cost_fp=cost_fp, cost_fn=cost_fn,
            folds=folds, repeats=repeats, level=level, budget=asked, seed=random_state,
            device=device, design=design, seeds=seeds, bootstrap=bootstrap,
        )  # fmt: skip
        if device is not None:
            resolve_device(device)
        found = candidates_of(model, question.task, device, question.n, text_in(question.table))
        check_params(found, params)
        candidates = {name: with_params(made, params) for name, made in found.items()}
        measure = chosen_by(candidates, question.measure, metric)
        settings = question.settings.with_models(candidates, model, tuner, params)
        left_out = parts_without(without, candidates, question.task)
        settings = replace(
            settings, chosen_by=measure.name, quick=quick, thorough=budget is None, without=left_out
        )
        question = replace(question, settings=settings)
    if isinstance(budget, str):
        share = QUICK if budget == "quick" else 1.0
        classes = 2 if question.classes is None else len(question.classes)
        asked = share * usual_budget(question.n, question.table.n_columns, classes)
    where, clock = ledger_of(X, ledger), Clock(asked, since, left_out)
    candidates = {name: made for name, made in candidates.items() if name not in left_out}
    last: Assessment | None = None
    with threadpool_limits(1), threads(1):
        for last in Stages(
            question,
            candidates,
            tuner,
            measure,
            n_jobs,
            where,
            watch,
            clock,
            quick,
            seen is not None,
        ):
            if seen is not None:
                start = clock.now()
                seen(last)
                more = _ALL_PICTURES if last.stage == FIRST else 1.0
                clock.keep("report", more * (clock.now() - start))
    assert last is not None
    return last


def chosen_by(candidates: dict[str, Any], measure: Metric, asked: str | None) -> Metric:
    """What candidates are chosen by: the metric asked for, else a proper score.

    The squared error: of probabilities (Brier's score) for classes, where every candidate gives
    some, and of values, which R² is a share of. Log loss would let a single row decide to which a
    forest or neighbours give probability zero.
    """
    if asked is not None or measure.task != "classification":
        return measure
    proper = all(hasattr(model, "predict_proba") for model in candidates.values())
    return metric_named("brier") if proper else measure


__all__ = ["Assessment", "Progress", "Settings", "Watch", "assess"]
