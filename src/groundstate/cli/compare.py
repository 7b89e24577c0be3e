"""``groundstate compare``: two saved models, or two files of predictions, on the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.cli.loading import load_model, rows_for
from groundstate.cli.screen import Screen
from groundstate.data import Table, read
from groundstate.errors import DataError
from groundstate.evaluate import metric as metric_named
from groundstate.evaluate.board.prediction_files import is_predictions, read_predictions, truth_of
from groundstate.evaluate.compare.paired import compare as compare_losses
from groundstate.evaluate.predictions import Prediction
from groundstate.models.tables.table import TablePredictor
from groundstate.study.held_out import losses
from groundstate.study.numbers import plain


def compare(
    table: str,
    a: str,
    b: str,
    target: str,
    metric: str | None,
    groups: str | None,
    level: float,
    seed: int,
    device: str | None,
    json: bool,
) -> None:
    """Which of two makes fewer mistakes on these rows, and how sure that is."""
    screen, source = Screen(json), read(table).with_target(target)
    task = str(source.task)
    measure = metric_named(metric, task)
    if measure.task != task:
        raise DataError(f"{measure.name} is a metric for {measure.task}, the task is {task}")
    truth, classes = truth_of(source)
    answers = {path: _answers(path, table, source, classes, device) for path in (a, b)}
    for path, predicted in answers.items():
        if not measure.available(predicted):
            raise DataError(
                f"{measure.name} needs each class's {measure.needs} and {path!r} gives none; "
                "files have columns p(label), as predict --proba writes them"
            )
    wrong = [losses(measure, truth, predicted) for predicted in answers.values()]
    cluster = None if groups is None else source.values(groups)
    if len(answers) < 2:
        raise DataError("compare takes two different models or files of predictions")
    found = compare_losses(*wrong, groups=cluster, level=level, random_state=seed)
    scores = {
        path: measure.score(truth, predicted, np.ones(len(truth)))
        for path, predicted in answers.items()
    }
    facts = {"metric": measure.name, "scores": scores, "a": a, "b": b, "loss": found.to_dict()}
    screen.data(plain(facts))
    names = {"A": Path(a).name, "B": Path(b).name, "cannot tell": "neither"}
    lines = [f"{Path(path).name}: {measure.name} {score:.4g}" for path, score in scores.items()]
    verdict = found.verdict
    better = (
        "they cannot be told apart" if verdict == "cannot tell" else f"{names[verdict]} is better"
    )
    lines += [
        "",
        f"{better} on {found.n:,} rows: mean loss of the first minus the second "
        f"{found.difference:.4g} ({found.low:.4g} to {found.high:.4g}), {found.method} p {found.p:.3g}",
        f"chance that the first is better: {found.better:.0%}; chance that so many rows show such a "
        f"difference: {found.power:.0%}",
    ]
    screen.show("\n".join(lines))


def _answers(
    path: str, table: str, source: Table, classes: NDArray[Any] | None, device: str | None
) -> Prediction:
    if is_predictions(path):
        return read_predictions(path, source.n_rows, str(source.target), classes)
    model = load_model(path, device)
    if not hasattr(model, "predict"):
        raise DataError(f"{path!r} holds a model that does not predict")
    rows = source if isinstance(model, TablePredictor) else rows_for(model, table)
    return Prediction.of(model, rows, classes)
