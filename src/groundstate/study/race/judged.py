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
from groundstate.evaluate.losses import mean_loss
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
    merged, constant = scored(
        judged, name, truth, task=question.task, weight=weight, level=settings.level,
        key=key.fold("score"), groups=None if question.groups is None else question.groups[rows],
        positive=question.positive,
    )  # fmt: skip
    own, dull = (  # loss of each row, its mean over repeats
        np.mean([held_out.losses(question.measure, truth, one) for one in part], axis=0)
        for part in (
            [answers for _, answers in judged.repeats],
            [bases[DUMMY] for bases, _ in judged.repeats],
        )
    )
    saved = skill_interval(own, dull, settings.level, weight, random_state=key.fold("skill"))
    if judged.design.kind == "nested":
        saved = _skill_by_folds(saved, judged, question.measure, truth, weight)
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


def scored(
    judged: Judged,
    name: str,
    truth: NDArray[Any],
    *,
    weight: NDArray[np.float64],
    **share: Any,
) -> tuple[dict[str, dict[str, Interval]], dict[str, Interval]]:
    """Scores of the recipe, under the name of its choice, and of the baselines; the constant's alone.

    Parameters
    ----------
    judged, name : answers for rows, and what all rows choose by name
    truth, weight : of the judged rows
    share : of `held_out.all_intervals`

    Returns
    -------
    Scores by model, wider where folds judged. Those of the constant answer, which is of no fit, so that
    folds make them no wider: apart, as the recipe stands under its name where all rows choose it.
    """

    def means(repeats: list[Prediction]) -> dict[str, Interval]:
        tables = [held_out.all_intervals(truth, one, weight=weight, **share) for one in repeats]
        return {m: held_out.mean_interval([t[m] for t in tables]) for m in tables[0]}

    answers = [answer for _, answer in judged.repeats]
    bases = [base for base, _ in judged.repeats]
    merged = {who: means([base[who] for base in bases]) for who in bases[0]}
    constant = merged[DUMMY]
    if name != DUMMY or len(judged.chosen) > 1:  # else the recipe is the constant answer
        merged[name] = means(answers)
    if judged.design.kind == "nested":
        apart = _apart(judged, answers[0], truth, weight, merged[name])
        merged = {
            who: found
            if found is constant
            else held_out.by_folds(found, len(truth), apart if who == name else None)
            for who, found in merged.items()
        }
    return merged, constant


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


def _skill_by_folds(
    saved: Interval,
    judged: Judged,
    measure: Metric,
    truth: NDArray[Any],
    weight: NDArray[np.float64],
) -> Interval:
    """The share of loss saved, with the interval that a score by folds has."""
    (bases, answers), apart = judged.repeats[0], 0.0
    if judged.alone is not None:
        rule, alone, dull = (
            float(mean_loss(held_out.losses(measure, truth, one), weight))
            for one in (answers, judged.alone, bases[DUMMY])
        )
        apart = (alone - rule) / dull if dull > 0 else 0.0
    return held_out.folded(saved, len(truth), apart, (-np.inf, 1.0))


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
