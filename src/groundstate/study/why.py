"""What the model looks at and what the columns hold, for an assessment: from held-out rows only."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.device import threads
from groundstate.compute.random import Key
from groundstate.compute.weight_line.line import WeightLine
from groundstate.data import Table
from groundstate.evaluate.explain.association import column_groups
from groundstate.evaluate.explain.dependence import Dependence, partial_dependence
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
from groundstate.study.design import Size

if TYPE_CHECKING:
    from groundstate.study.assess import Assessment

_REPEATS = 5
_ROWS = 1_000  # held-out rows that are shuffled
_PREDICTED = 400_000  # shuffled rows that are predicted in all
_COLUMNS = 200
_FOLDS, _QUICK = 3, 3.0  # models that stand for all folds of a nested design, nominal seconds
_CURVES, _CURVE_ROWS, _GRID = 4, 200, 15
_SINGLE = 20


def with_why(found: Assessment) -> Assessment:
    """The assessment with what its model looks at, and with profiles of the columns.

    How many rows, shuffles and curves there are depends on the size of the table alone, never on a
    clock, so that a study gives the same numbers again. Every held-out row counts once.
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1), threads(1):
        return _with_why(found, Key.of(found.settings.seed).fold("why"))


def _with_why(found: Assessment, key: Key) -> Assessment:
    skipped, table = list(found.skipped), found.table
    profiles: dict[str, Any] = {
        "profiles": [profile.to_dict() for profile in column_profiles(table)]
    }
    if isinstance(found.settings.test, str):
        train, test = found.design.split
        profiles["drift"] = drift(
            table.take(train), table.take(test), random_state=key.fold("drift")
        ).to_dict()
    explained = None
    if found.chosen != DUMMY and isinstance(found.model, TablePredictor):
        d = len(table.features.columns)
        if d > _COLUMNS:
            skipped.append(
                f"the importance of columns: {d:,} are more than the {_COLUMNS} that are tried"
            )
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # fits to parts; the study reported them
                explained = _explained(found, key)
    return replace(found, explained=explained, columns=profiles, skipped=tuple(skipped))


def _explained(found: Assessment, key: Key) -> dict[str, Any]:
    judges, level = _judges(found, key), found.settings.level
    table, features, y = found.table, found.table.features, found.table.y
    used = [c.name for c in features.schema if c.kind not in ("id", "constant")]
    groups = column_groups(features.select(used)) if len(used) > 1 else [tuple(used)]
    most = max(50, min(_ROWS, _PREDICTED // (_REPEATS * len(groups) * len(judges))))
    parts: list[Importance] = []
    for i, (model, rows) in enumerate(judges):
        some = _some(features, rows, most, key.fold("rows", i))
        known = getattr(model, "classes_", None)
        if known is not None:
            some = some[np.isin(y[some], known)]
        if len(some) < 2:
            continue
        parts.append(
            permutation_importance(
                model, take(table, some), y[some], groups=groups, n_repeats=_REPEATS, level=level,
                random_state=key.fold("shuffle", i),
            )
        )  # fmt: skip
    whole = mean_over_models(parts, level)
    model, rows = judges[0]
    some = _some(features, rows, _CURVE_ROWS, key.fold("curves"))
    names = [
        name for group in whole.groups for name in group if len(features.frame[name].drop_nulls())
    ]
    plottable = [n for n in names if features.schema[n].kind in ("numeric", "category", "date")]
    curves: list[Dependence] = []
    impossible: list[str] = []
    for name in plottable[: 2 * _CURVES]:
        curve = partial_dependence(
            model, take(table, some), name, grid_resolution=_GRID, individual=True
        )
        if curve.units == "value" and _far_from(y, curve.average):
            impossible.append(name)
        elif len(curves) < _CURVES:
            curves.append(curve)
    return {
        "importance": whole.to_dict(),
        "level": level,
        "models": len(judges),
        "dependence": [_curve(curve.to_dict(_SINGLE)) for curve in curves],
        "impossible": impossible,
    }


def _far_from(y: NDArray[Any], average: NDArray[np.float64]) -> bool:
    """Whether a curve leaves the values of the target by more than their range.

    A column that goes with another and is set alone makes rows that do not exist, such as a journey
    that ends a year before it began.
    """
    low, high = float(np.min(y)), float(np.max(y))
    wide = high - low
    return bool(average.max() > high + wide or average.min() < low - wide)


def _curve(found: dict[str, Any]) -> dict[str, Any]:
    """Dates as text, for JSON."""
    grid = [v if isinstance(v, int | float | str | bool) else str(v) for v in found["grid"]]
    return {**found, "grid": grid}


def _judges(found: Assessment, key: Key) -> list[tuple[Any, NDArray[np.intp]]]:
    """Fitted models with rows that they have not seen.

    The model of a nested design has seen every row, so that three of the folds learn it again, one
    of them where fits are slow.
    """
    if found.design.kind != "nested":
        return [(found.model, found.judged)]
    made, table = [], found.table
    for i, (train, test) in enumerate(found.design.sides[: _models(found)]):
        model = fit_clone(
            found.developed.recipe, take(table, train), table.y[train], np.ones(len(train)),
            key.fold("fit", i),
        )  # fmt: skip
        made.append((model, np.asarray(test)))
    return made


def _models(found: Assessment) -> int:
    """How many folds' models are made again: one where the class declares that a fit takes long."""
    fit = Size.of_table(found.table, found.classes).of(found.developed.recipe)
    return _FOLDS if _FOLDS * fit <= _QUICK else 1


def _some(features: Table, rows: NDArray[np.intp], most: int, key: Key) -> NDArray[np.intp]:
    """At most so many of the rows, chosen by their content."""
    if len(rows) <= most:
        return np.asarray(rows)
    line = WeightLine.of(*columns(take(features, rows)))
    return np.sort(rows[np.asarray(line.order(key))[:most]])
