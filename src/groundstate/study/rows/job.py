"""Rows in; candidates compared, the best refitted, one look at rows never seen, a verdict out."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.random import Key
from groundstate.compute.rows import Rows, count
from groundstate.errors import DataError, Unsupported
from groundstate.evaluate import Interval, Standings
from groundstate.evaluate.audit.ledger import rows_id
from groundstate.evaluate.compare.baseline import skill_interval
from groundstate.evaluate.fitting import fit_clone
from groundstate.evaluate.metrics import Metric, metric
from groundstate.evaluate.metrics.drawn import Judged
from groundstate.evaluate.predictions import Prediction
from groundstate.evaluate.splits.folds import folds as fold_splits
from groundstate.evaluate.splits.folds import train_test
from groundstate.models.traits import traits_of
from groundstate.registry import models as registered
from groundstate.study import held_out
from groundstate.study.candidates import DUMMY, ROLES, dummy, placed
from groundstate.study.facts import FORMAT, LIBRARIES, model_facts
from groundstate.study.job import settings_of
from groundstate.study.ledger_entry import counted, ledger_of
from groundstate.study.numbers import plain, span
from groundstate.study.progress import Progress
from groundstate.study.rows.drawn import (
    Drawing,
    check_metric,
    develop_drawn,
    look_at,
    set_aside,
    with_look,
)
from groundstate.study.rows.source import RowSource, part_of
from groundstate.study.selection import Developed, develop
from groundstate.study.verdict import three_sentences

FOLDS = 3
FEWEST = 20  # rows, below which no score of held-out ones means anything
SEVERAL = 20  # different numbers above which a target is a quantity


@dataclass(frozen=True, eq=False)
class RowAssessment:
    """What a study of rows found.

    Attributes
    ----------
    source : RowSource
    task : "classification" or "regression"
    board : Standings
    developed : the chosen model and how it was found
    judged : numbers of the rows that judged
    truth, prediction : of these rows; truth as numbers of ``classes``
    classes : labels, None for numbers, masks and boxes
    scores, baselines, skill, comparison : of the one look
    ledger : how often these rows were looked at; None where that is not counted
    drawn : what judged masks and boxes; None for other rows
    """

    source: RowSource
    task: str
    board: Standings
    developed: Developed
    judged: NDArray[np.intp]
    truth: NDArray[Any]
    prediction: Any
    classes: NDArray[Any] | None
    scores: dict[str, Interval]
    baselines: dict[str, dict[str, Interval]]
    skill: Interval
    comparison: dict[str, Any]
    settings: dict[str, Any] = field(repr=False)
    ledger: dict[str, Any] | None = None
    skipped: list[str] = field(default_factory=list, repr=False)
    drawn: Judged | None = field(default=None, repr=False)

    @property
    def chosen(self) -> str:
        return self.developed.chosen

    @property
    def model(self) -> Any:
        return self.developed.model

    @property
    def rows(self) -> Rows:
        """The rows that judged."""
        return part_of(self.source.rows, self.judged)

    @property
    def better_than_dummy(self) -> bool:
        """Whether the chosen model is shown to lose less than a constant answer."""
        return self.chosen != DUMMY and self.skill.low > 0

    @cached_property
    def facts(self) -> dict[str, Any]:
        """What ``report.json`` holds, but for the data of its pictures."""
        return assessment_facts(self)


def study_rows(
    source: RowSource,
    *,
    model: str = "auto",
    metric_name: str | None = None,
    test: float = 0.2,
    folds: int | None = None,
    level: float = 0.95,
    seed: int = 0,
    device: str | None = None,
    params: dict[str, Any] | str | Path | None = None,
    ledger: str | Path | None = "auto",
    progress: Progress | None = None,
) -> RowAssessment:
    """Which model of the registry predicts the target of such rows best, and how well.

    A fifth of the rows is set aside first, stratified, copies together; the others are cut into parts
    on which every candidate is judged; the best is fitted to all of them and looks once at the rows
    set aside.

    Parameters
    ----------
    source : rows and targets
    model : "auto" for those that are registered for such rows, or names with commas
    metric_name : what to rank by; accuracy, r2, iou (masks) or ap50 (boxes) by default
    test : share of the rows to set aside, where the data have no part of their own for it
    folds : parts of the comparison; 3 by default, and a quarter of the pictures for masks and boxes
    level, seed, device : of the comparison
    params : settings of the candidates that have them, or a JSON file of such
    ledger : where looks at the rows set aside are counted; "auto" is beside the source, None nowhere
    progress : called with each stage
    """
    say: Any = progress or (lambda *_: None)
    model, params = settings_of(model, params)
    n = count(source.rows)
    if n < FEWEST:
        raise DataError(f"{n} rows with a target are too few to judge by; give {FEWEST} or more")
    key = Key.of(seed)
    counting = ledger_of(source.command[0] if source.command else None, ledger)
    asked = {"model": model, "test": test, "folds": folds, "level": level, "seed": seed,
             "device": device, "params": params}  # fmt: skip
    if source.task is not None:
        return _drawn(source, source.task, metric_name, asked, key, counting, say)
    folds = folds or FOLDS
    task = _task(source.y)
    classes = np.unique(source.y) if task == "classification" else None
    y = source.y if classes is not None else source.y.astype(np.float64)
    measure = metric(metric_name or ("accuracy" if classes is not None else "r2"))
    judged = source.judges
    if judged is None:
        judged = train_test(
            source.rows, y, test=test, key=key.fold("test"), stratify=classes is not None
        ).test_rows
    learned = np.setdiff1d(np.arange(n), judged)
    X, own = part_of(source.rows, learned), y[learned]
    splits = fold_splits(X, own, k=folds, key=key.fold("folds"), stratify=classes is not None)
    candidates = candidates_for(source.kind, task, model, device, params)
    say(f"comparing {len(candidates) - 1} models on {folds} parts of {len(learned):,} rows")
    developed = develop(
        candidates, X, own, task=task, measure=measure, splits=splits,
        weight=np.ones(len(learned)), key=key.fold("develop"), level=level,
    )  # fmt: skip
    say(f"looking at {len(judged):,} rows that no model has seen")
    found = _look(source, task, measure, developed, candidates, X, own, judged, classes, level, key,
                  {**asked, "metric": measure.name, "folds": folds})  # fmt: skip
    return _noted(found, counting, share=measure.is_share, bounds=measure.bounds)


def _noted(
    found: RowAssessment, path: Any, *, share: bool, bounds: tuple[float, float]
) -> RowAssessment:
    """Count the look at the rows that judged, as studies of tables do."""
    if path is None:
        return found
    asked, source = found.settings, found.source
    test = rows_id(found.rows, source.target_ids(found.judged))
    used = {"params": asked["params"], "seed": asked["seed"], "metric": asked["metric"]}
    skipped = list(found.skipped)
    seen = counted(path, test, len(found.judged), found.chosen, used, found.scores, asked["metric"],
                   asked["level"], skipped.append, share=share, bounds=bounds)  # fmt: skip
    return replace(found, ledger=seen, skipped=skipped)


def _drawn(
    source: RowSource, task: str, metric_name: str | None, asked: dict[str, Any], key: Key,
    ledger: Any, say: Any,
) -> RowAssessment:  # fmt: skip
    """The same for masks and boxes."""
    drawing = Drawing.of(source)
    name, level = check_metric(drawing, metric_name), asked["level"]
    judged = set_aside(source, asked["test"], key)
    learned = np.setdiff1d(np.arange(count(source.rows)), judged)
    settings = {**source.settings, **(asked["params"] or {})}
    candidates = candidates_for(source.kind, task, asked["model"], asked["device"], settings)
    parts = "a quarter" if asked["folds"] is None else f"{asked['folds']} parts"
    say(f"comparing {len(candidates) - 1} models on {parts} of {len(learned):,} pictures")
    developed = develop_drawn(
        drawing, candidates, learned, name, asked["folds"], level, key.fold("develop")
    )
    say(f"looking at {len(judged):,} pictures that no model has seen")
    look = look_at(drawing, developed, learned, judged, name, level, key)
    developed = with_look(developed, look, name)
    found = RowAssessment(
        source, task, developed.ranking.board, developed, judged, source.y[judged], look.predictions, None,
        look.scores, {DUMMY: look.baseline}, look.skill, look.comparison,
        {**asked, "metric": name}, drawn=look.judged,
    )  # fmt: skip
    return _noted(found, ledger, share=False, bounds=(0.0, 1.0))


def _look(
    source: RowSource, task: str, measure: Metric, developed: Developed, candidates: dict[str, Any],
    X: Rows, own: NDArray[Any], judged: NDArray[np.intp], classes: NDArray[Any] | None, level: float,
    key: Key, settings: dict[str, Any],
) -> RowAssessment:  # fmt: skip
    rows, y = part_of(source.rows, judged), source.y[judged]
    truth = y.astype(np.float64) if classes is None else np.searchsorted(classes, y)
    weight = np.ones(len(judged))
    constant = fit_clone(candidates[DUMMY], X, own, np.ones(len(own)), key.fold("dummy"))
    predictions = {DUMMY: Prediction.of(constant, rows, classes)}
    name = developed.chosen
    if name != DUMMY:
        predictions[name] = Prediction.of(developed.model, rows, classes)
    merged = {
        who: held_out.all_intervals(
            truth, predicted, task=task, weight=weight, level=level, key=key.fold("scores", who)
        )
        for who, predicted in predictions.items()
    }
    board = developed.ranking.board
    for who, found in merged.items():
        seen = found[measure.name]
        board = board.with_entry(
            who, test_score=seen.estimate, test_low=seen.low, test_high=seen.high
        )
    skill = skill_interval(
        held_out.losses(measure, truth, predictions[name]),
        held_out.losses(measure, truth, predictions[DUMMY]),
        level, random_state=key.fold("skill"),
    )  # fmt: skip
    on_test = held_out.compared(
        measure, truth, name, [predictions], weight=weight, level=level, key=key.fold("on test")
    )
    comparison = {"metric": measure.name, "chosen": name, "tied": list(board.tied), "test": on_test}
    return RowAssessment(
        source, task, board, developed, judged, truth, predictions[name], classes, merged[name],
        {DUMMY: merged[DUMMY]}, skill, comparison, settings,
    )  # fmt: skip


def candidates_for(
    kind: str, task: str, model: str, device: str | None, params: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Unfitted models for rows of a kind, and the dummy; variants that a class names stand beside it.

    >>> list(candidates_for("node", "classification", "auto", None))
    ['NodeClassifier', 'NodeClassifier, features alone', 'dummy']
    """
    fitting = [r for r in registered if r.rows == kind and r.role == ROLES[task]]
    wanted = [name.strip() for name in model.split(",") if name.strip()]
    if wanted in (["auto"], ["all"]):
        listed = [r for r in fitting if wanted == ["all"] or r.shortlist is not None]
        listed.sort(key=lambda r: (r.shortlist is None, r.shortlist, r.name))
        wanted = [r.name for r in listed]
    known = {r.name: r for r in fitting}
    found: dict[str, Any] = {}
    for name in wanted:
        if name not in known:
            raise Unsupported(
                f"{name!r} is no {ROLES[task]} of {kind} rows; choose among {', '.join(known) or 'none'}"
            )
        cls = known[name].obj
        for suffix, changes in {"": {}, **traits_of(cls).compared_with}.items():
            made = placed(cls(), device)
            own = made.get_params(deep=False)
            made.set_params(**{k: v for k, v in (params or {}).items() if k in own})
            made.set_params(**changes)  # what the variant is called after stays
            found[f"{name}, {suffix}" if suffix else name] = made
    if not found:
        raise Unsupported(f"no {ROLES[task]} is registered for {kind} rows")
    return {**found, DUMMY: dummy(task)}


def _task(y: NDArray[Any]) -> str:
    if y.dtype.kind in "OUSb":
        return "classification"
    whole = y.dtype.kind in "iu" or np.array_equal(y, np.round(y))
    return "classification" if whole and len(np.unique(y)) <= SEVERAL else "regression"


def assessment_facts(found: RowAssessment) -> dict[str, Any]:
    """Everything a reader or a program needs to know; no times, so the same seed gives the same."""
    source, n, asked = found.source, len(found.truth), found.settings
    facts: dict[str, Any] = {
        "groundstate_report": FORMAT,
        "task": found.task,
        "data": {
            "name": source.name, "description": f"{source.kind} rows", "hash": source.hash,
            "rows": count(source.rows), "columns": None, "target": source.target, "types": [],
            "notes": source.notes, "findings": [],
        },
        "design": {
            "kind": "holdout", "judged": n, "development": count(source.rows) - n,
            "candidates_compared_on": _compared_on(asked["folds"]), "positive": None,
            "models": [entry.name for entry in found.board], **asked,
        },
        "chosen": found.chosen,
        "candidates": found.board.to_dict(times=False),
        "scores": {name: span(value, n) for name, value in found.scores.items()},
        "baselines": {
            "skill": span(found.skill, n), "better_than_dummy": found.better_than_dummy,
            **{who: {k: span(v, n) for k, v in row.items()} for who, row in found.baselines.items()},
        },
        "comparison": found.comparison,
        "ledger": found.ledger,
        "skipped": list(found.skipped),
        "model": model_facts(found.model),
        "reproduce": {
            "command": " ".join(["groundstate", "fit", *source.command, "--target", source.target,
                                 "--seed", str(asked["seed"])]),
            "seed": asked["seed"],
            "versions": {name: version(name) for name in LIBRARIES},
        },
    }  # fmt: skip
    if found.classes is not None:
        facts["classes"] = [str(label) for label in found.classes]
    facts = plain(facts)
    return {"verdict": _verdict(facts), **facts}


def _compared_on(folds: int | None) -> str:
    return "a quarter" if folds is None else f"{folds} parts"


def _verdict(facts: dict[str, Any]) -> list[str]:
    """Two sentences; there is no audit of columns to speak of."""
    return [s.replace("the columns do not help", "what is known of the rows does not help")
            for s in three_sentences(facts)[:2]]  # fmt: skip
