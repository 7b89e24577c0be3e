"""Many fits of one recipe for tables: each with a preparation of its own, the models as one program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from groundstate.data import Table, read
from groundstate.models.traits import asks_scaled_target

if TYPE_CHECKING:
    from groundstate.models.table import TablePredictor

_HEAD = "estimator__"
_NUMBERS = 2**26  # weights held at once: members times prepared rows


def table_members(
    recipe: TablePredictor,
    X: Any,
    y: Any,
    weights: Any = None,
    params: Sequence[Mapping[str, Any]] | None = None,
) -> list[TablePredictor] | None:
    """Fitted clones of a recipe; None where they are better fitted one after the other.

    Rows without weight take no part in a preparation. Members with equal weights share theirs.

    Parameters
    ----------
    recipe : unfitted
    X, y : all rows
    weights : ``(P, N)``, ``(N,)`` or None
    params : settings of each member, those of the estimator alone
    """
    together = getattr(recipe.estimator, "_fit_population", None)
    fixed = isinstance(X, Table) or recipe.schema is not None  # else each reads its own rows
    if together is None or y is None or not fixed:
        return None
    if getattr(recipe.estimator, "_members_stop_early", False):  # a search and what follows it must
        return None  # find the same numbers
    table = X if isinstance(X, Table) else read(X, schema=recipe.schema)
    given = None if weights is None else np.atleast_2d(np.asarray(weights, dtype=np.float64))
    size = len(params) if params is not None else 1 if given is None else len(given)
    own = [dict(p) for p in params] if params is not None else [{}] * size
    if any(not name.startswith(_HEAD) for p in own for name in p):
        return None
    counts = np.ones((1, table.n_rows)) if given is None else given
    if len(counts) not in (1, size) or not (counts >= 0).all():
        return None
    inner = [{name[len(_HEAD) :]: value for name, value in p.items()} for p in own]
    if recipe.scale_target is None:  # another loss may ask for another scale of the target
        asked = asks_scaled_target(recipe.estimator)
        changed = {repr(p): clone(recipe.estimator).set_params(**p) for p in inner}
        if any(asks_scaled_target(model) != asked for model in changed.values()):
            return None
    target = np.asarray(y)
    kinds: dict[bytes, int] = {}
    of = [kinds.setdefault(row.tobytes(), len(kinds)) for row in counts]
    of = of if len(of) == size else of * size
    first = [of.index(kind) for kind in range(len(kinds))] if len(counts) > 1 else [0]
    blocks = [_prepared(recipe, table, target, counts[at]) for at in first]
    if len({block[1].shape[1] for block in blocks}) > 1:  # a fold has not seen some level
        return None
    ends = np.cumsum([0, *(len(block[1]) for block in blocks)])
    if ends[-1] * size > _NUMBERS:
        return None
    held = np.zeros((size, ends[-1]))
    for member, kind in enumerate(of):
        held[member, ends[kind] : ends[kind + 1]] = blocks[kind][3]
    plain = len(blocks) == 1 and bool((held == 1).all())
    x, t = (np.concatenate([block[i] for block in blocks]) for i in (1, 2))
    models = together(x, t, None if plain else held, inner)
    if models is None:
        return None
    return [
        blocks[kind][0]._around(model, settings)
        for kind, model, settings in zip(of, models, own, strict=True)
    ]


def _prepared(
    recipe: TablePredictor, table: Table, y: NDArray[Any], weight: NDArray[np.float64]
) -> tuple[TablePredictor, NDArray[np.float64], NDArray[Any], NDArray[np.float64]]:
    """A recipe with its preparation, the prepared rows and targets it learns from, their weights."""
    rows = np.flatnonzero(weight)
    some = weight[rows]
    own: TablePredictor = clone(recipe)
    x, t = own._learn_preparation(
        table if len(rows) == table.n_rows else table.take(rows), y[rows],
        None if bool((some == 1).all()) else some,
    )  # fmt: skip
    return own, x, np.asarray(t), some


__all__ = ["table_members"]
