"""Nested F tests against written-out least squares."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from groundstate.errors import DataError
from groundstate.math.stats import linearity_test, natural_spline, nested_f_test

rng = np.random.default_rng(0)


def test_the_toy_of_four_rows() -> None:
    x, y = np.arange(4.0), np.array([1.0, 2.0, 2.0, 4.0])
    small, big = float(((y - y.mean()) ** 2).sum()), np.polyfit(x, y, 1, full=True)[1][0]
    found = nested_f_test(small, 3, big, 2)
    assert np.isclose(found.statistic, 11.571429) and np.isclose(found.pvalue, 0.076620, atol=1e-6)
    assert found.df == (1, 2) and "statistic 11.57, df 1, 2" in str(found)


def test_squared_t_is_f() -> None:
    x, y = rng.normal(size=(2, 30))
    test = scipy.stats.linregress(x, y)
    small, big = float(((y - y.mean()) ** 2).sum()), np.polyfit(x, y, 1, full=True)[1][0]
    found = nested_f_test(small, 29, big, 28)
    assert np.isclose(found.statistic, (test.slope / test.stderr) ** 2)
    assert np.isclose(found.pvalue, test.pvalue)


def test_line_against_spline_is_the_f_of_their_residuals() -> None:
    x = rng.uniform(size=60)
    y = x + 0.3 * rng.normal(size=60)
    knots = np.quantile(x, np.linspace(0.05, 0.95, 5))
    cubes = [np.clip(x - t, 0, None) ** 3 for t in knots]
    tails = [(c - cubes[4]) / (knots[4] - t) for c, t in zip(cubes[:4], knots[:4], strict=True)]
    curve = np.column_stack([np.ones(60), x, *(tails[j] - tails[3] for j in range(3))])
    sse = [
        float(((y - d @ np.linalg.lstsq(d, y, rcond=None)[0]) ** 2).sum())
        for d in (curve[:, :2], curve)
    ]
    F = ((sse[0] - sse[1]) / 3) / (sse[1] / 55)
    found = linearity_test(x, y)
    assert np.isclose(found.statistic, F) and found.df == (3, 55)


def test_p_is_uniform_under_a_line_and_small_under_a_curve() -> None:
    x = np.linspace(0, 1, 40)
    p = [linearity_test(x, 2 * x + rng.normal(size=40)).pvalue for _ in range(300)]
    assert scipy.stats.kstest(p, "uniform").pvalue > 0.01
    assert linearity_test(x, np.sin(6 * x) + 0.1 * rng.normal(size=40)).pvalue < 1e-8


def test_natural_splines_are_straight_outside_and_units_do_not_matter() -> None:
    knots = np.array([0.0, 1.0, 2.0, 4.0])
    far = natural_spline(np.array([5.0, 6.0, 7.0]), knots)
    np.testing.assert_allclose(np.diff(far, n=2, axis=0), 0, atol=1e-9)
    x, y = rng.uniform(size=50), rng.normal(size=50)
    assert np.isclose(linearity_test(x, y).pvalue, linearity_test(x * 1e6 + 3, y).pvalue)


def test_mistakes_are_named() -> None:
    with pytest.raises(DataError, match="fewer degrees of freedom"):
        nested_f_test(1.0, 7, 0.5, 8)
    with pytest.raises(DataError, match="cannot fit worse"):
        nested_f_test(1.0, 8, 2.0, 7)
    with pytest.raises(DataError, match="too few distinct"):
        linearity_test([0, 0, 1, 1], [1, 2, 3, 4])
    with pytest.raises(DataError, match="same length"):
        linearity_test([0, 1], [1])
    with pytest.raises(DataError, match="at least 3"):
        linearity_test(np.arange(9.0), np.arange(9.0), n_knots=2)
    exact = nested_f_test(1.0, 8, 0.0, 7)
    assert (exact.statistic, exact.pvalue, exact.df) == (np.inf, 0.0, (1, 7))
