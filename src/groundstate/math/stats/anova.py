r"""Tests of groups and of parameters: ANOVA, nested F, likelihood ratio, Wald."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.stats
from numpy.typing import NDArray

from groundstate.errors import DataError
from groundstate.math.stats.result import TestResult
from groundstate.math.stats.samples import sample


def anova(*groups: Any) -> TestResult:
    r"""One-way analysis of variance, by scipy: do all groups have the same mean?

    :math:`F = \frac{\sum_k n_k(\bar x_k - \bar x)^2/(K-1)}{\sum_k\sum_i(x_{ki}-\bar x_k)^2/(n-K)}`.
    For two groups F is the square of the pooled t. The effect size is :math:`\eta^2`, the share of
    variance between groups.

    Examples
    --------
    >>> found = anova([1.0, 2.0, 3.0], [2.0, 3.0, 4.0], [5.0, 6.0, 7.0])
    >>> round(found.statistic, 6), found.df
    (13.0, (2.0, 6.0))
    """
    if len(groups) < 2:
        raise DataError(f"anova compares at least two groups, got {len(groups)}")
    values = [sample(group, f"group {k} of anova") for k, group in enumerate(groups)]
    n, k = sum(map(len, values)), len(values)
    if n <= k:
        raise DataError(f"anova needs more rows than groups, got {n} rows in {k} groups")
    found = scipy.stats.f_oneway(*values)
    mean = np.concatenate(values).mean()
    between = sum(len(v) * float(v.mean() - mean) ** 2 for v in values)
    total = float(np.square(np.concatenate(values) - mean).sum())
    return TestResult(
        float(found.statistic), float(found.pvalue), "all groups have the same mean", "anova",
        (k - 1.0, float(n - k)), effect_size=between / total if total > 0 else math.nan,
        n=tuple(map(len, values)),
    )  # fmt: skip


def nested_f_test(sse0: float, df0: float, sse1: float, df1: float) -> TestResult:
    r"""Does the larger of two nested least-squares models fit more than by chance?

    :math:`F = \frac{(\mathrm{SSE}_0 - \mathrm{SSE}_1)/(df_0 - df_1)}{\mathrm{SSE}_1/df_1}`.

    Parameters
    ----------
    sse0, df0 : squared residuals of the smaller model and its residual degrees of freedom, n − k₀
    sse1, df1 : of the larger model

    Examples
    --------
    >>> print(nested_f_test(4.75, 3, 0.7, 2))
    nested F: 'the added terms are zero' is not rejected at 5 % (statistic 11.57, df 1, 2, p 0.0766).
    """
    if not df0 > df1 > 0:
        raise DataError(
            f"the larger model leaves fewer degrees of freedom, and at least one: got df0={df0:g} "
            f"and df1={df1:g}"
        )
    if sse1 < 0 or sse1 > sse0 * (1 + 1e-9):
        raise DataError(
            f"nested models cannot fit worse when they grow: got sse0={sse0:g} and sse1={sse1:g}"
        )
    gained = max(sse0 - sse1, 0.0)
    if sse1 <= 1e-30 * sse0:
        F = math.inf if gained > 0 else 0.0
    else:
        F = (gained / (df0 - df1)) / (sse1 / df1)
    p = float(scipy.stats.f.sf(F, df0 - df1, df1))
    return TestResult(F, p, "the added terms are zero", "nested F", (df0 - df1, df1))


def likelihood_ratio_test(loglik0: float, loglik1: float, df: float) -> TestResult:
    r"""Wilks' test of nested models: :math:`2(\ell_1 - \ell_0) \sim \chi^2_{df}`.

    Parameters
    ----------
    loglik0, loglik1 : log-likelihoods of the smaller and the larger model on the same rows
    df : parameters added

    Examples
    --------
    >>> round(likelihood_ratio_test(-12.0, -10.0, 1).pvalue, 6)
    0.0455
    """
    if df <= 0:
        raise DataError(f"df is the number of parameters added, at least 1, got {df}")
    gained = 2 * (loglik1 - loglik0)
    if gained < -1e-8 * max(1.0, abs(loglik0)):
        raise DataError(
            f"the larger model cannot be less likely: got {loglik0:g} and {loglik1:g}; swap them"
        )
    gained = max(gained, 0.0)
    p = float(scipy.stats.chi2.sf(gained, df))
    return TestResult(gained, p, "the added parameters are zero", "likelihood ratio", float(df))


def wald_test(theta: Any, cov: Any, level: float = 0.95) -> TestResult | list[TestResult]:
    r"""Wald's test that a parameter is zero: :math:`z = \hat\theta/\mathrm{SE}`.

    Parameters
    ----------
    theta : number, or ``(k,)``
    cov : its variance, or the covariance ``(k, k)``

    Returns
    -------
    one result, or one per parameter

    Examples
    --------
    >>> round(wald_test(1.0, 0.25).pvalue, 6)
    0.0455
    """
    values: NDArray[np.float64] = np.atleast_1d(np.asarray(theta, np.float64))
    variance = np.asarray(cov, np.float64)
    variance = np.diagonal(variance) if variance.ndim == 2 else np.atleast_1d(variance)
    if variance.shape != values.shape or not (variance > 0).all():
        raise DataError(
            f"wald_test needs one positive variance per parameter, got shapes {values.shape} "
            f"and {np.shape(cov)}"
        )
    reach = float(scipy.stats.norm.ppf((1 + level) / 2))
    found = []
    for value, error in zip(values.tolist(), np.sqrt(variance).tolist()):
        z = value / error
        found.append(
            TestResult(
                z, float(2 * scipy.stats.norm.sf(abs(z))), "the parameter is zero", "Wald z",
                estimate=value, interval=(value - reach * error, value + reach * error),
                level=level,
            )
        )  # fmt: skip
    return found if np.ndim(theta) else found[0]
