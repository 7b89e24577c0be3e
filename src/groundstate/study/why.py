"""What the model looks at and what the columns hold, for an assessment: from held-out rows only."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.random import Key
from groundstate.compute.weight_line.line import WeightLine
from groundstate.evaluate.explain.association import column_groups
from groundstate.evaluate.explain.dependence import partial_dependence
from groundstate.evaluate.explain.drift import drift
from groundstate.evaluate.explain.importance import (
    Importance,
    mean_over_models,
    permutation_importance,
)
from groundstate.evaluate.explain.profiles import column_profiles
from groundstate.evaluate.fitting import fit_clone
from groundstate.evaluate.rows import columns, take
from groundstate.models.tables.table import TablePredictor
from groundstate.study.candidates import DUMMY
from groundstate.study.question import Question

if TYPE_CHECKING:
    from groundstate.study.assess import Assessment

_REPEATS = 5
_ROWS = 1_000  # held-out rows that are shuffled
_PREDICTED = 400_000  # shuffled rows that are predicted in all
_COLUMNS = 200
_FOLDS = 3  # models that stand for all folds of a nested design
_CURVES, _CURVE_ROWS, _GRID = 4, 200, 15
_SINGLE = 20


def with_why(found: Assessment, question: Question, key: Key) -> Assessment:
    """The assessment with what its model looks at, and with profiles of the columns.

    How many rows, shuffles and curves there are depends on the size of the table alone, never on a
    clock, so that a study gives the same numbers again.
    """
    skipped = list(found.skipped)
    profiles: dict[str, Any] = {
        "profiles": [profile.to_dict() for profile in column_profiles(question.table)]
    }
    if isinstance(question.test, np.ndarray):
        train, test = found.design.split
        table = question.table
        profiles["drift"] = drift(
            table.take(train), table.take(test), random_state=key.fold("drift")
        ).to_dict()
    explained = None
    if found.chosen != DUMMY and isinstance(found.model, TablePredictor):
        d = len(question.features.columns)
        if d > _COLUMNS:
            skipped.append(f"importance of columns: {d:,} are more than {_COLUMNS}")
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # fits to parts; the study reported them
                explained = _explained(found, question, key.fold("why"))
        found.model.keep_background(take(question.features, _learned_from(found, question)))
    return replace(found, explained=explained, columns=profiles, skipped=tuple(skipped))


def _learned_from(found: Assessment, question: Question) -> NDArray[np.intp]:
    nested = found.design.kind == "nested"
    return np.arange(question.n) if nested else found.design.split[0]


def _explained(found: Assessment, question: Question, key: Key) -> dict[str, Any]:
    judges = _judges(found, question, key)
    features = question.features
    used = [c.name for c in features.schema if c.kind not in ("id", "constant")]
    groups = column_groups(features.select(used)) if len(used) > 1 else [tuple(used)]
    most = max(50, min(_ROWS, _PREDICTED // (_REPEATS * len(groups) * len(judges))))
    parts: list[Importance] = []
    for i, (model, rows) in enumerate(judges):
        some = _some(question, rows, most, key.fold("rows", i))
        known = getattr(model, "classes_", None)
        if known is not None:
            some = some[np.isin(question.y[some], known)]
        if len(some) < 2:
            continue
        weight = question.weight[some]
        parts.append(
            permutation_importance(
                model, take(question.X, some), question.y[some], groups=groups, n_repeats=_REPEATS,
                sample_weight=None if (weight == 1).all() else weight,
                level=question.settings.level, random_state=key.fold("shuffle", i),
            )
        )  # fmt: skip
    whole = mean_over_models(parts, question.settings.level)
    model, rows = judges[0]
    some = _some(question, rows, _CURVE_ROWS, key.fold("curves"))
    names = [
        name for group in whole.groups for name in group if len(features.frame[name].drop_nulls())
    ]
    plottable = [n for n in names if features.schema[n].kind in ("numeric", "category", "date")]
    curves = [
        partial_dependence(
            model, take(question.X, some), name, grid_resolution=_GRID, individual=True
        )
        for name in plottable[:_CURVES]
    ]
    return {
        "importance": whole.to_dict(),
        "level": question.settings.level,
        "models": len(judges),
        "dependence": [_curve(curve.to_dict(_SINGLE)) for curve in curves],
    }


def _curve(found: dict[str, Any]) -> dict[str, Any]:
    """Dates as text, for JSON."""
    grid = [v if isinstance(v, int | float | str | bool) else str(v) for v in found["grid"]]
    return {**found, "grid": grid}


def _judges(found: Assessment, question: Question, key: Key) -> list[tuple[Any, NDArray[np.intp]]]:
    """Fitted models with rows that they have not seen.

    The model of a nested design has seen every row, so that three of the folds learn it again.
    """
    if found.design.kind != "nested":
        return [(found.model, found.judged)]
    made = []
    for i, (train, test) in enumerate(found.design.sides[:_FOLDS]):
        model = fit_clone(
            found.developed.recipe, take(question.X, train), question.y[train],
            question.weight[train], key.fold("fit", i),
        )  # fmt: skip
        made.append((model, np.asarray(test)))
    return made


def _some(question: Question, rows: NDArray[np.intp], most: int, key: Key) -> NDArray[np.intp]:
    """At most so many of the rows, chosen by their content."""
    if len(rows) <= most:
        return np.asarray(rows)
    line = WeightLine.of(*columns(take(question.features, rows)))
    return np.sort(rows[np.asarray(line.order(key))[:most]])
