"""``groundstate score``: how good a saved model is on a table with the truth."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.cli.loading import inner, load_model, named
from groundstate.cli.screen import Screen
from groundstate.compute.random import Key
from groundstate.data import Schema, Table, written
from groundstate.data.messages import count, listing
from groundstate.errors import DataError, Unsupported
from groundstate.evaluate.explain.drift import drift
from groundstate.evaluate.predictions import Prediction
from groundstate.models.tables.explained import table_rows
from groundstate.models.tables.table import TablePredictor
from groundstate.store import manifest
from groundstate.study.held_out import all_intervals
from groundstate.study.numbers import label, plain, show, show_range, span
from groundstate.study.question import positive_of
from groundstate.study.single_rows import intervals, sets, share_seen

_ASKED = 0.9  # coverage that sets and intervals are asked for
SEEN = 0.01  # share of training rows from which on a score is no score of new rows


def score(
    model: str,
    table: str,
    target: str | None,
    positive: str | None,
    groups: str | None,
    level: float,
    seed: int,
    device: str | None,
    json: bool,
    train: str | None = None,
) -> None:
    """Every metric with its interval, coverage of sets or intervals, and the earlier promise."""
    screen, loaded = Screen(json), load_model(model, device)
    if not hasattr(loaded, "predict"):
        raise Unsupported(f"{named(loaded)} does not predict, so there is nothing to score")
    source = labelled(loaded, table, target)
    truth, predicted = answers(loaded, source)
    at = None
    if predicted.classes is not None:
        at = positive_of(source.y, predicted.classes, positive)
    found = all_intervals(
        truth, predicted, task=str(source.task), weight=np.ones(len(truth)), level=level,
        key=Key.of(seed), groups=None if groups is None else source.values(groups), positive=at,
    )  # fmt: skip
    meta = manifest(model)["meta"]
    facts: dict[str, Any] = {
        "model": model,
        "estimator": named(loaded),
        "rows": len(truth),
        "target": source.target,
        "level": level,
        "scores": {name: span(value, len(truth)) for name, value in found.items()},
        "constant": _constant(truth, predicted),
        "coverage": _coverage(loaded, meta.get("errors"), source, level),
        "promised": _promised(meta, found),
        "share_seen": share_seen(meta.get("seen"), source),
        "drift": _drift(loaded, train, source, seed),
    }
    if at is not None and predicted.classes is not None:
        facts["positive"] = str(predicted.classes[at])
    if predicted.classes is not None:
        facts["unknown"] = _unknown(loaded, truth, predicted)
    facts = plain(facts)
    screen.data(facts)
    screen.show(*_shown(facts))


def labelled(model: Any, source: str, target: str | None) -> Table:
    """The rows of a table with the truth, read as the model read its own."""
    if not isinstance(model, TablePredictor):
        raise DataError(f"a file of {named(model)} alone knows no columns; save what fit makes")
    name, cells, schema = target or model.target_, written(source), model.schema_
    if name not in schema and model.target_ in schema:  # the truth under a name of its own
        truth = replace(schema[model.target_], name=name)
        rest = (column for column in schema if column.name != model.target_)
        schema = Schema((*rest, truth))
    table = cells.table(schema=schema.with_target(name if name in schema else None))
    if name not in table.columns:
        raise DataError(
            f"{source!r} has no column {name!r} with the truth; its columns are "
            f"{listing(cells.frame.columns)}, and --target names another"
        )
    return table.with_target(name)


def answers(model: Any, table: Table) -> tuple[NDArray[Any], Prediction]:
    """Class numbers or values of the truth, and the predictions for them."""
    if not hasattr(inner(model), "classes_"):
        if table.task == "classification":
            raise DataError(
                f"the model predicts numbers and {table.target!r} holds classes such as "
                f"{str(table.y[0])!r}; name the column of the truth with --target"
            )
        return table.y.astype(np.float64), Prediction.of(model, table)
    own = np.asarray(model.classes_)
    y = np.asarray(table.y)
    if own.dtype.kind in "USO" or y.dtype.kind in "USO":
        own, y = own.astype(str), y.astype(str)
    if not np.isin(y, own).any():
        raise DataError(
            f"no value of {table.target!r} ({listing(sorted(set(map(str, y))))}) is a class of the "
            f"model ({listing(list(map(str, own)))}); write both with the same labels"
        )
    classes = np.unique(np.concatenate([own, y]))
    return np.searchsorted(classes, y), Prediction.of(model, table, classes)


def _unknown(model: Any, truth: NDArray[Any], predicted: Prediction) -> dict[str, int]:
    """Labels of the truth that the model does not know, with their number of rows."""
    assert predicted.classes is not None
    own = set(map(str, model.classes_))
    counts = np.bincount(truth.astype(np.intp), minlength=len(predicted.classes))
    known = zip(map(str, predicted.classes), counts.tolist(), strict=True)
    return {name: n for name, n in known if n and name not in own}


def _constant(truth: NDArray[Any], predicted: Prediction) -> dict[str, Any]:
    """The score of the best constant answer for these rows."""
    if predicted.classes is None:
        return {"answer": float(truth.mean()), "rmse": float(truth.std()), "r2": 0.0}
    counts = np.bincount(truth.astype(np.intp), minlength=len(predicted.classes))
    top = int(counts.argmax())
    p = counts[counts > 0] / counts.sum()
    return {
        "answer": str(predicted.classes[top]),
        "accuracy": float(counts[top] / counts.sum()),
        "log_loss": float(-(p * np.log(p)).sum()),
    }


def _coverage(model: Any, kept: Any, table: Table, level: float) -> dict[str, Any] | None:
    """How often sets or intervals made to hold the truth in 90 % of rows do."""
    if kept is None:
        return None
    one = intervals if kept["kind"] == "interval" else sets
    made = one(model, kept, table, _ASKED)
    found = made.coverage(table.y, level)
    size = getattr(made, "mean_width", None)
    return {
        "kind": kept["kind"],
        "wanted": _ASKED,
        "covered": found.estimate,
        "lo": found.low,
        "hi": found.high,
        "mean_size": getattr(made, "mean_size", None) if size is None else size,
    }


def _drift(model: TablePredictor, train: str | None, table: Table, seed: int) -> Any:
    """How these rows differ from those the model learned from, as far as any of them are known."""
    rows: Any = model.background_ if train is None else train
    if rows is None:
        return None
    first = table_rows(model, rows)
    return drift(first, table_rows(model, table), random_state=seed).to_dict()


def _promised(meta: dict[str, Any], found: dict[str, Any]) -> dict[str, Any] | None:
    """The interval that the study gave, and whether this score lies in it."""
    name, ends = meta.get("metric"), meta.get("test")
    if name not in found or not ends or ends[1] is None:
        return None
    here = found[name]
    return {
        "metric": name,
        "value": ends[0],
        "lo": ends[1],
        "hi": ends[2],
        "agrees": bool(here.high >= ends[1] and here.low <= ends[2]),
    }


def _shown(facts: dict[str, Any]) -> list[Any]:
    from rich.table import Table as Grid

    grid = Grid(box=None, pad_edge=False, header_style="bold")
    for column in ("measure", facts["estimator"], f"{facts['level']:.0%} interval", "constant"):
        grid.add_column(column, justify="right" if column == facts["estimator"] else "left")
    for name, row in facts["scores"].items():
        if row["value"] is None:  # of one class alone there is no ROC
            continue
        base = facts["constant"].get(name)
        grid.add_row(label(name), show(row["value"], name), show_range(row["lo"], row["hi"], name),
                     "" if base is None else show(base, name))  # fmt: skip
    lines = [f"{count(facts['rows'], 'row')} with the truth in {facts['target']!r}", "", grid, ""]
    cover = facts["coverage"]
    if cover:
        what = "sets of classes" if cover["kind"] == "set" else "intervals"
        few = ""
        if cover["covered"] < cover["wanted"]:
            sure = cover["hi"] < cover["wanted"]
            few = ": measurably too few" if sure else ": fewer, but within the error of these rows"
        lines.append(
            f"{what} made to hold the truth in {cover['wanted']:.0%} of rows hold it in "
            f"{show(cover['covered'], 'accuracy')} "
            f"({show_range(cover['lo'], cover['hi'], 'accuracy')}){few}"
        )
    promise = facts["promised"]
    if promise:
        fits = "which agrees" if promise["agrees"] else "which does not agree: these rows differ"
        if not promise["agrees"] and (facts["share_seen"] or 0.0) >= SEEN:
            fits = "of new rows, and it has learned from these"
        lines.append(
            f"the study promised {label(promise['metric'])} {show(promise['value'], promise['metric'])} "
            f"({show_range(promise['lo'], promise['hi'], promise['metric'])}), {fits}"
        )
    unknown = facts.get("unknown")
    if unknown:
        rows = sum(unknown.values())
        lines.append(
            f"warning: {listing(list(unknown))} {'is no class' if len(unknown) == 1 else 'are no classes'} "
            f"of the model, so that {count(rows, 'row')} of {facts['rows']:,} can only be answered wrongly"
        )
    if facts["drift"]:
        lines.append(facts["drift"]["sentence"])
    lines += seen_warning({facts["model"]: facts["share_seen"]})
    return lines


def seen_warning(shares: dict[str, float | None]) -> list[str]:
    """A sentence about every model that learned from some of the rows."""
    return [
        f"warning: {name} learned from {share:.0%} of these rows, so its score is too good for new ones"
        for name, share in shares.items()
        if share is not None and share >= SEEN
    ]
