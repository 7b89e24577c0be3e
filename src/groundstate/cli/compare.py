"""``groundstate compare``: two saved models, or two files of predictions, on the same rows."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.cli.loading import load_model, named, rows_for
from groundstate.cli.score import labelled, seen_warning
from groundstate.cli.screen import Screen
from groundstate.data import Table, read
from groundstate.errors import DataError
from groundstate.evaluate import metric as metric_named
from groundstate.evaluate.board.prediction_files import is_predictions, read_predictions, truth_of
from groundstate.evaluate.compare.paired import PairedComparison
from groundstate.evaluate.compare.paired import compare as compare_losses
from groundstate.evaluate.predictions import Prediction
from groundstate.models.tables.table import TablePredictor
from groundstate.store import manifest
from groundstate.study.held_out import losses
from groundstate.study.numbers import label, plain, show, show_range
from groundstate.study.single_rows import share_seen


def compare(
    table: str,
    a: str,
    b: str,
    target: str | None,
    metric: str | None,
    groups: str | None,
    level: float,
    seed: int,
    device: str | None,
    json: bool,
) -> None:
    """Which of two makes fewer mistakes on these rows, and how sure that is."""
    screen = Screen(json)
    if Path(table).suffix == ".gs":  # A B TABLE reads as well
        table, a, b = b, table, a
    models = {p: None if is_predictions(p) else load_model(p, device) for p in (a, b)}
    source = _labelled(table, target, list(models.values()))
    task = str(source.task)
    measure = metric_named(metric, task)
    if measure.task != task:
        raise DataError(f"{measure.name} is a metric for {measure.task}, the task is {task}")
    if os.path.abspath(a) == os.path.abspath(b):
        raise DataError(
            f"compare takes two different models or files of predictions, got {a!r} twice"
        )
    truth, classes = truth_of(source)
    if classes is not None:
        classes = _every_class(classes, list(models.values()))
        truth = np.searchsorted(classes, source.y)
    answers = {path: _answers(path, models[path], table, source, classes) for path in (a, b)}
    for path, (predicted, _, _) in answers.items():
        if not measure.available(predicted):
            raise DataError(
                f"{measure.name} needs each class's {measure.needs} and {path!r} gives none; "
                "files have columns p(label), as predict --proba writes them"
            )
    wrong = [losses(measure, truth, predicted) for predicted, _, _ in answers.values()]
    cluster = None if groups is None else source.values(groups)
    found = compare_losses(*wrong, groups=cluster, level=level, random_state=seed)
    names = dict(zip((a, b), _names(a, b, [who for _, who, _ in answers.values()])))
    scores = {
        path: measure.score(truth, p, np.ones(len(truth))) for path, (p, _, _) in answers.items()
    }
    seen = {path: share for path, (_, _, share) in answers.items()}
    conclusion = _conclusion(names[a], names[b], found)
    facts = {
        "metric": measure.name, "scores": scores, "a": a, "b": b, "names": names,
        "loss": found.to_dict(), "share_seen": seen, "conclusion": conclusion,
    }  # fmt: skip
    screen.data(plain(facts))
    loss = measure.name if measure.is_mean and not measure.greater_is_better else (
        "zero_one" if classes is not None else "squared")  # fmt: skip
    kind = "accuracy" if loss == "zero_one" else ""
    lines = [
        f"{names[path]}: {label(measure.name)} {show(score, measure.name)}"
        for path, score in scores.items()
    ]
    lines += [
        "",
        f"{conclusion} on {found.n:,} rows: {label(loss)} of {names[a]} minus {names[b]} "
        f"{show(found.difference, kind)} ({show_range(found.low, found.high, kind)}), "
        f"{found.method} p {show(found.p, 'p')}",
    ]
    if found.verdict == "cannot tell" and np.isfinite(found.rows_for_power) and found.difference:
        lines.append(
            f"a difference of this size would take about {int(found.rows_for_power):,} rows to see"
        )
    lines += seen_warning({names[path]: share for path, share in seen.items()})
    screen.show("\n".join(lines))


def _labelled(table: str, target: str | None, models: list[Any]) -> Table:
    """The rows with the truth: in the column asked for, else in the one that the models predict."""
    own = [m for m in models if isinstance(m, TablePredictor) and m.schema_.target is not None]
    if own and target is None:
        names = list(dict.fromkeys(m.target_ for m in own))
        if len(names) > 1:
            raise DataError(
                f"the models predict {names[0]!r} and {names[1]!r}; --target names the column of the truth"
            )
        return labelled(own[0], table, None)
    if target is None:
        raise DataError(
            "files of predictions do not say which column holds the truth; name it with --target"
        )
    return read(table).with_target(target)


def _every_class(classes: NDArray[Any], models: list[Any]) -> NDArray[Any]:
    """Classes of the rows and of the models, which may know more than these rows have."""
    words = classes.dtype.kind in "OU"
    own = [np.asarray(model.classes_) for model in models if hasattr(model, "classes_")]
    return np.unique(
        np.concatenate([classes, *(c for c in own if (c.dtype.kind in "OU") == words)])
    )


def _conclusion(a: str, b: str, found: PairedComparison) -> str:
    """One sentence that agrees with the test: no winner where it sees none."""
    if found.verdict == "cannot tell":
        return f"{a} and {b} cannot be told apart"
    return f"{a if found.difference < 0 else b} is better"


def _names(a: str, b: str, models: list[str]) -> tuple[str, str]:
    """What to call the two: their models where these differ, else their places too."""
    if models[0] != models[1]:
        return models[0], models[1]
    places = [Path(path).parent.name for path in (a, b)]
    if places[0] == places[1]:
        places = [a, b]
    return f"{models[0]} ({places[0]})", f"{models[1]} ({places[1]})"


def _answers(
    path: str, model: Any, table: str, source: Table, classes: NDArray[Any] | None
) -> tuple[Prediction, str, float | None]:
    """What a model or file says, its name, and the share of rows that it learned from."""
    if model is None:
        found = read_predictions(path, source.n_rows, str(source.target), classes)
        return found, Path(path).name, None
    if not hasattr(model, "predict"):
        raise DataError(f"{path!r} holds a model that does not predict")
    rows = source if isinstance(model, TablePredictor) else rows_for(model, table)
    seen = share_seen(manifest(path)["meta"].get("seen"), source)
    return Prediction.of(model, rows, classes), named(model), seen
