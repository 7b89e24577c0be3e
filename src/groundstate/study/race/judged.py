"""From predictions for rows that no fit had seen to everything they say."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.random import Key
from groundstate.evaluate.board.ranked_table import Standings
from groundstate.evaluate.compare.baseline import skill_interval
from groundstate.evaluate.metrics import Metric, metric
from groundstate.evaluate.predictions import Prediction
from groundstate.math.stats.interval import Interval
from groundstate.study import confidence, held_out
from groundstate.study.assess import Assessment
from groundstate.study.candidates import DUMMY
from groundstate.study.design import Design
from groundstate.study.ledger_entry import noted
from groundstate.study.question import Question
from groundstate.study.selection import Developed


@dataclass(frozen=True)
class Judged:
    """Answers for rows that the fits behind them had not seen.

    Attributes
    ----------
    design : which rows learned and which are judged
    rows : positions of the judged rows
    repeats : for each repeat the predictions of the baselines, and those of the recipe
    chosen : how often the recipe chose what
    looks : every opening of rows
    final : these rows give the score of the report; else those set aside are still closed
    alone : answers of the configuration that all rows choose, from the same folds as the first
        repeat; None for rows set aside
    """

    design: Design
    rows: NDArray[np.intp]
    repeats: list[tuple[dict[str, Prediction], Prediction]]
    chosen: dict[str, int]
    looks: list[str]
    final: bool
    alone: Prediction | None = None


def assessed(
    question: Question,
    measure: Metric,
    developed: Developed,
    judged: Judged,
    key: Key,
    ledger: str | Path | None,
) -> Assessment:
    """Scores, intervals, comparisons, calibration and decisions of the judged rows.

    Parameters
    ----------
    measure : what the model was chosen by
    ledger : where the look is counted; None counts none
    """
    settings, rows = question.settings, judged.rows
    name = developed.chosen
    repeats = [{**bases, name: answers} for bases, answers in judged.repeats]
    predictions = repeats[0]
    truth, weight = question.codes(question.y[rows]), question.weight[rows]
    share: Any = {
        "task": question.task, "weight": weight, "level": settings.level, "key": key.fold("score"),
        "groups": None if question.groups is None else question.groups[rows],
        "positive": question.positive,
    }  # fmt: skip
    tables = [
        {who: held_out.all_intervals(truth, part[who], **share) for who in predictions}
        for part in repeats
    ]
    merged = {
        who: {m: held_out.mean_interval([t[who][m] for t in tables]) for m in tables[0][who]}
        for who in predictions
    }
    constant = merged[DUMMY]  # of no fit, so that folds make it no wider
    if name == DUMMY and len(judged.chosen) > 1:  # folds chose others: the recipe is no constant
        each = [held_out.all_intervals(truth, bases[DUMMY], **share) for bases, _ in judged.repeats]
        constant = {m: held_out.mean_interval([found[m] for found in each]) for m in each[0]}
    if judged.design.kind == "nested":
        apart = _apart(judged, predictions[name], truth, weight, merged[name])
        merged = {
            who: found
            if who == DUMMY and found is constant
            else held_out.by_folds(found, len(rows), apart if who == name else None)
            for who, found in merged.items()
        }

    own, dull = (  # loss of each row, its mean over repeats
        np.mean([held_out.losses(question.measure, truth, one) for one in part], axis=0)
        for part in (
            [answers for _, answers in judged.repeats],
            [bases[DUMMY] for bases, _ in judged.repeats],
        )
    )
    saved = skill_interval(own, dull, settings.level, weight, random_state=key.fold("skill"))
    own_scores = {DUMMY: constant}  # of the chosen model only where it is what judged rows met
    if len(judged.chosen) < 2:
        own_scores[name] = merged[name]
    board, comparison = standing(
        developed, question.measure, question, own_scores, truth, repeats, weight, key
    )
    skipped: list[str] = []
    calibration = None
    if judged.final:
        calibration = confidence.calibration(
            question, developed, judged.design, truth, predictions[name], rows
        )
    decision = confidence.decision(question, truth, predictions[name], weight)
    unsure = confidence.no_probabilities(predictions[name], developed)
    skipped += [] if unsure is None else [unsure]
    seen = noted(ledger, question, rows, name, developed.params, merged[name], skipped.append)
    alone = judged.design.kind == "holdout"
    bound = held_out.bound(
        truth, predictions[name], settings.level, seen["looks"], independent=alone
    )
    return Assessment(
        table=question.table,
        settings=settings,
        findings=(),
        design=judged.design,
        developed=developed,
        board=board,
        truth=truth,
        judged=rows,
        predictions=predictions,
        classes=question.classes,
        scores=merged[name],
        baselines={
            who: constant if who == DUMMY else merged[who]
            for who in predictions
            if who != name or who == DUMMY
        },
        skill=saved,
        comparison={**comparison, "chosen_by": measure.name},
        calibration=calibration,
        variation=None,
        curve=None,
        diagnosis=None,
        bound=bound,
        decision=decision,
        chosen_in_folds=judged.chosen,
        ledger={**seen, "log": list(judged.looks)},
        skipped=tuple(skipped),
    )


def _apart(
    judged: Judged,
    answers: Prediction,
    truth: NDArray[Any],
    weight: NDArray[np.float64],
    names: Iterable[str],
) -> dict[str, float]:
    """Scores less those of the configuration that all rows choose; nothing where folds chose it too."""
    if judged.alone is None:
        return {}
    rows = [m for m in map(metric, names) if m.available(judged.alone) and m.available(answers)]
    return {
        m.name: float(m.score(truth, answers, weight) - m.score(truth, judged.alone, weight))
        for m in rows
    }


def standing(
    developed: Developed,
    measure: Metric,
    question: Question,
    scores: dict[str, dict[str, Interval]],
    truth: NDArray[Any],
    repeats: list[dict[str, Prediction]],
    weight: NDArray[np.float64],
    key: Key,
) -> tuple[Standings, dict[str, Any]]:
    """The board with scores of models on held-out rows, and the chosen model against the others."""
    board, name = developed.ranking.board, developed.chosen
    for who, found in scores.items():
        seen = found[board.metric]
        board = board.with_entry(
            who, test_score=seen.estimate, test_low=seen.low, test_high=seen.high
        )
    level = question.settings.level
    on_test = held_out.compared(
        measure, truth, name, repeats, weight=weight, level=level, key=key.fold("on test")
    )
    return board, {
        "metric": measure.name,
        "chosen": name,
        "tied": list(board.tied),
        "test": on_test,
    }
