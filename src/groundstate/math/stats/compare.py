r"""Which of two models is better, from their losses on the same rows or folds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.stats
from numpy.typing import NDArray

from groundstate.compute.random import Key, RandomState
from groundstate.errors import DataError, ShapeError
from groundstate.math.stats.bootstrap import bootstrap, interval_of
from groundstate.math.stats.interval import checked_level, z_of
from groundstate.math.stats.means import cluster_sums, mean_interval
from groundstate.math.stats.result import TestResult

Floats = NDArray[np.float64]
METHODS = ("auto", "t", "permutation", "bootstrap", "mcnemar", "corrected_t")
_NULL = "both models are equally good"
_EXACT = 20  # differences up to which all sign flips are tried
_BLOCK = 2**22


def compare_models(
    loss_a: Any,
    loss_b: Any,
    method: str = "auto",
    groups: Any = None,
    n_train: float | None = None,
    n_test: float | None = None,
    *,
    level: float = 0.95,
    n_resamples: int = 9999,
    unsafe: bool = False,
    random_state: Key | RandomState = 0,
) -> TestResult:
    r"""Test that two models have the same mean loss; a negative estimate favours A.

    ============  =================================================================================
    mcnemar       losses 0 or 1: exact binomial test of the rows where only one is wrong
    permutation   signs of the differences flipped; all of them for up to 20 differences
    t             paired t of the differences; with groups the cluster sandwich
    bootstrap     paired bootstrap of the mean difference
    corrected_t   folds: :math:`t = \bar d/(s\sqrt{1/J + n_\text{test}/n_\text{train}})`, df J − 1
    auto          corrected_t when ``n_train`` and ``n_test`` are given, mcnemar for 0-1 losses,
                  permutation below 30 rows, else t
    ============  =================================================================================

    Fold scores share training rows, so a plain t test on them is refused unless ``unsafe``.

    Parameters
    ----------
    loss_a, loss_b : ``(n,)`` losses of the same rows, or scores of the same folds
    groups : ``(n,)`` labels of dependent rows
    n_train, n_test : rows that a fold trains on and is judged on; they say that these are folds
    level : of the interval

    Examples
    --------
    >>> a, b = np.zeros(40), np.zeros(40)
    >>> a[:15], b[15:20] = 1, 1
    >>> found = compare_models(a, b)
    >>> found.method, round(found.pvalue, 6)
    ('mcnemar', 0.041389)
    """
    a, b = np.asarray(loss_a, np.float64), np.asarray(loss_b, np.float64)
    if a.shape != b.shape or a.ndim != 1 or len(a) < 2:
        raise ShapeError(
            f"a paired comparison needs one loss per row for the same rows, at least two, got "
            f"{a.shape} and {b.shape}"
        )
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise DataError("losses must be finite to be compared")
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    checked_level(level)
    folds = n_train is not None or n_test is not None
    if folds and not (n_train and n_test and n_train > 0 and n_test > 0):
        raise DataError(f"folds need both n_train and n_test, got {n_train} and {n_test}")
    binary = bool(np.isin(a, (0, 1)).all() and np.isin(b, (0, 1)).all())
    if method == "auto":
        if folds:
            method = "corrected_t"
        elif binary and groups is None:
            method = "mcnemar"
        else:
            method = "permutation" if len(a) < 30 else "t"
    d = a - b
    if folds and method == "t" and not unsafe:
        raise DataError(
            "scores of folds share training rows, so a plain t test finds differences that are not "
            "there; leave method at 'auto', or pass unsafe=True to see it anyway"
        )
    if method == "corrected_t":
        if not folds:
            raise DataError("corrected_t is for folds; pass n_train and n_test")
        assert n_train is not None and n_test is not None
        return _student(d, 1 / len(d) + n_test / n_train, level, "corrected t")
    if method == "mcnemar":
        if not binary:
            raise DataError("mcnemar needs losses of 0 and 1; use method='permutation' for others")
        if groups is not None:
            raise DataError("mcnemar counts independent rows; with groups use 'permutation'")
        return _mcnemar(a, b, level)
    if method == "permutation":
        return _permutation(d, groups, level, n_resamples, Key.of(random_state))
    if method == "bootstrap":
        return _bootstrap(d, groups, level, n_resamples, Key.of(random_state))
    if groups is None:
        return _student(d, 1 / len(d), level, "paired t")
    found = mean_interval(d, level, groups)
    df = len(np.unique(groups)) - 1
    error = (found.high - found.estimate) / float(scipy.stats.t.ppf((1 + level) / 2, df))
    t, p = _t(found.estimate, error, df)
    return TestResult(t, p, _NULL, "cluster t", df, estimate=found.estimate,
                      interval=(found.low, found.high), level=level, n=len(d))  # fmt: skip


def _t(mean: float, error: float, df: float) -> tuple[float, float]:
    if error == 0:
        return (0.0, 1.0) if mean == 0 else (math.copysign(math.inf, mean), 0.0)
    t = mean / error
    return t, float(2 * scipy.stats.t.sf(abs(t), df))


def _student(d: Floats, scale: float, level: float, method: str) -> TestResult:
    mean, df = float(d.mean()), len(d) - 1
    error = float(d.std(ddof=1)) * math.sqrt(scale)
    t, p = _t(mean, error, df)
    half = float(scipy.stats.t.ppf((1 + level) / 2, df)) * error
    return TestResult(t, p, _NULL, method, float(df), estimate=mean,
                      interval=(mean - half, mean + half), level=level, n=len(d))  # fmt: skip


def _mcnemar(a: Floats, b: Floats, level: float) -> TestResult:
    only_a, only_b = int(((a == 1) & (b == 0)).sum()), int(((b == 1) & (a == 0)).sum())
    return mcnemar_counts(only_a, only_b, len(a), level)


def mcnemar_counts(only_a: int, only_b: int, n: float, level: float = 0.95) -> TestResult:
    r"""McNemar's exact test from the rows that only one of two models has (wrong, or right).

    Given b + c rows apart, b is binomial(b + c, ½) when the two are equally good. The interval of
    (b − c)/n is Bonett and Price's, with :math:`\tilde p = (b+1)/(n+2)`,
    :math:`\tilde q = (c+1)/(n+2)`:

    .. math:: \tilde p - \tilde q \pm z\sqrt{\frac{\tilde p + \tilde q - (\tilde p - \tilde q)^2}{n+2}}

    One that holds b + c fixed would forget that their number is chance as well, and promise far too
    much when one model is much better.

    >>> found = mcnemar_counts(10, 3, 100)
    >>> round(found.pvalue, 6), [round(end, 3) for end in found.interval]
    (0.092285, [-0.005, 0.142])
    """
    apart, rows = only_a + only_b, round(n)
    p = float(scipy.stats.binomtest(only_a, apart).pvalue) if apart else 1.0
    a, b = (only_a + 1) / (n + 2), (only_b + 1) / (n + 2)
    half = z_of(level) * math.sqrt((a + b - (a - b) ** 2) / (n + 2))
    interval = (max(-1.0, a - b - half), min(1.0, a - b + half))
    return TestResult(float(only_a - only_b), p, _NULL, "mcnemar", estimate=(only_a - only_b) / n,
                      interval=interval, level=level, n=rows)  # fmt: skip


def _permutation(d: Floats, groups: Any, level: float, n: int, key: Key) -> TestResult:
    units = d if groups is None else cluster_sums(d, groups)
    moving = units[units != 0]
    total = float(units.sum())
    tight = abs(total) * (1 - 1e-12)  # sums in another order must count as equal
    if len(moving) <= _EXACT:
        signs = 1 - 2 * (np.arange(2 ** len(moving))[:, None] >> np.arange(len(moving)) & 1)
        p = float((np.abs(signs @ moving) >= tight).mean())
    else:
        generator, hits = key.fold("signs").numpy(), 0
        step = max(1, _BLOCK // len(moving))
        for start in range(0, n, step):
            size = (min(step, n - start), len(moving))
            bits = generator.integers(0, 2, size, dtype=np.int8)
            sums = bits.astype(np.float64) @ moving * 2 - moving.sum()
            hits += int((np.abs(sums) >= tight).sum())
        p = (hits + 1) / (n + 1)
    found = mean_interval(d, level, groups)
    return TestResult(float(d.mean()), p, _NULL, "sign-flip permutation", estimate=float(d.mean()),
                      interval=(found.low, found.high), level=level, n=len(d))  # fmt: skip


def _bootstrap(d: Floats, groups: Any, level: float, n: int, key: Key) -> TestResult:
    mean = float(d.mean())
    if np.ptp(d) == 0:
        return TestResult(mean, 1.0 if mean == 0 else 0.0, _NULL, "paired bootstrap",
                          estimate=mean, interval=(mean, mean), level=level, n=len(d))  # fmt: skip
    draws = bootstrap("mean", d, n_resamples=n, level=level, groups=groups, method="percentile",
                      random_state=key).draws  # fmt: skip
    found = interval_of(mean, draws, level, "percentile")
    side = min(int((draws <= 0).sum()), int((draws >= 0).sum()))
    p = min(1.0, 2 * (side + 1) / (len(draws) + 1))
    return TestResult(mean, p, _NULL, "paired bootstrap", estimate=mean,
                      interval=(found.low, found.high), level=level, n=len(d))  # fmt: skip
