"""Tests of means, groups and parameters against scipy and worked numbers."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from groundstate.errors import DataError
from groundstate.math import stats

A_BEFORE = [150, 145, 160, 155, 148, 152, 158, 150, 147]
A_AFTER = [138, 132, 140, 142, 136, 142, 147, 135, 140]
B_AFTER = [146, 150, 143, 148, 145, 142, 154, 156, 152]
rng = np.random.default_rng(0)


def test_trial_numbers() -> None:
    assert stats.ttest(A_AFTER, popmean=150).statistic == pytest.approx(-7.329984, abs=1e-6)
    found = stats.ttest(A_AFTER, B_AFTER)
    assert found.statistic == pytest.approx(-4.226499, abs=1e-6)
    assert found.df == pytest.approx(15.8571, abs=1e-4)
    assert found.pvalue == pytest.approx(6.538e-4, rel=1e-3)
    assert stats.ttest(A_BEFORE, A_AFTER, paired=True).statistic == pytest.approx(10.5373, abs=1e-4)


def test_stated_summaries() -> None:
    given = (143.25, 4.37, 20, 149.55, 3.10, 20)
    pooled = stats.ttest_from_stats(*given, equal_var=True)
    welch = stats.ttest_from_stats(*given)
    assert pooled.statistic == pytest.approx(-5.258506, abs=1e-6) and pooled.df == 38
    assert pooled.pvalue == pytest.approx(5.906e-6, rel=1e-3)
    assert welch.df == pytest.approx(34.2585, abs=1e-4)
    assert welch.pvalue == pytest.approx(7.771e-6, rel=1e-3)
    assert pooled.interval == pytest.approx((-8.7253, -3.8747), abs=1e-4)
    assert scipy.stats.t.sf(1.61, 38) == pytest.approx(0.057837, abs=1e-6)


@pytest.mark.parametrize("alternative", ["two-sided", "less", "greater"])
@pytest.mark.parametrize("equal_var", [True, False])
def test_interval_equals_scipy(alternative: str, equal_var: bool) -> None:
    a, b = rng.normal(size=12), rng.normal(0.4, 2, size=9)
    ours = stats.ttest(a, b, equal_var=equal_var, alternative=alternative, level=0.9)
    theirs = scipy.stats.ttest_ind(a, b, equal_var=equal_var, alternative=alternative)
    limits = theirs.confidence_interval(0.9)
    assert ours.interval == pytest.approx((limits.low, limits.high))
    assert (ours.df, ours.pvalue) == pytest.approx((theirs.df, theirs.pvalue))


def test_swapping_groups_flips_the_sign_only() -> None:
    one, other = stats.ttest(A_AFTER, B_AFTER), stats.ttest(B_AFTER, A_AFTER)
    assert one.statistic == -other.statistic and one.pvalue == other.pvalue
    assert one.interval == pytest.approx((-other.interval[1], -other.interval[0]))
    assert one.effect_size == -other.effect_size
    assert "below" in str(one) and "above" in str(other)


def test_p_is_uniform_when_the_null_holds() -> None:
    x = rng.normal(size=(10_000, 2, 6))
    p = scipy.stats.ttest_ind(x[:, 0], x[:, 1], axis=1, equal_var=False).pvalue
    mine = [stats.ttest(a, b).pvalue for a, b in x[:200]]
    assert np.allclose(mine, p[:200])
    pooled = scipy.stats.ttest_ind(x[:, 0], x[:, 1], axis=1).pvalue
    assert scipy.stats.kstest(pooled, "uniform").pvalue > 0.01


def test_words() -> None:
    calm, sure = stats.ttest([1.0, 2.0, 0.5, -1.0]), stats.ttest(A_AFTER, popmean=150)
    assert "not rejected" in str(calm) and "accepted" not in str(calm)
    assert sure.reject(0.001) and str(sure).endswith("rejected at 5 %.")
    with pytest.raises(ValueError, match="between 0 and 1"):
        sure.reject(2)
    with pytest.raises(DataError, match="at least two numbers"):
        stats.ttest([1.0])
    with pytest.raises(DataError, match="same rows in both, got 2 and 3"):
        stats.ttest([1, 2], [1, 2, 3], paired=True)
    with pytest.raises(ValueError, match="alternative must be"):
        stats.ttest([1, 2], alternative="up")
    with pytest.raises(DataError, match="missing or infinite"):
        stats.ttest([1, np.nan])


def test_power_and_its_inverses() -> None:
    assert stats.power_ttest(0.8, 20) == pytest.approx(0.693404, abs=1e-6)
    n = stats.power_ttest(0.8, power=0.9)
    assert stats.power_ttest(0.8, n) == pytest.approx(0.9)
    d = stats.power_ttest(n=n, power=0.9)
    assert d == pytest.approx(0.8)
    assert stats.power_ttest(0.0, 20) == pytest.approx(0.05)
    assert stats.power_ttest(-0.8, 20, alternative="less") == pytest.approx(
        stats.power_ttest(0.8, 20, alternative="greater")
    )
    for effect in (1e-3, 0.05):  # many rows
        n = stats.power_ttest(effect, power=0.8)
        assert stats.power_ttest(effect, n) == pytest.approx(0.8, abs=1e-6)
    assert stats.power_ttest(50.0, power=0.8) == 2.0  # the fewest rows that have a spread
    with pytest.raises(ValueError, match="give two of"):
        stats.power_ttest(0.8, 20, power=0.5)
    with pytest.raises(ValueError, match="never shown by the alternative 'less'"):
        stats.power_ttest(0.8, power=0.5, alternative="less")


def test_hedges_g_is_unbiased() -> None:
    x = rng.normal(size=(900, 2, 5))
    x[:, 0] += 1.0
    g = [stats.ttest(a, b).effect_size for a, b in x]
    assert np.mean(g) == pytest.approx(1.0, abs=0.08)


def test_anova() -> None:
    a, b, c = rng.normal(size=(3, 8))
    t = stats.ttest(a, b, equal_var=True)
    found = stats.anova(a, b)
    assert found.statistic == pytest.approx(t.statistic**2)
    assert found.pvalue == pytest.approx(t.pvalue)
    theirs = scipy.stats.f_oneway(a, b, c)
    assert stats.anova(a, b, c).pvalue == pytest.approx(theirs.pvalue)
    with pytest.raises(DataError, match="at least two groups"):
        stats.anova(a)


def test_line_against_cubic() -> None:
    x = np.arange(10.0)
    y = np.array([0.1, 1.2, 1.9, 3.2, 3.8, 5.1, 6.2, 6.8, 8.1, 9.0])
    sse = [float(((np.polyval(np.polyfit(x, y, d), x) - y) ** 2).sum()) for d in (1, 3)]
    found = stats.nested_f_test(sse[0], 8, sse[1], 6)
    assert (found.statistic, found.pvalue) == pytest.approx((0.0672, 0.9357), abs=1e-4)
    with pytest.raises(DataError, match="fewer degrees of freedom"):
        stats.nested_f_test(1, 5, 1, 5)
    with pytest.raises(DataError, match="cannot fit worse"):
        stats.nested_f_test(1, 5, 2, 4)
    assert stats.linearity_test(np.arange(60.0), np.sin(np.arange(60.0) / 6)).pvalue < 1e-6


def test_likelihood_ratio_and_wald() -> None:
    assert stats.likelihood_ratio_test(-10, -8, 2).pvalue == pytest.approx(
        scipy.stats.chi2.sf(4, 2)
    )
    with pytest.raises(DataError, match="swap them"):
        stats.likelihood_ratio_test(-8, -10, 1)
    found = stats.wald_test([1.0, -2.0], np.diag([0.25, 1.0]))
    assert [f.statistic for f in found] == [2.0, -2.0]
    assert found[0].interval == pytest.approx((1 - 0.979982, 1 + 0.979982), abs=1e-6)
    with pytest.raises(DataError, match="one positive variance"):
        stats.wald_test([1.0], [[-1.0]])
