"""Incumbents, pairs, recipes, many models and many tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression, Ridge

from groundstate.errors import DataError
from groundstate.evaluate import (
    Interval,
    compare,
    compare_learners,
    corrected_t,
    five_by_two,
    friedman,
    holm,
    mcnemar,
    rank_models,
    versus,
)
from groundstate.math.stats import adjust_pvalues, auc_compare, compare_models


def wrong(b: int, c: int, n: int = 100) -> tuple[np.ndarray, np.ndarray]:
    """Losses where only A errs on b rows and only B on c rows."""
    first, second = np.zeros(n), np.zeros(n)
    first[:b], second[b : b + c] = 1, 1
    return first, second


def test_incumbent() -> None:
    found = versus((900, 1000), incumbent=0.88)
    assert found.verdict == "cannot tell"
    assert found.p_greater == pytest.approx(0.0266, abs=5e-5)
    assert found.p == pytest.approx(scipy.stats.binomtest(900, 1000, 0.88).pvalue)
    assert versus(0.9, 0.88, 1000).p == found.p
    assert versus(np.arange(1000) < 900, 0.88).score == found.score
    assert versus((900, 1000), 0.87).verdict == "better"
    assert versus((900, 1000), 0.93).verdict == "worse"


def test_incumbent_by_wald_is_the_z_test() -> None:
    from statsmodels.stats import proportion

    for k in (880, 890, 895, 900, 905, 850):
        z, p = proportion.proportions_ztest(k, 1000, 0.88)
        found = versus((k, 1000), 0.88, method="wald")
        assert found.p == pytest.approx(p)
        assert (found.verdict == "cannot tell") == (p >= 0.05)
        if p < 0.05:
            assert found.verdict == ("better" if z > 0 else "worse")


@pytest.mark.parametrize("method", ["wilson", "wald", "jeffreys"])
def test_rows_that_would_settle_it(method: Any) -> None:
    found = versus((900, 1000), 0.885, method=method)
    n = found.n_needed
    assert found.verdict == "cannot tell" and n is not None
    assert versus((0.9 * n, n), 0.885, method=method).verdict == "better"
    assert versus((0.9 * (n - 1), n - 1), 0.885, method=method).verdict == "cannot tell"
    assert versus((90, 100), 0.9).n_needed == np.inf


def test_versus_of_an_interval_and_errors() -> None:
    found = versus(Interval(0.9, 0.86, 0.94), 0.88, n=100)
    assert found.verdict == "cannot tell" and found.n_needed == 400 and found.p is None
    assert "400 test rows" in str(found)
    with pytest.raises(DataError, match="between 0 and 1"):
        versus((9, 10), 1.2)
    with pytest.raises(DataError, match="0 and 1 only"):
        versus([0.5, 1.0], 0.5)
    with pytest.raises(DataError, match="accuracy with n"):
        versus(0.9, 0.5)


@pytest.mark.parametrize(("b", "c", "p"), [(10, 3, 0.092285), (25, 12, 0.047031), (0, 0, 1.0)])
def test_paired(b: int, c: int, p: float) -> None:
    found = compare(*wrong(b, c))
    assert found.p == pytest.approx(p, abs=1e-6)
    assert found.difference == pytest.approx((b - c) / 100)
    assert found.per_1000 == pytest.approx(10 * (b - c))
    if b == c:
        assert found.better == 0.5 and found.verdict == "cannot tell"
        assert found.low < 0 < found.high  # a hundred equal rows leave room for a difference
        assert found.rows_for_power == np.inf and found.power == pytest.approx(0.05)
    else:
        assert found.better < 0.05 and (found.verdict == "B") == (p < 0.05)
        swapped = compare(*wrong(b, c)[::-1])
        assert swapped.difference == -found.difference and swapped.p == found.p
        assert swapped.better == pytest.approx(1 - found.better, abs=0.01)


def test_paired_real_losses_and_areas() -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(1, 1, 200)
    b = a + rng.normal(0.2, 1, 200)
    t = scipy.stats.ttest_rel(a, b)
    found = compare(a, b)
    assert found.p == pytest.approx(t.pvalue) and found.low == pytest.approx(
        t.confidence_interval().low
    )
    flips = compare(a, b, method="permutation")
    exact = scipy.stats.permutation_test(
        (a - b,), np.mean, permutation_type="samples", n_resamples=9999, rng=0
    )
    assert flips.p == pytest.approx(exact.pvalue, abs=0.01)
    # power: simulated z tests of the observed effect
    d = a - b
    draws = rng.normal(d.mean(), d.std(ddof=1), (4000, 200))
    share = (np.abs(draws.mean(1)) / (d.std(ddof=1) / 200**0.5) > 1.959964).mean()
    assert found.power == pytest.approx(share, abs=0.03)
    y = rng.integers(2, size=300)
    p, q = y + rng.normal(size=300), y + 1.5 * rng.normal(size=300)
    areas = compare(p, q, y, metric="auc")
    assert areas.p == auc_compare(p, q, y).pvalue and areas.better > 0.9
    assert areas.verdict == "A" and areas.to_dict()["verdict"] == "A"
    with pytest.raises(DataError, match="pass y"):
        compare(p, q, metric="auc")


def test_power_counts_dependent_rows_together() -> None:
    """Every row four times as one group tells no more than the row once."""
    rng = np.random.default_rng(5)
    a = rng.normal(size=60)
    b = a + rng.normal(0.3, 1, 60)
    once = compare(a, b, method="t")
    again = [np.repeat(v, 4) for v in (a, b)]
    grouped = compare(*again, method="t", groups=np.repeat(np.arange(60), 4))
    assert grouped.power == pytest.approx(once.power)
    assert grouped.rows_for_power == pytest.approx(4 * once.rows_for_power, abs=4)
    assert compare(*again, method="t").power > once.power + 0.1


def test_one_implementation_of_each_test() -> None:
    a, b = wrong(10, 3)
    assert mcnemar(1 - a, 1 - b).p == compare_models(a, b, "mcnemar").pvalue
    d = [0.02, 0.01, 0.03, 0.0]
    folds = compare_models(d, [0.0] * 4, n_train=75, n_test=25)
    assert corrected_t(d, 75, 25).p == folds.pvalue
    assert holm([0.2, 0.01]).tolist() == adjust_pvalues([0.2, 0.01]).tolist()


class RandomFeatures(RegressorMixin, BaseEstimator):
    """Least squares on two random directions: another seed is another model."""

    def __init__(self, random_state: int | None = None) -> None:
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> RandomFeatures:
        self.w_ = np.random.default_rng(self.random_state).normal(size=(X.shape[1], 2))
        self.coef_ = np.linalg.lstsq(X @ self.w_, y, rcond=None)[0]
        return self

    def predict(self, X: Any) -> Any:
        return X @ self.w_ @ self.coef_


def test_a_recipe_against_itself() -> None:
    """Other seeds of the same recipe: the corrected test is honest, a plain t on folds is not."""
    rng = np.random.default_rng(0)
    corrected, plain = [], []
    for i in range(200):
        X = rng.normal(size=(40, 4))
        y = X[:, 0] + rng.normal(size=40)
        model = RandomFeatures()
        found = compare_learners(
            model, model, X, y, cv=5, repeats=2, same_seeds=False, random_state=i
        )
        corrected.append(found.p)
        plain.append(found.p_plain)
    share, naive = np.mean(np.array(corrected) < 0.05), np.mean(np.array(plain) < 0.05)
    assert share <= 0.05
    assert naive > share + 0.02


def test_designs_of_recipes_agree() -> None:
    rng = np.random.default_rng(1)

    def fresh(generator: np.random.Generator) -> tuple[Any, Any]:
        X = generator.normal(size=(60, 3))
        return X, X[:, 0] + 0.5 * generator.normal(size=60)

    X, y = fresh(rng)
    for found in (
        compare_learners(Ridge(), DummyRegressor(), X, y),
        compare_learners(Ridge(), DummyRegressor(), X, y, design="oob", n=30),
        compare_learners(Ridge(), DummyRegressor(), design="generator", generator=fresh, n=20),
    ):
        assert found.p < 0.01 and found.wins == 1.0 and found.difference.high < 0
        assert found.difference.estimate == pytest.approx(-1.0, abs=0.6)
    same = compare_learners(LinearRegression(), LinearRegression(), X, y)
    assert same.p == 1.0 and same.wins == 0.5 and same.difference.estimate == 0
    many = fresh(rng), fresh(rng), fresh(rng), fresh(rng)  # halves of 60 rows scatter
    more = (np.concatenate(column) for column in zip(*many, strict=True))
    assert five_by_two(Ridge(), DummyRegressor(), *more).pvalue < 0.01
    with pytest.raises(DataError, match="generator"):
        compare_learners(Ridge(), Ridge(), X, y, design="generator")
    with pytest.raises(ValueError, match="design must be"):
        compare_learners(Ridge(), Ridge(), X, y, design="x")  # type: ignore[arg-type]


def test_max_t_holds_the_family_error() -> None:
    """Six equally good classifiers: some pair is separated in at most 5 % of tables."""
    rng, false = np.random.default_rng(2), 0
    for i in range(300):
        hard = rng.random((120, 1))
        losses = (rng.random((120, 6)) < 0.6 * hard).astype(float)
        false += bool(rank_models(losses, n_resamples=1000, random_state=i).separated.any())
    assert false / 300 <= 0.05


def test_rank_intervals() -> None:
    rng = np.random.default_rng(3)
    base = rng.normal(size=400)
    losses = {name: base + shift + 0.5 * rng.normal(size=400)
              for name, shift in (("c", 1.0), ("a", 0.0), ("b", 0.0), ("d", 2.0))}  # fmt: skip
    found = rank_models(losses)
    assert set(found.names[:2]) == {"a", "b"} and found.names[2:] == ("c", "d")
    assert found.ranks == [(1, 2), (1, 2), (3, 3), (4, 4)] and set(found.tied) == {"a", "b"}
    assert found.to_best[0].estimate == 0 and 1 in found.to_best[2]
    single = compare_models(losses["c"], losses["d"], "t")
    assert found.critical > scipy.stats.t.ppf(0.975, 399) and single.interval is not None
    twice = rank_models({k: np.repeat(v, 2) for k, v in losses.items()})
    weighted = rank_models(losses, sample_weight=np.full(400, 2.0))
    assert twice.critical == weighted.critical
    same = rank_models({"a": base, "b": base})
    assert same.tied == ("a", "b") and same.critical == 0
    with pytest.raises(DataError, match="no models"):
        rank_models({})


def test_friedman() -> None:
    rng = np.random.default_rng(4)
    scores = rng.normal(size=(15, 4)) + np.array([0, 0, 0.5, 2.5])
    found = friedman(scores, names="abcd")
    np.testing.assert_allclose(found.ranks.sum(1), 10)
    expected = scipy.stats.friedmanchisquare(*scores.T)
    assert found.statistic == pytest.approx(expected.statistic) and found.p == expected.pvalue
    # Demšar's table: q of four models is 2.569
    assert found.critical_difference == pytest.approx(2.569 * np.sqrt(20 / 90), abs=1e-3)
    assert found.mean_ranks.argmin() == 3 and found.holm[3] == 1 and found.holm[0] < 0.05
    ties = friedman(np.round(scores), names="abcd")
    np.testing.assert_allclose(ties.ranks.sum(1), 10)
    flat = friedman(np.ones((5, 3)))
    assert flat.p == 1 and flat.groups == (("0", "1", "2"),)
    from matplotlib.figure import Figure

    found.draw(Figure().add_subplot())
    with pytest.raises(DataError, match="three models"):
        friedman(scores[:, :2])
