"""What only further fits can tell, added to an assessment: seeds, other training rows, curves."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.random import Key
from groundstate.study import held_out
from groundstate.study.assess import Assessment
from groundstate.study.progress import Watch
from groundstate.study.question import Question
from groundstate.study.race import names
from groundstate.study.race.clock import Clock
from groundstate.study.variation import diagnosed, learning, usual_numbers, variation
from groundstate.study.why import with_why


def explained(found: Assessment, clock: Clock, watch: Watch) -> Assessment:
    """With what the model looks at, and profiles of the columns."""
    if names.EXPLANATION in clock.without:
        return replace(found, skipped=(*found.skipped, "the explanation (--without)"))
    with clock.limit(), watch("what the model looks at"):
        return with_why(found)


def refitted(
    found: Assessment,
    split: tuple[NDArray[np.intp], NDArray[np.intp]],
    question: Question,
    key: Key,
    clock: Clock,
    watch: Watch,
) -> Assessment:
    """With refits with other seeds and to other training rows."""
    skip: list[str] = []
    if names.REFITS in clock.without:
        return replace(found, skipped=(*found.skipped, "refits (--without)"))
    shared = _shared(found, question, clock, skip)
    settings = question.settings
    seeds, resamples = usual_numbers(question.n, settings.seeds, settings.bootstrap)
    weight = None if shared["weight"] is None else question.weight[found.judged]
    words = "refits with other seeds and other training rows"
    with clock.limit(), watch(words), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # small parts lack classes; the audit reported them
        moved = variation(
            found.developed.recipe, question.X, question.y, split,
            held_out.losses(question.measure, found.truth, found.prediction), weight,
            seeds=seeds, resamples=resamples, key=key.fold("variation"), **shared,
        )  # fmt: skip
    return replace(found, variation=moved, skipped=(*found.skipped, *skip))


def with_curves(
    found: Assessment, question: Question, key: Key, clock: Clock, watch: Watch
) -> Assessment:
    """With the learning curve, and whether the model fits too little or too much."""
    skip: list[str] = []
    shared = {**_shared(found, question, clock, skip), "level": question.settings.level}
    recipe, X, y = found.developed.recipe, question.X, question.y
    with clock.limit(), watch("the learning curve and the diagnosis"):
        curve = learning(recipe, X, y, key=key.fold("curve"), **shared)
        diagnosis = diagnosed(recipe, X, y, key=key.fold("diagnosis"), **shared)
    return replace(found, curve=curve, diagnosis=diagnosis, skipped=(*found.skipped, *skip))


def _shared(found: Assessment, question: Question, clock: Clock, skip: list[str]) -> dict[str, Any]:
    weights = None if (question.weight == 1).all() else question.weight
    seconds = found.board[found.chosen].fit_seconds or 1e-3
    return {"groups": question.groups, "clock": clock, "fit_seconds": seconds,
            "skip": skip.append, "weight": weights}  # fmt: skip
