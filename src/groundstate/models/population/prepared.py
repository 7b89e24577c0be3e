"""Many fits behind a preparation: each weighting has its own, the models are one program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from groundstate.data import Table, read
from groundstate.errors import NotApplicable
from groundstate.models.population.members import F64, Settings, distinct
from groundstate.models.traits import asks_scaled_target
from groundstate.models.weighted import n_rows, take

_NUMBERS = 2**26  # weights held at once: members times prepared rows
Block = tuple[Any, NDArray[Any], NDArray[Any], F64]  # recipe, prepared rows, targets, weights


def fit_prepared(recipe: Any, X: Any, y: Any, weights: F64 | None, settings: Settings) -> list[Any]:
    """Fitted clones of a pipeline or of a recipe for tables.

    Rows without weight take no part in a preparation. Members with equal weights and equal settings
    of the preparation share it.
    """
    from groundstate.models.population.many import fit_together

    if y is None:
        raise NotApplicable("there is no target")
    steps = getattr(recipe, "steps", None)
    name, learner = steps[-1] if steps else ("estimator", recipe.estimator)
    if not steps:
        X = _table(recipe, X)
    own = [_split(name, dict(p)) for p in settings]
    if not steps:
        _check_scale(recipe, [inner for _, inner in own])
    rows, of_rows = np.ones((1, n_rows(X))), np.zeros(len(own), np.int64)
    if weights is not None:
        rows, of_rows = distinct(weights)
    target = np.asarray(y)
    kinds: list[tuple[int, dict[str, Any]]] = []
    blocks: list[Block] = []
    of: list[int] = []
    for row, (before, _) in zip(of_rows, own, strict=True):
        if (int(row), before) not in kinds:
            made = clone(recipe).set_params(**before)
            blocks.append((_steps if steps else _columns)(made, X, target, rows[row]))
            kinds.append((int(row), before))
        of.append(kinds.index((int(row), before)))
    if len({block[1].shape[1:] for block in blocks}) > 1:
        raise NotApplicable("the folds do not have the same prepared columns")
    ends = np.cumsum([0, *(len(block[1]) for block in blocks)])
    if ends[-1] * len(own) > _NUMBERS:
        raise NotApplicable(f"{len(own)} members of {ends[-1]} prepared rows are too many to hold")
    held = np.zeros((len(own), ends[-1]))
    for member, kind in enumerate(of):
        held[member, ends[kind] : ends[kind + 1]] = blocks[kind][3]
    x, t = (np.concatenate([block[i] for block in blocks]) for i in (1, 2))
    models = fit_together(
        learner, x, t, None if (held == 1).all() else held, [inner for _, inner in own]
    )
    return [
        _around(blocks[kind][0], model, p)
        for kind, model, p in zip(of, models, settings, strict=True)
    ]


def _split(name: str, settings: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Settings of the preparation and of what learns."""
    if name in settings or "steps" in settings:
        raise NotApplicable("members differ in what learns, not in its settings")
    head = f"{name}__"
    inner = {k[len(head) :]: v for k, v in settings.items() if k.startswith(head)}
    return {k: v for k, v in settings.items() if not k.startswith(head)}, inner


def _table(recipe: Any, X: Any) -> Table:
    if not isinstance(X, Table) and recipe.schema is None:
        raise NotApplicable(
            "without a schema each fit reads the kinds of columns from its own rows"
        )
    return X if isinstance(X, Table) else read(X, schema=recipe.schema)


def _check_scale(recipe: Any, settings: list[dict[str, Any]]) -> None:
    """Another loss may ask for another scale of the target."""
    if recipe.scale_target is not None:
        return
    changed = {repr(p): clone(recipe.estimator).set_params(**p) for p in settings}
    if len({asks_scaled_target(model) for model in changed.values()}) > 1:
        raise NotApplicable("some members ask for a scaled target, others do not")


def _columns(recipe: Any, table: Table, y: NDArray[Any], weight: F64) -> Block:
    """A recipe for tables with its preparation."""
    rows = np.flatnonzero(weight)
    some = weight[rows]
    x, t = recipe._learn_preparation(
        table if len(rows) == table.n_rows else table.take(rows), y[rows],
        None if (some == 1).all() else some,
    )  # fmt: skip
    if not isinstance(x, np.ndarray):
        raise NotApplicable("the prepared rows are sparse, with terms of their own in every fold")
    return recipe, x, np.asarray(t), some


def _steps(pipeline: Any, X: Any, y: NDArray[Any], weight: F64) -> Block:
    """A pipeline with its first steps fitted; rows that count twice are there twice."""
    if getattr(pipeline, "memory", None) or getattr(pipeline, "transform_input", None):
        raise NotApplicable("a pipeline with memory or transformed arguments is fitted as it is")
    if (weight != np.round(weight)).any():
        raise NotApplicable("the first steps of a pipeline take rows, not weights")
    if len(pipeline.steps) < 2:
        raise NotApplicable("a pipeline of one step has nothing to prepare")
    rows = np.repeat(np.arange(len(weight)), weight.astype(np.int64))
    x = pipeline[:-1].fit_transform(take(X, rows), y[rows])
    if not isinstance(x, np.ndarray) or len(x) != len(rows):
        raise NotApplicable("the prepared rows are no array with a line for each row")
    return pipeline, x, y[rows], np.ones(len(rows))


def _around(made: Any, model: Any, settings: Mapping[str, Any]) -> Any:
    """A clone with this preparation and a fitted model."""
    if not getattr(made, "steps", None):
        return made._around(model, settings)
    own = clone(made)
    own.steps = [*made.steps[:-1], (made.steps[-1][0], model)]
    return own
