"""What predictions for held-out rows say: scores, skill, comparisons, calibration, coverage, costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.random import Key
from groundstate.evaluate.compare.hypothesis_tests import holm, mcnemar, paired_bootstrap
from groundstate.evaluate.conformal.scores import class_scores, quantile
from groundstate.evaluate.metrics import METRICS, Metric, metric
from groundstate.evaluate.metrics.intervals import interval, wilson
from groundstate.evaluate.metrics.proper import ece, reliability
from groundstate.evaluate.predictions import Prediction
from groundstate.evaluate.rows import Floats
from groundstate.math.stats.bounds import risk_upper
from groundstate.math.stats.folds import widened
from groundstate.math.stats.interval import Interval

_OF_ONE_CLASS = ("precision", "recall", "f1")
SETS = 0.9  # wanted coverage of sets and intervals for single rows


def all_intervals(
    truth: NDArray[Any],
    prediction: Prediction,
    *,
    task: str,
    weight: Floats,
    level: float,
    key: Key,
    groups: Any = None,
    positive: int | None = None,
) -> dict[str, Interval]:
    """Every metric of the task that the predictions allow, with an interval.

    Parameters
    ----------
    groups : labels of dependent rows; whole groups are resampled
    positive : number of the class that precision, recall and F1 are about, of two
    """
    rows = [row for row in METRICS.values() if row.task == task and row.available(prediction)]
    found = {row.name: _one(row, truth, prediction, weight, level, key, groups) for row in rows}
    if positive is not None:
        y, predicted = (truth, prediction) if positive == 1 else _swapped(truth, prediction)
        for name in _OF_ONE_CLASS:
            found[name] = _one(metric(name), y, predicted, weight, level, key, groups)
    return found


def _one(
    row: Metric,
    truth: NDArray[Any],
    predicted: Prediction,
    weight: Floats,
    level: float,
    key: Key,
    groups: Any,
) -> Interval:
    return interval(
        row, truth, predicted, sample_weight=weight, level=level, key=key, groups=groups
    )


def _swapped(truth: NDArray[Any], predicted: Prediction) -> tuple[NDArray[Any], Prediction]:
    return 1 - truth, Prediction(1 - predicted.values, classes=predicted.classes)


def beats_constant(
    chosen: str, constant: str, skill: Interval, test: list[dict[str, Any]], level: float
) -> bool:
    """Whether a model is shown to be better than a constant answer.

    Its skill is above zero with the confidence asked for, and the paired test of the two on the
    same rows says so too.
    """
    against = [row["p_holm"] for row in test if row["against"] == constant]
    return chosen != constant and skill.low > 0 and all(p <= 1 - level for p in against)


def worse_probabilities(
    own: Mapping[str, Interval], constant: Mapping[str, Interval]
) -> dict[str, float] | None:
    """Both log losses where the model's is worse than that of the shares of the classes."""
    if "log_loss" not in own or "log_loss" not in constant:
        return None
    mine, base = own["log_loss"].estimate, constant["log_loss"].estimate
    return {"model": mine, "constant": base} if mine > base else None


def by_folds(
    found: Mapping[str, Interval], n: int, apart: Mapping[str, float] | None = None
) -> dict[str, Interval]:
    """Intervals of scores of n rows that were judged in folds, wider than the spread of rows says.

    Rows of a fold are judged by one fit, and fits differ from each other and from the final one; by how
    much more is in :mod:`groundstate.math.stats.folds`.

    Parameters
    ----------
    apart : by how much scores differ from those of the chosen configuration on the same folds
    """
    off = apart or {}
    return {
        name: folded(one, n, off.get(name, 0.0), metric(name).bounds) for name, one in found.items()
    }


def folded(one: Interval, n: int, apart: float, bounds: tuple[float, float]) -> Interval:
    """The interval of one score of n rows that were judged in folds, within the score's bounds."""
    low, high = widened(one, n, apart)
    ends = {"low": max(bounds[0], low), "high": min(bounds[1], high)}
    return replace(one, **ends, method=f"{one.method}, widened for folds")


def mean_interval(parts: list[Interval]) -> Interval:
    """One interval for the mean over repeats that judge the same rows."""
    if len(parts) == 1:
        return parts[0]
    middle, low, high = (
        float(np.mean([getattr(part, name) for part in parts]))
        for name in ("estimate", "low", "high")
    )
    method = f"{parts[0].method}, mean of {len(parts)} repeats"
    return Interval(middle, low, high, parts[0].level, method)


def losses(measure: Metric, truth: NDArray[Any], predicted: Prediction) -> Floats:
    """Loss of each row: 0-1 or squared, or the metric's own where it is a mean that falls."""
    if measure.is_mean and not measure.greater_is_better:
        return np.asarray(measure.per_row(truth, predicted), np.float64)
    if predicted.classes is not None:
        return np.asarray(truth != predicted.values, np.float64)
    return np.square(truth.astype(np.float64) - predicted.values)


def compared(
    measure: Metric,
    truth: NDArray[Any],
    first: str,
    repeats: Sequence[Mapping[str, Prediction]],
    *,
    weight: Floats,
    level: float,
    key: Key,
) -> list[dict[str, Any]]:
    """The first model minus each other one on the same rows, with Holm-corrected p-values.

    Rows that were judged several times give means of differences and of ends, as their scores are, and
    the median p: repeats judge the same rows and are no further evidence.

    Parameters
    ----------
    repeats : predictions by name, for each time that the rows were judged
    """
    rows: list[dict[str, Any]] = []
    for name in repeats[0]:
        if name == first:
            continue
        each = []
        for repeat in repeats:
            if measure.is_share:
                hits = (measure.per_row(truth, repeat[who]) for who in (first, name))
                each.append(mcnemar(*hits, sample_weight=weight, level=level))
            else:
                each.append(
                    paired_bootstrap(
                        measure, truth, repeat[first], repeat[name], sample_weight=weight, level=level,
                        key=key.fold("compare", name),
                    )
                )  # fmt: skip
        rows.append(
            {
                "against": name,
                "difference": float(np.mean([found.difference for found in each])),
                "lo": float(np.mean([found.low for found in each])),
                "hi": float(np.mean([found.high for found in each])),
                "p": float(np.median([found.p for found in each])),
                "method": each[0].method,
            }
        )
    for row, p in zip(rows, holm([row["p"] for row in rows]) if rows else []):
        row["p_holm"] = float(p)
    return rows


def calibration(truth: NDArray[Any], predicted: Prediction, positive: int | None) -> dict[str, Any]:
    """Whether probabilities happen as often as they say."""
    assert predicted.probability is not None
    if predicted.probability.shape[1] == 2:
        at = 1 if positive is None else positive
        y, p = (truth == at).astype(np.float64), predicted.probability[:, at]
        about = str(predicted.classes[at]) if predicted.classes is not None else "1"
    else:
        y = (truth == predicted.probability.argmax(1)).astype(np.float64)
        p, about = predicted.probability.max(1), "the most probable class"
    curve = reliability(y, p, 10, "quantile")
    return {
        "about": about,
        "ece": ece(y, p, 10, "quantile"),
        "mean_forecast": float(p.mean()),
        "share_observed": float(y.mean()),
        "bins": {
            "predicted": curve.predicted,
            "observed": curve.observed,
            "n": curve.count,
            "lo": curve.low,
            "hi": curve.high,
        },
    }


def scores_of(truth: NDArray[Any], predicted: Prediction) -> Floats | None:
    """How badly each row conforms with its answer; None for classes without probabilities."""
    if predicted.classes is None:
        return np.abs(truth.astype(np.float64) - predicted.values)
    if predicted.probability is None:
        return None
    table = class_scores(predicted.probability, "lac")
    return np.asarray(table[np.arange(len(truth)), truth.astype(np.intp)])


def coverage(
    truth: NDArray[Any],
    predicted: Prediction,
    folds: list[tuple[Floats, NDArray[np.intp]]],
    level: float,
) -> dict[str, Any]:
    """Conformal sets or intervals for single rows, and how often they hold the truth.

    Parameters
    ----------
    folds : for each group of rows the conformity scores that calibrate it, and its positions
    """
    hit, size = np.zeros(len(truth), bool), np.zeros(len(truth))
    for scores, rows in folds:
        limit = quantile(scores, SETS)
        part = predicted.take(rows)
        if predicted.classes is None:
            hit[rows] = np.abs(truth[rows] - part.values) <= limit
            size[rows] = 2 * limit
        else:
            assert part.probability is not None
            member = class_scores(part.probability, "lac") <= limit
            member[np.arange(len(rows)), part.probability.argmax(1)] = True  # never empty
            hit[rows] = member[np.arange(len(rows)), truth[rows].astype(np.intp)]
            size[rows] = member.sum(1)
    found = wilson(float(hit.sum()), float(len(hit)), level)
    size_of_one = bool((size == 1).all())
    kind = "interval" if predicted.classes is None else "set"
    return {
        "kind": kind,
        "wanted": SETS,
        "covered": found.estimate,
        "lo": found.low,
        "hi": found.high,
        "mean_size": float(size.mean()) if np.isfinite(size).all() else None,
        "n": len(hit),
        "words": _coverage_words(found, size_of_one and kind == "set"),
    }


def _coverage_words(found: Interval, alone: bool) -> str:
    """What measured coverage says about the promise.

    >>> _coverage_words(Interval(0.885, 0.86, 0.91, 0.95, "wilson"), False)
    'below the 90% promised, by no more than chance explains'
    """
    if found.high < SETS:
        return f"measurably below the {SETS:.0%} promised: take a higher level for rows like these"
    if found.estimate < SETS:
        return f"below the {SETS:.0%} promised, by no more than chance explains"
    if alone:
        return f"above the {SETS:.0%} promised: the most probable class alone is right that often"
    if found.low > SETS:
        return f"measurably above the {SETS:.0%} promised, so wider than it has to be"
    return "as promised"


def costs(
    truth: NDArray[Any], p: Floats, weight: Floats, cost_fp: float, cost_fn: float
) -> dict[str, Any]:
    """What mistakes cost at the threshold of least expected cost, beside the simple rules.

    The threshold is :math:`c_{FP}/(c_{FP}+c_{FN})` for probabilities that can be believed.
    """
    cut = cost_fp / (cost_fp + cost_fn)
    total = float(weight.sum())

    def mean(predicted: NDArray[np.bool_]) -> float:
        false = predicted & (truth == 0)
        missed = ~predicted & (truth == 1)
        return float(cost_fp * weight[false].sum() + cost_fn * weight[missed].sum()) / total

    return {
        "cost_fp": cost_fp,
        "cost_fn": cost_fn,
        "threshold": cut,
        "mean_cost": mean(p >= cut),
        "at_one_half": mean(p >= 0.5),
        "always_yes": mean(np.ones(len(p), bool)),
        "always_no": mean(np.zeros(len(p), bool)),
    }


def bound(
    truth: NDArray[Any],
    predicted: Prediction,
    level: float,
    looks: int = 1,
    independent: bool = True,
) -> dict[str, Any]:
    """The largest share of mistakes to expect on rows to come, with a guarantee, where there is one."""
    delta = 1 - level
    if predicted.classes is None:
        return {"value": None, "words": "squared errors have no upper limit, so no bound holds "
                "without assumptions"}  # fmt: skip
    if not independent:
        return {"value": None, "words": "every row was judged by another fit, so no bound holds "
                "for the one model that is kept"}  # fmt: skip
    wrong, n = int((truth != predicted.values).sum()), len(truth)
    value = risk_upper(wrong, n, delta, looks)
    return {
        "value": value,
        "risk": wrong / n,
        "n": n,
        "delta": delta,
        "looks": looks,
        "method": "exact binomial",
        "words": (
            f"with confidence {level:.0%} at most {value:.1%} of rows to come are answered wrong, "
            "as long as they come from where these rows come from"
        ),
    }
