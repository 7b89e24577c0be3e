"""Which of several models is better, and which cannot be told apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.display import Displayed
from groundstate.compute.random import Key, RandomState
from groundstate.errors import DataError, ShapeError
from groundstate.evaluate.metrics import METRICS, Metric
from groundstate.evaluate.metrics.resampled import Resampled
from groundstate.evaluate.predictions import Prediction
from groundstate.evaluate.rows import Floats, weights_of
from groundstate.math.stats.compare import compare_models, mcnemar_counts
from groundstate.math.stats.multiple import adjust_pvalues
from groundstate.math.stats.result import TestResult


@dataclass(frozen=True)
class Comparison(Displayed):
    """Model A minus model B on the same rows.

    Attributes
    ----------
    difference, low, high : float
        Score of A minus score of B, with an interval.
    p : float
        Chance of a difference this large if the two were equally good, both directions.
    method : str
    """

    difference: float
    low: float
    high: float
    p: float
    method: str


def mcnemar(
    hit_a: Any, hit_b: Any, *, sample_weight: Any = None, level: float = 0.95
) -> Comparison:
    r"""McNemar's exact test: only rows where the two disagree can tell them apart.

    With b rows that only A has right and c that only B has right, b is binomial(b + c, 1/2) when
    the two are equally good. The interval of the difference (b − c)/n is exact given b + c.

    Parameters
    ----------
    hit_a, hit_b : (N,)
        Right or wrong, row by row.
    sample_weight : (N,), optional
        Summed and rounded: the test counts rows.

    Examples
    --------
    >>> a, b = np.zeros(40, bool), np.zeros(40, bool)
    >>> a[:10], b[10:13] = True, True
    >>> round(mcnemar(a, b).p, 6)
    0.092285
    """
    a, b = _pair(np.asarray(hit_a, bool), np.asarray(hit_b, bool))
    weight = weights_of(sample_weight, len(a))
    only_a, only_b = round(float(weight[a & ~b].sum())), round(float(weight[b & ~a].sum()))
    return _comparison(mcnemar_counts(only_a, only_b, float(weight.sum()), level))


def paired_bootstrap(
    metric: Metric,
    y: Any,
    a: Prediction,
    b: Prediction,
    *,
    sample_weight: Any = None,
    n: int = 4000,
    level: float = 0.95,
    key: Key | RandomState = 0,
) -> Comparison:
    """Difference of any metric between two models, resampling rows jointly.

    The p-value is twice the smaller share of resampled differences on one side of zero.

    Parameters
    ----------
    metric, y, a, b
        The metric and the two predictions of the same rows.
    n
        Number of resamples; p is at least ``2 / (n + 1)``.
    """
    _pair(a.values, b.values)
    weight = weights_of(sample_weight, len(a))
    sample = Resampled(metric, np.asarray(y), [a, b], weight, n, Key.of(key))
    draws = sample.draws[:, 0] - sample.draws[:, 1]
    draws = draws[~np.isnan(draws)]
    if len(draws) == 0:
        raise DataError(f"{metric.name} is not defined on resamples of these rows")
    difference = float(sample.estimates[0] - sample.estimates[1])
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    side = min(int((draws <= 0).sum()), int((draws >= 0).sum()))
    p = min(1.0, 2 * (side + 1) / (len(draws) + 1))
    return Comparison(difference, float(low), float(high), p, "paired bootstrap")


def corrected_t(differences: Any, n_train: float, n_test: float, level: float = 0.95) -> Comparison:
    r"""Student's test of fold differences, corrected for shared training rows (Nadeau, Bengio).

    .. math:: t = \bar d \Big/ \left(s \sqrt{1/J + n_\text{test}/n_\text{train}}\right)

    Parameters
    ----------
    differences : (J,)
        Score of A minus score of B on each fold.
    n_train, n_test
        Rows a fold trains on and is judged on.

    Examples
    --------
    >>> d = [0.02, 0.01, 0.03, 0.0, 0.02, 0.04, 0.01, 0.02, 0.03, 0.02]
    >>> round(corrected_t(d, n_train=90, n_test=10).p, 5)
    0.00442
    """
    d = np.asarray(differences, np.float64)
    if d.ndim != 1 or len(d) < 2:
        raise DataError(f"corrected_t needs the differences of two or more folds, got {d.shape}")
    if n_train <= 0 or n_test <= 0:
        raise DataError(f"n_train and n_test must be positive, got {n_train} and {n_test}")
    found = compare_models(
        d, np.zeros(len(d)), "corrected_t", n_train=n_train, n_test=n_test, level=level
    )
    return _comparison(found)


def holm(p: Any) -> Floats:
    """p-values corrected for making several tests at once (Holm's step-down).

    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    return adjust_pvalues(p, "holm")


def tied_with_best(
    metric: Metric,
    y: Any,
    predictions: Mapping[str, Prediction],
    *,
    alpha: float = 0.05,
    sample_weight: Any = None,
    key: Key | RandomState = 0,
) -> tuple[str, ...]:
    """The best model by ``metric`` and all that cannot be told apart from it on these rows.

    Each model is compared with the best one, by McNemar for hits and misses and by paired bootstrap
    otherwise; p-values are Holm-corrected.

    Returns
    -------
    tuple of str
        The best first, then the others by score.
    """
    y = np.asarray(y)
    weight = weights_of(sample_weight, len(y))
    sign = 1 if metric.greater_is_better else -1
    score = {name: sign * metric.score(y, p, weight) for name, p in predictions.items()}
    if not score:
        raise DataError("there are no models to compare")
    ranked = sorted(score, key=lambda name: -score[name])
    best, others = ranked[0], ranked[1:]
    p = []
    for name in others:
        a, b = predictions[best], predictions[name]
        if metric.is_share:
            hits = metric.per_row(y, a), metric.per_row(y, b)
            p.append(mcnemar(*hits, sample_weight=weight).p)
        else:
            child = Key.of(key).fold("compare", name)
            p.append(paired_bootstrap(metric, y, a, b, sample_weight=weight, key=child).p)
    kept = [name for name, adjusted in zip(others, holm(p)) if adjusted > alpha]
    return (best, *kept)


def indistinguishable(
    scores: Mapping[str, Any],
    *,
    alpha: float = 0.05,
    greater_is_better: bool = True,
    sample_weight: Any = None,
    key: Key | RandomState = 0,
) -> tuple[str, ...]:
    """The model with the best mean per-row score, and all that cannot be told apart from it.

    Parameters
    ----------
    scores
        For each model one score per row, the same rows for all; 0/1 scores use McNemar.
    alpha
        Chance to separate models that are equally good, over all comparisons (Holm).

    Examples
    --------
    >>> rows = np.arange(200)
    >>> hits = {"a": rows % 10 > 0, "b": rows % 10 > 0, "c": rows % 2 > 0}
    >>> indistinguishable(hits)
    ('a', 'b')
    """
    table = {name: np.asarray(values, np.float64) for name, values in scores.items()}
    if not table:
        raise DataError("there are no models to compare")
    first = next(iter(table.values()))
    for values in table.values():
        _pair(first, values)
    binary = greater_is_better and all(np.isin(v, (0.0, 1.0)).all() for v in table.values())
    as_hits = {name: Prediction(values.astype(np.int64)) for name, values in table.items()}
    if binary:
        ones = np.ones(len(first), np.int64)
        return tied_with_best(
            METRICS["accuracy"], ones, as_hits, alpha=alpha, sample_weight=sample_weight, key=key
        )
    # mean_nll reads minus the values and prefers small: a mean score in either direction
    flip = 1 if greater_is_better else -1
    as_values = {name: Prediction(flip * values) for name, values in table.items()}
    return tied_with_best(
        METRICS["mean_nll"], first, as_values, alpha=alpha, sample_weight=sample_weight, key=key
    )


def _comparison(found: TestResult) -> Comparison:
    assert found.estimate is not None and found.interval is not None
    return Comparison(found.estimate, *found.interval, found.pvalue, found.method)


def _pair(a: NDArray[Any], b: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    if a.shape != b.shape or a.ndim != 1:
        raise ShapeError(
            f"a paired comparison needs one score per row for the same rows, got {a.shape} "
            f"and {b.shape}"
        )
    return a, b
