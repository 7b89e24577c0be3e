"""The groups a mixture sees: how large, how stable, and what sets each apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

from groundstate.compute.random import Key
from groundstate.data import Table
from groundstate.evaluate import train_test
from groundstate.evaluate.fitting import fit_clone
from groundstate.models.tables.table import TablePredictor
from groundstate.study.unlabelled.cells import KINDS, truth_of

I64 = NDArray[np.int64]
_REFITS = 10
_ROWS = 5_000  # on which refits are compared
_MARKS = 3  # columns named for a group
_NOTABLE = 0.5  # standardised difference: a medium effect


def group_facts(candidate: TablePredictor, table: Table, groups: I64, key: Key) -> dict[str, Any]:
    """Sizes, stability under refits to half of the rows, and the columns that set groups apart.

    Parameters
    ----------
    candidate : the unfitted model that gave the groups
    table : all rows
    groups : (n_rows,) their groups
    key : for the halves

    Returns
    -------
    dict with ``agreement`` (adjusted Rand index of refits with the groups: mean, lowest, highest)
    and ``each``: number, rows, ``stability`` (mean share of a group and its best match in a refit
    that both have, Jaccard) and ``marks``, the columns in which it differs most.
    """
    agreement, stability = _stability(candidate, table, groups, key)
    each = [
        {
            "group": int(g) + 1,
            "rows": int((groups == g).sum()),
            "stability": stability.get(int(g)),
            "marks": _marks(table, groups == g),
        }
        for g in np.unique(groups)
    ]
    return {"agreement": agreement, "each": each}


def _stability(
    candidate: TablePredictor, table: Table, groups: I64, key: Key
) -> tuple[dict[str, float] | None, dict[int, float]]:
    present = np.unique(groups)
    if len(present) < 2:
        return None, {}
    share = min(1.0, _ROWS / table.n_rows)
    shown = np.arange(table.n_rows)
    if share < 1:
        shown = train_test(table, test=share, key=key.fold("shown")).test_rows
    rows, own = table.take(shown), groups[shown]
    scores, overlaps = [], []
    for b in range(_REFITS):
        half = train_test(rows, test=0.5, key=key.fold("half", b)).train_rows
        part = rows.take(half)
        model = fit_clone(candidate, part, None, np.ones(part.n_rows), key.fold("refit", b))  # type: ignore[arg-type]
        other = np.asarray(model.predict(rows))
        scores.append(float(adjusted_rand_score(own, other)))
        overlaps.append([_best_match(own == g, other) for g in present])
    found = {"mean": float(np.mean(scores)), "lo": min(scores), "hi": max(scores)}
    means = np.mean(overlaps, 0)
    return found, {int(g): float(v) for g, v in zip(present, means, strict=True)}


def _best_match(mine: NDArray[np.bool_], other: I64) -> float:
    """The largest Jaccard index of a group with one of a refit's groups."""
    inside = np.bincount(other[mine], minlength=int(other.max()) + 1)
    sizes = np.bincount(other, minlength=len(inside))
    return float((inside / np.maximum(sizes + mine.sum() - inside, 1)).max())


def _marks(table: Table, mine: NDArray[np.bool_]) -> list[dict[str, Any]]:
    """The columns in which a group differs most from the other rows."""
    if mine.all():
        return []
    found: list[dict[str, Any]] = []
    for column in table.columns:
        kind = table.schema[column].kind
        if kind not in KINDS:
            continue
        truth = truth_of(table, column, kind)
        found += _number(column, truth, mine) if kind == "numeric" else _level(column, truth, mine)
    notable = [mark for mark in found if abs(mark["effect"]) >= _NOTABLE]
    marks: list[dict[str, Any]] = []
    for mark in sorted(notable, key=lambda mark: -abs(mark["effect"])):
        if not any(_renamed(table, mark["column"], other["column"]) for other in marks):
            marks.append(mark)
        if len(marks) == _MARKS:
            break
    return marks


def _renamed(table: Table, a: str, b: str) -> bool:
    """Whether two columns say the same in other words: each value of one has one of the other."""
    pair = table.frame.select(a, b)
    both = pair.n_unique()
    return bool(both == pair[a].n_unique() == pair[b].n_unique() < table.n_rows)


def _number(column: str, truth: Any, mine: NDArray[np.bool_]) -> list[dict[str, Any]]:
    here, there = truth[mine], truth[~mine]
    here, there = here[~np.isnan(here)], there[~np.isnan(there)]
    spread = np.sqrt((here.var() + there.var()) / 2) if len(here) and len(there) else 0.0
    if not spread > 0:
        return []
    means = float(here.mean()), float(there.mean())
    effect = float((means[0] - means[1]) / spread)
    return [{"column": column, "here": means[0], "elsewhere": means[1], "effect": effect}]


def _level(column: str, truth: Sequence[Any], mine: NDArray[np.bool_]) -> list[dict[str, Any]]:
    values = np.array(["missing" if v is None else str(v) for v in truth])
    names, index = np.unique(values, return_inverse=True)
    here = np.bincount(index[mine], minlength=len(names)) / mine.sum()
    there = np.bincount(index[~mine], minlength=len(names)) / (~mine).sum()
    effects = 2 * np.arcsin(np.sqrt(here)) - 2 * np.arcsin(np.sqrt(there))  # Cohen's h
    # of two levels that say the same, the one that the group has more of
    best = int((np.abs(effects).round(9) + 1e-6 * (effects > 0)).argmax())
    return [{"column": column, "level": str(names[best]), "here": float(here[best]),
             "elsewhere": float(there[best]), "effect": float(effects[best])}]  # fmt: skip
