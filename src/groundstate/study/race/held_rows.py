"""Rows that no fit behind an answer had seen: those of folds, or those set aside."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.random import Key
from groundstate.evaluate.fitting import fit_clone
from groundstate.evaluate.predictions import Prediction
from groundstate.evaluate.rows import take
from groundstate.study.candidates import baselines
from groundstate.study.confidence import spread
from groundstate.study.design import Design, HeldRows
from groundstate.study.question import Question
from groundstate.study.race.field import Race
from groundstate.study.race.judged import Judged
from groundstate.study.selection import Developed


def on_folds(
    question: Question,
    laps: list[Race],
    eligible: set[str],
    whole: Design,
    rows: NDArray[np.intp],
) -> Judged:
    """Rows of the races, each answered by what was chosen without its fold."""
    race, nested = laps[0], whole.kind == "nested"
    names: Counter[str] = Counter()
    repeats = []
    for lap in laps:
        answers, chosen = lap.answers(eligible)
        names += chosen
        bases = {who: lap.predictions[who] for who in baselines(question.task)
                 if who in lap.predictions}  # fmt: skip
        repeats.append((bases, answers))
    k = len(race.parts)
    if nested:
        design = replace(whole, sides=whole.sides[: k * len(laps)], repeats=len(laps))
    else:
        splits = [race.splits[min(i, len(race.splits) - 1)] for i in range(k)]
        sides = [(rows[s.train_rows], rows[p]) for s, p in zip(splits, race.parts)]
        why = "the test rows stay closed until the choice is made"
        design = Design("nested", sides, None, 1, why)
    looks = [
        f"outer fold {i + 1}" + (f", repeat {lap + 1}" if lap else "")
        for lap in range(len(laps))
        for i in range(k)
    ]

    def judged_part(predicted: Prediction) -> Prediction:
        return spread(predicted.take(race.judged), question.classes)

    taken = [
        ({who: judged_part(p) for who, p in bases.items()}, judged_part(answers))
        for bases, answers in repeats
    ]
    alone = judged_part(race.predictions[race.choose(among=eligible)])
    return Judged(design, rows[race.judged], taken, dict(names), looks, nested, alone)


def on_test_rows(
    question: Question, developed: Developed, race: Race, whole: Design, key: Key
) -> Judged:
    """The rows set aside, opened once for the model that was chosen."""
    train, rest = whole.split
    held = HeldRows(question.X, question.y, rest)
    X, y, weight = take(question.X, train), question.y[train], question.weight[train]
    bases = {
        who: fit_clone(base, X, y, weight, key.fold("base", who))
        for who, base in baselines(question.task).items()
        if who in race.predictions
    }
    rows, _ = held.look("report")
    predictions = {who: Prediction.of(m, rows, question.classes) for who, m in bases.items()}
    answers = Prediction.of(developed.model, rows, question.classes)
    names = {developed.chosen: 1}
    return Judged(whole, rest, [(predictions, answers)], names, list(held.looks), True)
