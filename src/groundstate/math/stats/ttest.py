r"""Student's and Welch's tests of means, and how many rows they need.

.. math:: t = \frac{\bar a - \bar b}{\sqrt{s_a^2/n_a + s_b^2/n_b}}
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.stats
from numpy.typing import NDArray
from scipy.optimize import brentq

from groundstate.errors import DataError
from groundstate.math.stats.interval import checked_level
from groundstate.math.stats.result import Alternative, TestResult, tail
from groundstate.math.stats.samples import sample


def ttest(
    a: Any,
    b: Any = None,
    *,
    popmean: float = 0.0,
    paired: bool = False,
    equal_var: bool = False,
    alternative: Alternative = "two-sided",
    level: float = 0.95,
) -> TestResult:
    r"""Test of a mean, of two means, or of paired differences, by scipy.

    With one sample the null is "the mean is ``popmean``"; with two, Welch's test of equal means
    (``equal_var`` pools the variances, df :math:`n_a + n_b - 2`); ``paired`` tests the differences.
    The effect size is Hedges' g, the difference in standard deviations, corrected for small n.

    Parameters
    ----------
    a, b : ``(n,)`` and ``(m,)``
    popmean : mean under the null, of a single sample or of the differences
    alternative : which side counts as extreme
    level : of the interval

    Examples
    --------
    >>> after = [138, 132, 140, 142, 136, 142, 147, 135, 140]
    >>> found = ttest(after, popmean=150)
    >>> round(found.statistic, 6), found.reject()
    (-7.329984, True)
    """
    tail(alternative)
    x = sample(a, "a", 2)
    if b is None:
        return _one(x, popmean, alternative, level, "one-sample t", f"the mean is {popmean:g}")
    y = sample(b, "b", 2)
    if paired:
        if len(x) != len(y):
            raise DataError(f"a paired test needs the same rows in both, got {len(x)} and {len(y)}")
        null = f"the mean difference is {popmean:g}"
        return _one(x - y, popmean, alternative, level, "paired t", null)
    found = scipy.stats.ttest_ind(x, y, equal_var=equal_var, alternative=alternative)
    return _two(found, x.mean(), y.mean(), x.std(ddof=1), y.std(ddof=1), len(x), len(y), equal_var,
                alternative, level)  # fmt: skip


def ttest_from_stats(
    mean1: float,
    std1: float,
    n1: int,
    mean2: float,
    std2: float,
    n2: int,
    *,
    equal_var: bool = False,
    alternative: Alternative = "two-sided",
    level: float = 0.95,
) -> TestResult:
    """The two-sample test from means, standard deviations (ddof 1) and sizes.

    Examples
    --------
    >>> found = ttest_from_stats(143.25, 4.37, 20, 149.55, 3.10, 20)
    >>> round(found.statistic, 6), round(found.df, 4)
    (-5.258506, 34.2585)
    """
    tail(alternative)
    if min(n1, n2) < 2:
        raise DataError(f"each group needs at least two rows, got {n1} and {n2}")
    found = scipy.stats.ttest_ind_from_stats(
        mean1, std1, n1, mean2, std2, n2, equal_var=equal_var, alternative=alternative
    )
    return _two(found, mean1, mean2, std1, std2, n1, n2, equal_var, alternative, level)


def power_ttest(
    effect: float | None = None,
    n: float | None = None,
    alpha: float = 0.05,
    power: float | None = None,
    *,
    two_sample: bool = True,
    alternative: Alternative = "two-sided",
) -> float:
    r"""Power of a t test, or the one of effect and n that gives a wanted power.

    :math:`P(|T| > t_{1-\alpha/2})` for noncentral T with noncentrality :math:`d\sqrt{n/2}` (two
    groups of n) or :math:`d\sqrt n` (one).

    Parameters
    ----------
    effect : difference of means in standard deviations, d
    n : rows per group
    alpha : level of the test
    power : leave exactly one of ``effect``, ``n`` and ``power`` out; that one is returned

    Examples
    --------
    >>> round(power_ttest(effect=0.8, n=20), 6)
    0.693404
    >>> round(power_ttest(effect=0.8, power=0.8), 2)  # rows per group, to be rounded up
    25.52
    """
    tail(alternative)
    if sum(value is None for value in (effect, n, power)) != 1:
        raise ValueError("give two of effect, n and power; the third is returned")
    if not 0 < alpha < 1 or (power is not None and not alpha < power < 1):
        raise ValueError(f"alpha < power < 1 is needed, got alpha={alpha}, power={power}")

    def at(d: float, rows: float) -> float:
        df = 2 * rows - 2 if two_sample else rows - 1
        shift = d * math.sqrt(rows / 2 if two_sample else rows)
        if alternative == "two-sided":
            c = float(scipy.stats.t.ppf(1 - alpha / 2, df))
            return _beyond(c, df, shift) + _beyond(c, df, -shift)
        c = float(scipy.stats.t.ppf(1 - alpha, df))
        return _beyond(c, df, shift if alternative == "greater" else -shift)

    if power is None:
        assert effect is not None and n is not None
        return at(effect, n)
    wanted = power
    if n is None:
        assert effect is not None
        d = effect
        if d == 0:
            raise ValueError("no number of rows shows an effect of 0")
        if alternative != "two-sided" and (d > 0) != (alternative == "greater"):
            raise ValueError(f"an effect of {d} is never shown by the alternative {alternative!r}")
        return _grown(lambda rows: at(d, rows) - wanted, 2.0, 10.0)
    rows = n
    sign = -1.0 if alternative == "less" else 1.0
    return sign * _grown(lambda d: at(sign * d, rows) - wanted, 0.0, 4 / math.sqrt(rows))


def _grown(gap: Callable[[float], float], low: float, high: float) -> float:
    """Where a rising function is zero, above ``low``; ``low`` where it is not below zero there."""
    if gap(low) >= 0:
        return low
    while gap(high) < 0:
        low, high = high, 4 * high
    return float(brentq(gap, low, high, rtol=1e-12))


def _beyond(c: float, df: float, shift: float) -> float:
    """Chance that noncentral T exceeds c; by Gauss where scipy's series gives up."""
    p = float(scipy.stats.nct.sf(c, df, shift))
    return float(scipy.stats.norm.sf(c - shift)) if math.isnan(p) else p


def hedges(n1: int, n2: int | None = None) -> float:
    """The factor that makes a standardised difference unbiased in small samples."""
    df = n1 - 1 if n2 is None else n1 + n2 - 2
    return math.exp(math.lgamma(df / 2) - math.lgamma((df - 1) / 2)) / math.sqrt(df / 2) if (
        df > 1) else 1.0  # fmt: skip


def _one(
    x: NDArray[np.float64],
    popmean: float,
    alternative: Alternative,
    level: float,
    method: str,
    null: str,
) -> TestResult:
    found = scipy.stats.ttest_1samp(x, popmean, alternative=alternative)
    interval = found.confidence_interval(checked_level(level))
    std = float(x.std(ddof=1))
    mean = float(x.mean())
    g = (mean - popmean) / std * hedges(len(x)) if std > 0 else math.inf * np.sign(mean - popmean)
    return TestResult(
        float(found.statistic), float(found.pvalue), null, method, float(found.df), alternative,
        mean, (float(interval.low), float(interval.high)), level, float(g), len(x),
    )  # fmt: skip


def _two(
    found: Any,
    mean1: float,
    mean2: float,
    std1: float,
    std2: float,
    n1: int,
    n2: int,
    equal_var: bool,
    alternative: Alternative,
    level: float,
) -> TestResult:
    v1, v2 = std1**2 / n1, std2**2 / n2
    pooled = math.sqrt(((n1 - 1) * std1**2 + (n2 - 1) * std2**2) / (n1 + n2 - 2))
    if equal_var:
        df, error = float(n1 + n2 - 2), pooled * math.sqrt(1 / n1 + 1 / n2)
    else:
        df = (v1 + v2) ** 2 / (v1**2 / (n1 - 1) + v2**2 / (n2 - 1)) if v1 + v2 > 0 else math.nan
        error = math.sqrt(v1 + v2)
    gap = float(mean1 - mean2)
    checked_level(level)
    q = (1 + level) / 2 if alternative == "two-sided" else level
    reach = float(scipy.stats.t.ppf(q, df)) * error
    low = -math.inf if alternative == "less" else gap - reach
    high = math.inf if alternative == "greater" else gap + reach
    g = gap / pooled * hedges(n1, n2) if pooled > 0 else math.inf * float(np.sign(gap))
    return TestResult(
        float(found.statistic), float(found.pvalue), "equal means",
        "pooled t" if equal_var else "Welch t", df, alternative, gap, (low, high), level, float(g),
        (n1, n2),
    )  # fmt: skip
