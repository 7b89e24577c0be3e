"""How sure single predictions are: calibration, coverage, and decisions by cost."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.evaluate.predictions import Prediction
from groundstate.evaluate.rows import Floats
from groundstate.study import held_out
from groundstate.study.design import Design
from groundstate.study.question import Question
from groundstate.study.selection import Developed


def calibration(
    question: Question,
    developed: Developed,
    design: Design,
    truth: NDArray[Any],
    predicted: Prediction,
    judged: NDArray[np.intp],
) -> dict[str, Any] | None:
    """Whether probabilities happen as often as they say, and sets hold the truth as promised."""
    found: dict[str, Any] = {}
    if predicted.classes is not None and predicted.probability is not None:
        found = held_out.calibration(truth, predicted, question.positive)
    own = held_out.scores_of(truth, predicted)
    if own is None:
        return None
    level = question.settings.level
    if design.kind == "nested":  # rows of the other folds calibrate those of one
        folds = []
        for _, test in design.sides[: design.n_folds]:
            outside = np.ones(len(truth), bool)
            outside[test] = False
            folds.append((own[outside], test))
    else:
        spare, train = developed.spare, design.split[0]
        if spare is None or (spare.classes is not None and spare.probability is None):
            return found or None
        tested = np.flatnonzero(np.sum([part.test for part in developed.ranking.folds], axis=0))
        known = question.codes(question.y[train[tested]])
        scores = held_out.scores_of(known, spread(spare.take(tested), question.classes))
        assert scores is not None
        folds = [(scores, np.arange(len(judged)))]
    found["coverage"] = held_out.coverage(truth, predicted, folds, level)
    return found


def no_probabilities(predicted: Prediction, developed: Developed) -> str | None:
    """Why there is no calibration, and what to do; None where there are probabilities."""
    if predicted.classes is None or predicted.probability is not None:
        return None
    name = developed.chosen
    who = f"{name} names and ranks classes but gives no probabilities"
    if hasattr(developed.model, "predict_proba"):
        who = "the models chosen in the folds do not all give probabilities"
    return (
        f"calibration: {who}, so there is nothing to calibrate, and neither sets of classes nor "
        "costs; with --metric log_loss only models that give probabilities take part, and "
        "groundstate.evaluate.recalibrate(model, X, y, 'sigmoid') adds them to a model from rows "
        "that it has not seen"
    )


def spread(predicted: Prediction, classes: NDArray[Any] | None) -> Prediction:
    """Predictions of fewer classes as predictions of all."""
    if classes is None or predicted.classes is None or len(predicted.classes) == len(classes):
        return predicted
    place = np.searchsorted(classes, predicted.classes)

    def widened(table: Floats | None) -> Floats | None:
        if table is None:
            return None
        wide = np.zeros((len(predicted), len(classes)))
        wide[:, place] = table
        return wide

    probability, ranking = widened(predicted.probability), widened(predicted.ranking)
    return Prediction(place[predicted.values], probability, ranking, classes)


def decision(
    question: Question, truth: NDArray[Any], predicted: Prediction, weight: Floats
) -> dict[str, Any] | None:
    """What mistakes cost, where costs were given and there are probabilities."""
    settings, at = question.settings, question.positive
    if at is None or predicted.probability is None or not (settings.cost_fp or settings.cost_fn):
        return None
    actual = (truth == at).astype(np.intp)
    found = held_out.costs(
        actual,
        predicted.probability[:, at],
        weight,
        settings.cost_fp or 1.0,
        settings.cost_fn or 1.0,
    )
    assert question.classes is not None
    return {"positive": str(question.classes[at]), **found}
