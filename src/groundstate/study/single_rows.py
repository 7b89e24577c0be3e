r"""Sets and intervals for single new rows, and whether a model has seen rows before.

With the errors :math:`s_1,\dots,s_n` of the recipe on held-out rows, outcomes whose error is at most
:math:`q = s_{(\lceil(n+1)\,\mathrm{level}\rceil)}` are kept (conformal prediction). Both, the errors
and a sample of the hashes of the training rows, are small enough to travel in ``model.gs``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.weight_line.hashing import row_hash
from groundstate.data import Table
from groundstate.errors import DataError, Unsupported
from groundstate.evaluate.conformal.scores import class_scores
from groundstate.evaluate.conformal.split_conformal import Intervals, Sets
from groundstate.evaluate.rows import Floats
from groundstate.study.assess import Assessment
from groundstate.study.held_out import scores_of

_KEPT = 2000  # errors, and hashes, that a file keeps
_BITS = 52  # of a hash, which JSON numbers hold exactly


def kept_with_model(found: Assessment) -> dict[str, Any]:
    """What a file of the chosen model says about held-out errors and about training rows."""
    table = found.table
    names = [c.name for c in table.features.schema if c.kind not in ("id", "constant")]
    rows = None if found.design.kind == "nested" else found.design.split[0]
    learned = table if rows is None else table.take(rows)
    return {"errors": held_out_errors(found), "seen": seen_rows(learned, names)}


def held_out_errors(found: Assessment) -> dict[str, Any] | None:
    """Sorted errors on held-out rows with their ranks; None for classes without probabilities."""
    own = scores_of(found.truth, found.prediction)
    if own is None:
        return None
    n, order = len(own), np.sort(own)
    ranks = np.unique(np.ceil(np.linspace(1, n, min(n, _KEPT))).astype(np.intp))
    kind = "interval" if found.classes is None else "set"
    return {"kind": kind, "n": n, "ranks": ranks.tolist(), "errors": order[ranks - 1].tolist()}


def limit(kept: dict[str, Any], level: float) -> float:
    """The error up to which outcomes are kept; infinite where there are too few rows.

    >>> kept = {"kind": "set", "n": 9, "ranks": list(range(1, 10)), "errors": list(range(9))}
    >>> limit(kept, 0.5), limit(kept, 0.9), limit(kept, 0.95)
    (4.0, 8.0, inf)
    """
    if not 0 < level < 1:
        raise DataError(f"level is a share of rows between 0 and 1, such as 0.9, got {level}")
    rank = math.ceil((kept["n"] + 1) * level - 1e-9)
    at = int(np.searchsorted(kept["ranks"], rank))
    return float(kept["errors"][at]) if at < len(kept["ranks"]) else math.inf


def intervals(model: Any, kept: dict[str, Any] | None, rows: Any, level: float = 0.9) -> Intervals:
    """For every row the values within the held-out error of the level."""
    if kept is None:
        if not hasattr(model, "predict_interval"):
            raise _without(model)
        ends = np.asarray(model.predict_interval(rows, level))
        return Intervals(ends[:, 0], ends[:, 1], level)
    if kept["kind"] != "interval":
        raise Unsupported(
            "an interval is for a target of numbers and the model predicts classes; ask for a set"
        )
    middle, half = np.asarray(model.predict(rows), np.float64), limit(kept, level)
    return Intervals(middle - half, middle + half, level)


def sets(model: Any, kept: dict[str, Any] | None, rows: Any, level: float = 0.9) -> Sets:
    """For every row the classes within the held-out error of the level, at least one."""
    if kept is None:
        raise _without(model)
    if kept["kind"] != "set":
        raise Unsupported(
            "a set is for a target of classes and the model predicts numbers; ask for an interval"
        )
    p: Floats = np.asarray(model.predict_proba(rows), np.float64)
    member = class_scores(p, "lac") <= limit(kept, level)
    member[np.arange(len(p)), p.argmax(1)] = True
    return Sets(member, np.asarray(model.classes_), level)


def _without(model: Any) -> Unsupported:
    inner = getattr(model, "estimator_", model)
    return Unsupported(
        f"no errors on held-out rows are stored with this {type(inner).__name__}, so it promises no "
        "sets or intervals; fit it with groundstate fit, or calibrate it with "
        "groundstate.conformal"
    )


def seen_rows(table: Table, names: Sequence[str]) -> dict[str, Any]:
    """The smallest hashes of training rows, without the target, and how many equal another one."""
    words = _words(table, names)
    own, place, times = np.unique(words, return_inverse=True, return_counts=True)
    alike = float((times[place.reshape(-1)] > 1).mean())
    return {"columns": list(names), "n": len(words), "alike": alike, "hashes": own[:_KEPT].tolist()}


def share_seen(kept: dict[str, Any] | None, table: Table) -> float | None:
    """Share of the rows that the model learned from; None where that is not known.

    New rows equal some training row as often as training rows equal each other, by chance: what is
    not measurably more than that share a counts as none, and of more the share s is (s − a)/(1 − a).
    Rows whose hash lies below the largest one kept are looked up, which are all rows of a small
    training table and a random part of a large one.
    """
    if kept is None or any(name not in table.columns for name in kept["columns"]):
        return None
    own = np.asarray(kept["hashes"], np.int64)
    words = _words(table, kept["columns"])
    if len(own) == _KEPT:
        words = words[words <= own[-1]]
    if not len(words):
        return None
    share, chance = float(np.isin(words, own).mean()), float(kept.get("alike", 0.0))
    if chance and share <= chance + 3 * math.sqrt(chance * (1 - chance) / len(words)):
        return 0.0
    return (share - chance) / (1 - chance) if chance < 1 else 0.0


def _words(table: Table, names: Sequence[str]) -> NDArray[np.int64]:
    values = [table.values(name) for name in names]
    return (row_hash(*values) >> np.uint64(64 - _BITS)).astype(np.int64)
