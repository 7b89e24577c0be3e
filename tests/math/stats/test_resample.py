"""Bootstrap, comparisons, two-sample tests and ROC areas against scipy, loops and known numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from sklearn.metrics import f1_score, roc_auc_score

from groundstate.errors import DataError, ShapeError
from groundstate.math import stats
from groundstate.math.stats.resample import Cells, counts, merge

rng = np.random.default_rng(0)


@pytest.mark.parametrize("method", ["BCa", "percentile", "basic"])
@pytest.mark.parametrize("n", [80, 6000])
def test_mean_equals_scipy(method: str, n: int) -> None:
    x = np.random.default_rng(n).lognormal(size=n)
    ours = stats.bootstrap("mean", x, n_resamples=20_000, method=method)
    # scipy's BCa leaves each of n rows out in an (n, n) table: the generic route of ours is its twin
    if n > 1000 and method == "BCa":
        theirs = stats.bootstrap(
            lambda v, sample_weight: np.average(v, weights=sample_weight), x, n_resamples=2000
        ).interval
        rel = 0.1
    else:
        theirs = scipy.stats.bootstrap(
            (x,), np.mean, n_resamples=20_000 if n < 1000 else 4000, method=method, rng=1, batch=500
        ).confidence_interval
        rel = 0.03 if n < 1000 else 0.06
    width = theirs.high - theirs.low
    assert abs(ours.interval.low - theirs.low) < rel * width
    assert abs(ours.interval.high - theirs.high) < rel * width
    assert ours.interval.estimate == pytest.approx(x.mean())
    assert ours.standard_error == pytest.approx(x.std() / math.sqrt(n), rel=0.03)


def test_draws_by_cells_have_the_moments_of_draws_by_rows() -> None:
    x = np.random.default_rng(1).exponential(size=(5000, 1)) ** 2
    table = np.hstack([x, x**0.5, rng.normal(size=(5000, 1))])
    by_cells = Cells(table, np.ones(5000)).draws(8000, np.random.default_rng(2))
    assert by_cells.mean(0) == pytest.approx(table.mean(0), rel=0.02, abs=0.001)
    exact = np.cov(table.T, ddof=0) / 5000
    noise = np.sqrt(np.outer(np.diag(exact), np.diag(exact)) / len(by_cells))
    assert (np.abs(np.cov(by_cells.T) - exact) < 5 * noise).all()
    skew = scipy.stats.skew(by_cells[:, 0])
    exact = scipy.stats.skew(table[:, 0]) / math.sqrt(5000)
    assert skew == pytest.approx(exact, abs=0.1)


def test_merged_cells_add_up() -> None:
    rows = rng.integers(0, 3, size=(50, 2)).astype(float)
    weight = rng.random(50)
    cells, total, first = merge(rows, weight)
    assert total.sum() == pytest.approx(weight.sum())
    assert np.array_equal(rows[first], cells)
    order = rng.permutation(50)
    again = merge(rows[order], weight[order])
    assert np.array_equal(cells, again[0]) and np.array_equal(total, again[1])


def test_weighted_grouped_and_stratified_metrics() -> None:
    y = rng.integers(2, size=120)
    said = np.where(rng.random(120) < 0.8, y, 1 - y)
    weights = stats.bootstrap(f1_score, y, said, n_resamples=150, method="percentile")
    plain = stats.bootstrap(
        lambda a, b: f1_score(a, b), y, said, n_resamples=150, method="percentile"
    )
    assert weights.interval.width == pytest.approx(plain.interval.width, rel=0.4)
    loss = np.repeat(rng.normal(size=60), 2)
    alone = stats.bootstrap("mean", loss, n_resamples=3000)
    pairs = stats.bootstrap("mean", loss, n_resamples=3000, groups=np.repeat(np.arange(60), 2))
    assert pairs.standard_error / alone.standard_error == pytest.approx(math.sqrt(2), rel=0.06)
    rare = np.r_[np.ones(3), np.zeros(97)]
    kept = stats.bootstrap(lambda v, sample_weight: float(sample_weight[:3].sum()), rare,
                           n_resamples=50, stratify=rare, method="percentile")  # fmt: skip
    assert (kept.draws == 3).all()


def test_bootstrap_facts() -> None:
    n = 20
    hits = np.concatenate(list(counts(np.ones(n), 20_000, np.random.default_rng(0))))
    assert (hits > 0).mean() == pytest.approx(1 - (1 - 1 / n) ** n, abs=0.002)
    assert 1 - (1 - 1 / n) ** n == pytest.approx(0.6415, abs=1e-4)
    axis = stats.bootstrap(np.median, rng.normal(size=50), n_resamples=500)
    assert axis.interval.low < axis.interval.estimate < axis.interval.high
    with pytest.raises(ShapeError, match="same rows"):
        stats.bootstrap("mean", [1.0, 2.0], [1.0])
    with pytest.raises(ValueError, match="'BCa'"):
        stats.bootstrap("mean", [1.0, 2.0], method="magic")
    with pytest.raises(DataError, match="at least two rows"):
        stats.bootstrap("mean", [1.0])
    x = rng.normal(size=30)
    same = [stats.bootstrap("mean", x, random_state=s).interval.low for s in (1, 1, 2)]
    assert same[0] == same[1] != same[2]


DIFFERENCES = np.array([0.02, 0.01, 0.03, 0.0, 0.02, 0.01, 0.04, 0.02, -0.01, 0.03])


def test_fold_comparisons() -> None:
    zero = np.zeros(10)
    naive = stats.compare_models(DIFFERENCES, zero, method="t", n_train=90, n_test=10, unsafe=True)
    assert naive.statistic == pytest.approx(3.59726, abs=1e-5)
    corrected = stats.compare_models(DIFFERENCES, zero, n_train=90, n_test=10)
    assert corrected.statistic == pytest.approx(2.47581, abs=1e-5)
    assert corrected.pvalue == pytest.approx(0.0352, abs=1e-4)
    flips = stats.compare_models(DIFFERENCES, zero, method="permutation")
    assert flips.pvalue == pytest.approx(0.015625)
    with pytest.raises(DataError, match="unsafe=True"):
        stats.compare_models(DIFFERENCES, zero, method="t", n_train=90, n_test=10)
    other = np.array([0.02, 0.01, 0.03, 0, 0.02, 0.04, 0.01, 0.02, 0.03, 0.02])
    naive = stats.compare_models(other, zero, method="t")
    found = stats.compare_models(other, zero, n_train=90, n_test=10)
    assert naive.statistic == pytest.approx(5.4772, abs=1e-4)
    assert found.statistic == pytest.approx(3.7697, abs=1e-4)
    assert found.pvalue == pytest.approx(0.00442, abs=1e-5)


@pytest.mark.parametrize(
    ("b", "c", "p"), [(15, 5, 0.041389), (10, 3, 0.092285), (25, 12, 0.047031)]
)
def test_discordant_pairs(b: int, c: int, p: float) -> None:
    a = np.r_[np.ones(b), np.zeros(c), np.zeros(100)]
    other = np.r_[np.zeros(b), np.ones(c), np.zeros(100)]
    found = stats.compare_models(a, other)
    assert found.method == "mcnemar" and found.pvalue == pytest.approx(p, abs=1e-6)
    assert found.estimate == pytest.approx((b - c) / len(a))
    swapped = stats.compare_models(other, a)
    assert swapped.pvalue == found.pvalue and swapped.estimate == -found.estimate


def test_other_comparisons_and_choices() -> None:
    same = rng.random(50)
    for method in ("t", "permutation", "bootstrap"):
        found = stats.compare_models(same, same, method=method)
        assert found.estimate == 0 and found.pvalue == 1
    a, b = rng.random(200), rng.random(200) + 0.2
    assert stats.compare_models(a, b).method == "paired t"
    assert stats.compare_models(a[:10], b[:10]).method == "sign-flip permutation"
    t = scipy.stats.ttest_rel(a, b)
    assert stats.compare_models(a, b).pvalue == pytest.approx(t.pvalue)
    for method in ("permutation", "bootstrap"):
        assert stats.compare_models(a, b, method=method).pvalue < 0.001
    twice = np.repeat(a, 2), np.repeat(b, 2)
    label = np.repeat(np.arange(200), 2)
    grouped = stats.compare_models(*twice, groups=label)
    assert grouped.pvalue == pytest.approx(t.pvalue, rel=1e-6)
    assert stats.compare_models(*twice, "permutation", label).pvalue < 0.001
    with pytest.raises(DataError, match="losses of 0 and 1"):
        stats.compare_models(a, b, method="mcnemar")
    with pytest.raises(ShapeError, match="same rows"):
        stats.compare_models(a, b[:-1])


def test_sign_flips_hold_their_level() -> None:
    d = np.random.default_rng(4).standard_t(3, size=(400, 12))
    p = [stats.compare_models(row, np.zeros(12), "permutation").pvalue for row in d]
    assert np.mean(np.array(p) <= 0.05) == pytest.approx(0.05, abs=0.03)


@pytest.mark.parametrize("method", ["mmd", "energy"])
def test_two_sample_level_and_power(method: str) -> None:
    generator = np.random.default_rng(5)
    hits = 0
    for i in range(1000):
        x, y = generator.normal(size=(2, 15, 2))
        hits += two(x, y, method, i).pvalue <= 0.05
    assert hits / 1000 == pytest.approx(0.05, abs=0.015)
    assert two(x, generator.normal(2.0, size=(15, 2)), method, 0).pvalue < 0.05


def two(x: np.ndarray, y: np.ndarray, method: str, seed: int) -> stats.TestResult:
    return stats.two_sample(x, y, method, n_permutations=99, random_state=seed)


def test_two_sample_numbers() -> None:
    assert stats.two_sample([0, 1], [2, 4], "energy").statistic == pytest.approx(3.5)
    x, y = rng.normal(size=40), rng.normal(size=30)
    assert stats.two_sample(x, y, "energy").statistic == pytest.approx(
        scipy.stats.energy_distance(x, y) ** 2
    )
    assert stats.two_sample(x, y, "ks").pvalue == scipy.stats.ks_2samp(x, y).pvalue
    a, b = rng.normal(size=(2, 200, 3))
    assert stats.two_sample(a, b, "c2st").pvalue > 0.01
    assert stats.two_sample(a, b + 2, "c2st").pvalue < 1e-6
    with pytest.raises(DataError, match="one column"):
        stats.two_sample(a, b, "ks")
    assert not stats.memorisation(rng.normal(size=(200, 3)), a, b).reject(0.001)
    assert stats.memorisation(a, a, b).statistic == 0


def test_roc_areas() -> None:
    y, s = [0, 0, 0, 1, 1, 1], [0.1, 0.4, 0.35, 0.8, 0.35, 0.7]
    assert stats.auc(y, s) == pytest.approx(0.833333, abs=1e-6)
    assert stats.auc(y, s, ties="strict") == pytest.approx(0.777778, abs=1e-6)
    assert math.sqrt(stats.auc_variance(y, s)) == pytest.approx(0.192450, abs=1e-6)
    y = rng.integers(2, size=300)
    s = (y + rng.normal(size=300)).round(1)
    assert stats.auc(y, s) == pytest.approx(roc_auc_score(y, s), abs=1e-12)
    assert stats.auc(y, np.exp(s)) == stats.auc(y, s)
    u = scipy.stats.mannwhitneyu(s[y == 1], s[y == 0]).statistic
    assert stats.auc(y, s) == pytest.approx(u / ((y == 1).sum() * (y == 0).sum()), abs=1e-12)
    v10, v01 = (np.array([[(a > b) + 0.5 * (a == b) for b in s[y == 0]] for a in s[y == 1]]).mean(k)
                for k in (1, 0))  # fmt: skip
    expected = v10.var(ddof=1) / len(v10) + v01.var(ddof=1) / len(v01)
    assert stats.auc_variance(y, s) == pytest.approx(expected)
    perfect = stats.auc_interval([0] * 20 + [1] * 20, np.arange(40))
    assert perfect.estimate == 1 and 0.8 < perfect.low < 0.9 and perfect.high == 1


def test_delong_intervals_cover_and_pairs_are_told_apart() -> None:
    generator = np.random.default_rng(6)
    truth = scipy.stats.norm.cdf(1 / math.sqrt(2))
    inside = 0
    for _ in range(400):
        y = np.repeat([0, 1], 40)
        inside += truth in stats.auc_interval(y, y + generator.normal(size=80))
    assert 0.925 <= inside / 400 <= 0.98
    y = np.repeat([0, 1], 200)
    s = y + generator.normal(size=400)
    worse = s + generator.normal(size=400)
    found = stats.auc_compare(s, worse, y)
    assert found.reject() and found.estimate > 0 and "above" in str(found)
    assert stats.auc_compare(s, s, y).pvalue == 1
    with pytest.raises(DataError, match="two labels"):
        stats.auc([0, 1, 2], [1, 2, 3])


@pytest.mark.parametrize(("p", "q"), [(0.37, 0.0), (0.5, 0.05), (0.08, 0.05), (0.2, 0.2)])
def test_interval_of_paired_shares_covers(p: float, q: float) -> None:
    from groundstate.math.stats.compare import mcnemar_counts

    n, rng = 150, np.random.default_rng(0)
    drawn = rng.multinomial(n, [p, q, 1 - p - q], 3000)
    cells, times = np.unique(drawn[:, :2], axis=0, return_counts=True)
    inside = [
        low <= p - q <= high
        for b, c in cells.tolist()
        for low, high in [mcnemar_counts(b, c, n).interval]
    ]
    assert 0.938 < np.average(inside, weights=times) < 0.965
