r"""A rare class: how well it is found, and from which probability on to call it.

A share of all rows says little about a class of one row in twenty. What does: the share of it that
is found (recall), the share right among rows called it (precision), the mean precision over all
thresholds (average precision, the class's share by chance), and the threshold
:math:`t = c_{FP}/(c_{FP}+c_{FN})` at which calls cost least.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.random import Key
from groundstate.evaluate.metrics.intervals import wilson
from groundstate.evaluate.predictions import Prediction
from groundstate.evaluate.rows import Floats
from groundstate.math.stats.bootstrap import bootstrap
from groundstate.math.stats.interval import Interval
from groundstate.study.held_out import costs
from groundstate.study.numbers import span

SHARE = 0.2  # a class with fewer of the rows is rare, if it also has less than half its even share
RATIOS = (1, 3, 10, 30)  # what a missed row costs, in false alarms
_RESAMPLES = 400


def rare_class(y: NDArray[Any], classes: NDArray[Any] | None) -> int | None:
    """Number of the rarest class where it is rare, else None.

    >>> y = np.array(["no"] * 18 + ["yes"] * 2)
    >>> rare_class(y, np.unique(y)), rare_class(y[10:], np.unique(y)), rare_class(y, None)
    (1, None, None)
    """
    if classes is None:
        return None
    counts = np.bincount(np.searchsorted(classes, y), minlength=len(classes))
    at = int(np.argmin(counts))
    share = counts[at] / counts.sum()
    return at if 0 < share < min(SHARE, 0.5 / len(classes)) else None


def rare_facts(
    y: NDArray[Any],
    truth: NDArray[Any],
    predicted: Prediction,
    scores: dict[str, Interval],
    level: float,
    key: Key,
) -> dict[str, Any] | None:
    """What is known about a rare class from held-out rows; None where no class is rare.

    Parameters
    ----------
    y : labels of the whole table
    truth : (n,) class numbers of held-out rows
    predicted : answers for those rows
    scores : precision and recall of it, for two classes
    """
    classes = predicted.classes
    at = rare_class(y, classes)
    if at is None or classes is None:
        return None
    is_it, called = truth == at, predicted.values == at
    found: dict[str, Any] = {
        "class": str(classes[at]),
        "share": float((y == classes[at]).mean()),
        "share_held_out": float(is_it.mean()),
        "rows": int(is_it.sum()),
        "called": int(called.sum()),
    }
    if len(classes) == 2:
        two = {name: scores[name] for name in ("recall", "precision")}
    else:
        hits = float((is_it & called).sum())
        two = {
            "recall": wilson(hits, float(max(is_it.sum(), 1)), level),
            "precision": wilson(hits, float(max(called.sum(), 1)), level),
        }
    found |= {name: span(value, len(truth)) for name, value in two.items()}
    if predicted.ranking is None or not 0 < is_it.sum() < len(is_it):
        return found
    score = np.nan_to_num(predicted.ranking[:, at], neginf=-1e300)
    found["average_precision"] = span(_average_precision(is_it, score, level, key), len(truth))
    if predicted.probability is not None:
        found["thresholds"] = thresholds(is_it, predicted.probability[:, at])
    return found


def _average_precision(is_it: NDArray[np.bool_], score: Floats, level: float, key: Key) -> Interval:
    from sklearn.metrics import average_precision_score

    return bootstrap(
        average_precision_score, is_it.astype(np.intp), score, n_resamples=_RESAMPLES,
        method="percentile", level=level, stratify=is_it, random_state=key.fold("rare"),
    ).interval  # fmt: skip


def thresholds(is_it: NDArray[np.bool_], p: Floats) -> list[dict[str, Any]]:
    """For some prices of a missed row: from where to call it, what that finds and costs.

    >>> row = thresholds(np.array([False, True]), np.array([0.1, 0.3]))[1]
    >>> row["missed_costs"], row["threshold"], row["found"], row["mean_cost"]
    (3, 0.25, 1.0, 0.0)
    """
    rows = []
    for ratio in RATIOS:
        known = costs(is_it.astype(np.intp), p, np.ones(len(p)), 1.0, float(ratio))
        called = p >= known["threshold"]
        hits = int((called & is_it).sum())
        rows.append(
            {
                "missed_costs": ratio,
                "threshold": known["threshold"],
                "called": int(called.sum()),
                "found": hits / max(int(is_it.sum()), 1),
                "right": hits / int(called.sum()) if called.any() else None,
                "mean_cost": known["mean_cost"],
                "never": known["always_no"],
                "always": known["always_yes"],
            }
        )
    return rows
