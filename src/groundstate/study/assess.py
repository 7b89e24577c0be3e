"""The whole assessment: audit, split, tune, refit, one look, and everything that look says."""

from __future__ import annotations

import time as clocks
import warnings
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.device import resolve_device, threads
from groundstate.compute.display import Displayed
from groundstate.compute.random import Key
from groundstate.data import Finding, Table
from groundstate.evaluate.audit.leaks import LEAKS
from groundstate.evaluate.board.ranked_table import Standings
from groundstate.evaluate.compare.baseline import skill_interval
from groundstate.evaluate.predictions import Prediction
from groundstate.math.stats.interval import Interval
from groundstate.study import confidence, held_out
from groundstate.study.audit import audit_after, audit_before, ordered
from groundstate.study.candidates import DUMMY, candidates_of, check_params, text_in, with_params
from groundstate.study.design import (
    REPEATS,
    Design,
    HeldRows,
    choose_design,
    usual_repeats,
    usual_workers,
)
from groundstate.study.leaderboard import one_fit, standing
from groundstate.study.ledger_entry import ledger_of, noted
from groundstate.study.outer_splits import RECIPE, Side, collected, judged_in_turn
from groundstate.study.progress import Progress, Watch
from groundstate.study.question import Question, Settings, ask
from groundstate.study.selection import Developed, Tuner
from groundstate.study.variation import TUNING, Clock, diagnosed, learning, usual_numbers, variation


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
    tuner: Tuner | None = None,
    seeds: int | None = None,
    bootstrap: int | None = None,
    level: float = 0.95,
    budget: float | None = None,
    params: dict[str, Any] | None = None,
    ledger: str | Path | None = "auto",
    random_state: int = 0,
    n_jobs: int | None = 1,
    device: str | None = None,
    progress: Progress | None = None,
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
        What to rank by; accuracy or r2 by default.
    design
        ``"holdout"`` sets rows aside (.7/.2/.1), ``"nested"`` judges every row by a recipe that had
        not seen it, ``"auto"`` chooses by the size of the table.
    test
        Share of the rows to set aside, or a file of further rows.
    groups, time, sample_weight
        Name of a column, or one value per row: groups never cross sides; the latest rows judge;
        a weight of 2 is the row twice.
    positive, cost_fp, cost_fn
        The class that matters, of two, and what mistakes cost.
    folds, repeats
        Folds of cross-validation; times a nested design judges every row: five, when None, or as
        many as slow models or the budget allow.
    tuner
        Searches settings of the best candidate, see :class:`groundstate.study.Search`; None tunes
        nothing.
    seeds, bootstrap
        Refits with other seeds and to resampled rows; by the size of the table when None.
    budget
        Seconds: tuning gets 40 %, refits 30 %, curves 20 %; what does not fit is listed as skipped.
    params
        Settings for the candidates that have them.
    ledger
        File in which looks at test rows are counted, see :class:`Ledger`. By default it is beside a
        data file, and rows from memory are counted in this session; None counts none.
    n_jobs
        Processes; -1 for every core, and None for every core where a nested design takes long.

    Examples
    --------
    >>> found = assess("LogisticRegression", "iris", repeats=1, seeds=0, bootstrap=0)
    >>> found.chosen, found.design.kind, found.design.judged
    ('LogisticRegression', 'nested', 150)
    """
    from threadpoolctl import threadpool_limits

    watch = Watch(progress)
    with watch("reading the table"):
        question = ask(
            X, y, target=target, metric=metric, test=test, groups=groups, time=time,
            weights=sample_weight, positive=positive, cost_fp=cost_fp, cost_fn=cost_fn,
            folds=folds, repeats=repeats, level=level, budget=budget, seed=random_state,
            device=device, design=design, seeds=seeds, bootstrap=bootstrap,
        )  # fmt: skip
        if device is not None:
            resolve_device(device)
        found = candidates_of(model, question.task, device, question.n, text_in(question.table))
        check_params(found, params)
        candidates = {name: with_params(made, params) for name, made in found.items()}
        settings = question.settings.with_models(candidates, model, tuner, params)
        question = replace(question, settings=settings)
    with threadpool_limits(1), threads(1):
        return _assess(question, candidates, tuner, n_jobs, ledger_of(X, ledger), watch)


def _assess(
    question: Question,
    candidates: dict[str, Any],
    tuner: Tuner | None,
    n_jobs: int | None,
    ledger: str | Path | None,
    watch: Watch,
) -> Assessment:
    X, y, settings = question.X, question.y, question.settings
    key, clock = Key.of(settings.seed), Clock(settings.budget)
    skipped: list[str] = []
    with watch("auditing the table"):
        findings = audit_before(question)
        wanted = settings.repeats or REPEATS
        if settings.repeats is None and settings.budget is None:
            wanted = usual_repeats(candidates, question.n, settings.folds, settings.tune)
        design = choose_design(
            question.features, y, task=question.task, kind=settings.design, test=question.test,
            groups=question.groups, time=question.time, n_folds=settings.folds,
            repeats=wanted, key=key.fold("design"),
        )  # fmt: skip
    if n_jobs is None:
        n_jobs = usual_workers(candidates, question.n, design, settings.tune)
    measure = question.measure
    nested = design.kind == "nested"
    # half of the share of tuning is for the first repeat and the final search
    searches = 2 * (design.n_folds + 1) if nested else 1
    seconds = None if settings.budget is None else TUNING * settings.budget / searches
    side = Side(question, candidates, measure, tuner, key, seconds)
    words = "nested cross-validation of" if nested else "comparing"
    begun = clocks.perf_counter()
    with watch(f"{words} {len(candidates)} candidates"):
        if nested:
            outer, design = judged_in_turn(side, design, n_jobs, clock.countdown(TUNING))
            if design.repeats < (settings.repeats or REPEATS):
                skipped.append(
                    f"repeats of the nested cross-validation: {design.repeats} of "
                    f"{settings.repeats or REPEATS} done (--repeats {REPEATS}, or a longer --budget)"
                )
            everything = np.arange(question.n)
            developed = side.develop(everything, None, "final", n_jobs, spare=False)
        else:
            train, rest = design.split
            developed = side.develop(train, design.validation, "final", n_jobs)
    count = len(design.sides) * len(developed.ranking.folds) + len(developed.ranking.folds)
    fit_seconds = one_fit(developed, begun, count)
    held_words = f"{design.judged:,} {'rows in turn' if nested else 'test rows'}"
    with watch(f"looking at {held_words}, once"):
        if nested:
            repeats = collected(outer, design, question.n)
            judged, predictions = everything, repeats[0]
            looks = tuple(look for part in outer for look in part.looks)
            names = Counter(part.chosen for part in outer)
        else:
            held = HeldRows(X, y, rest)
            bases = side.bases(train)
            rows, _ = held.look("report")
            models = {**bases, developed.chosen: developed.model}
            predictions = {n: Prediction.of(m, rows, question.classes) for n, m in models.items()}
            judged, looks, repeats = rest, held.looks, [predictions]
            names = Counter([developed.chosen])
        findings = ordered([*findings, *audit_after(question, design, key.fold("audit"))])
    truth = question.codes(y[judged])
    weight = question.weight[judged]
    share = {
        "task": question.task, "weight": weight, "level": settings.level, "key": key.fold("score"),
        "groups": None if question.groups is None else question.groups[judged],
        "positive": question.positive,
    }  # fmt: skip
    name = developed.chosen
    if nested:  # the recipe may choose another model in each fold; its predictions count as one
        repeats = [{**part, name: part[RECIPE]} for part in repeats]
        predictions = {k: v for k, v in repeats[0].items() if k != RECIPE}
    with watch("intervals, baselines and comparison"):
        tables = [
            {who: held_out.all_intervals(truth, part[who], **share) for who in predictions}
            for part in repeats
        ]
        merged = {
            who: {m: held_out.mean_interval([t[who][m] for t in tables]) for m in tables[0][who]}
            for who in predictions
        }
        loss = {  # of each row, its mean over repeats
            who: np.mean([held_out.losses(measure, truth, part[who]) for part in repeats], axis=0)
            for who in predictions
        }
        saved = skill_interval(
            loss[name], loss[DUMMY], settings.level, weight, random_state=key.fold("skill")
        )
        board, comparison = standing(
            developed, measure, question, merged, truth, predictions, weight, key
        )
    with watch("calibration and coverage"):
        calibration = confidence.calibration(
            question, developed, design, truth, predictions[name], judged
        )
        decision = confidence.decision(question, truth, predictions[name], weight)
        unsure = confidence.no_probabilities(predictions[name], developed)
        skipped += [] if unsure is None else [unsure]
    weights = None if (question.weight == 1).all() else question.weight
    seeds, resamples = usual_numbers(question.n, settings.seeds, settings.bootstrap)
    with watch("refits with other seeds and other training rows"), warnings.catch_warnings():
        moved = None
        if name != DUMMY:
            warnings.simplefilter("ignore")  # small parts lack classes; the audit reported them
            moved = variation(
                developed.recipe, X, y, design.split, loss[name],
                None if weights is None else weight, seeds=seeds, resamples=resamples,
                groups=question.groups, key=key.fold("variation"), clock=clock,
                fit_seconds=fit_seconds, skip=skipped.append, weight=weights,
            )  # fmt: skip
    with watch("the learning curve and the diagnosis"):
        curve = diagnosis = None
        if name != DUMMY:
            more: Any = {
                "groups": question.groups, "level": settings.level, "clock": clock,
                "fit_seconds": fit_seconds, "skip": skipped.append, "weight": weights,
            }  # fmt: skip
            curve = learning(developed.recipe, X, y, key=key.fold("curve"), **more)
            diagnosis = diagnosed(developed.recipe, X, y, key=key.fold("diagnosis"), **more)
    if developed.tuned is None and name != DUMMY:
        skipped.append(f"tuning: {developed.untuned}")
    seen = noted(ledger, question, judged, name, developed.params, merged[name], skipped.append)
    return Assessment(
        table=question.table,
        settings=settings,
        findings=findings,
        design=design,
        developed=developed,
        board=board,
        truth=truth,
        judged=judged,
        predictions=predictions,
        classes=question.classes,
        scores=merged[name],
        baselines={who: merged[who] for who in predictions if who != name or who == DUMMY},
        skill=saved,
        comparison=comparison,
        calibration=calibration,
        variation=moved,
        curve=curve,
        diagnosis=diagnosis,
        bound=held_out.bound(
            truth, predictions[name], settings.level, seen["looks"], independent=not nested
        ),
        decision=decision,
        chosen_in_folds=dict(names),
        ledger={**seen, "log": list(looks)},
        skipped=tuple(skipped),
        seconds=watch.seconds,
    )


__all__ = ["Assessment", "Progress", "Settings", "Watch", "assess"]
