"""Intervals against formulas, SciPy and coverage."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
import scipy.stats
from sklearn.metrics import f1_score

from groundstate.compute.random import Key
from groundstate.errors import DataError
from groundstate.evaluate import (
    METRICS,
    Prediction,
    bootstrap,
    bootstrap_metric,
    interval,
    metric,
    student,
    wilson,
)
from groundstate.evaluate.metrics.resampled import Resampled
from groundstate.math import stats

rng = np.random.default_rng(0)


@pytest.mark.parametrize(("k", "n"), [(49, 80), (900, 1000), (0, 10), (10, 10), (1, 3)])
@pytest.mark.parametrize("level", [0.8, 0.95, 0.995])
def test_wilson_equals_scipy(k: int, n: int, level: float) -> None:
    ours = wilson(k, n, level)
    theirs = scipy.stats.binomtest(k, n).proportion_ci(level, method="wilson")
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


def test_wilson_known_numbers() -> None:
    found = wilson(900, 1000)
    assert (found.low, found.high) == pytest.approx((0.879848, 0.917091), abs=1e-6)
    found = wilson(900, 1000, 0.995)
    assert (found.low, found.high) == pytest.approx((0.870164, 0.923582), abs=1e-6)
    found = wilson(10, 10)
    assert (found.low, found.high) == pytest.approx((0.722467, 1.0), abs=1e-6)
    found = wilson(49, 80)  # by hand: (p + z²/2n ± z √(p(1-p)/n + z²/4n²)) / (1 + z²/n)
    z, p, n = 1.959963984540054, 49 / 80, 80
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    assert found.low == pytest.approx((p + z * z / (2 * n) - half) / (1 + z * z / n), abs=1e-12)


def test_student_equals_scipy() -> None:
    scores = rng.normal(size=12)
    ours = student(scores, 0.9)
    theirs = scipy.stats.t.interval(0.9, 11, scores.mean(), scipy.stats.sem(scores))
    assert (ours.low, ours.high) == pytest.approx(theirs)


@pytest.mark.parametrize("method", ["percentile", "bca"])
@pytest.mark.parametrize("name", ["mae", "rmse", "r2"])
def test_bootstrap_agrees_with_scipy(name: str, method: str) -> None:
    y = rng.gamma(1.0, size=60)
    said = y + rng.standard_exponential(60) - 0.3

    def statistic(a: np.ndarray, b: np.ndarray, axis: int = -1) -> np.ndarray:
        e2 = ((a - b) ** 2).mean(axis)
        if name == "mae":
            return np.abs(a - b).mean(axis)
        return np.sqrt(e2) if name == "rmse" else 1 - e2 / a.var(axis)

    theirs = scipy.stats.bootstrap(
        (y, said), statistic, paired=True, vectorized=True, method=method, n_resamples=40_000,
        rng=np.random.default_rng(1), confidence_level=0.9,
    ).confidence_interval  # fmt: skip
    ours = bootstrap(METRICS[name], y, Prediction(said), n=40_000, method=method, level=0.9)
    width = theirs.high - theirs.low
    assert abs(ours.low - theirs.low) < 0.03 * width
    assert abs(ours.high - theirs.high) < 0.03 * width


def labels(n: int, k: int = 3) -> tuple[np.ndarray, Prediction]:
    y = rng.integers(k, size=n)
    score = np.eye(k)[y] + rng.normal(size=(n, k))
    return y, Prediction(score.argmax(1), None, score, np.arange(k))


@pytest.mark.parametrize("name", ["f1_macro", "balanced_accuracy", "roc_auc"])
def test_bootstrap_of_other_metrics_equals_a_loop(name: str) -> None:
    y, p = labels(80)
    assert METRICS["f1_macro"].score(y, p) == pytest.approx(f1_score(y, p.values, average="macro"))
    ours = bootstrap(METRICS[name], y, p, n=3000, method="percentile")
    loop = []
    generator = np.random.default_rng(3)
    for _ in range(1500):
        rows = generator.integers(80, size=80)
        loop.append(METRICS[name].score(y[rows], p.take(rows)))
    low, high = np.quantile(loop, [0.025, 0.975])
    width = high - low
    assert abs(ours.low - low) < 0.15 * width and abs(ours.high - high) < 0.15 * width
    assert ours.estimate == pytest.approx(METRICS[name].score(y, p))


@pytest.mark.parametrize("name", ["mae", "r2", "f1_macro", "roc_auc", "accuracy"])
def test_weights_are_repetitions_and_order_is_nothing(name: str) -> None:
    n = 40
    y, p = labels(n)
    if METRICS[name].task == "regression":
        y, p = rng.normal(size=n), Prediction(rng.normal(size=n))
    weight = rng.integers(0, 4, n).astype(float)
    rows = rng.permutation(np.repeat(np.arange(n), weight.astype(int)))
    a = interval(METRICS[name], y, p, sample_weight=weight, key=4)
    b = interval(METRICS[name], y[rows], p.take(rows), key=4)
    assert (a.estimate, a.low, a.high) == pytest.approx((b.estimate, b.low, b.high), rel=1e-12)


def test_same_key_same_interval() -> None:
    y, p = labels(50)
    found = [bootstrap(METRICS["f1_macro"], y, p, key=key) for key in (1, 1, 2)]
    assert found[0] == found[1] != found[2]


def test_many_distinct_rows_are_drawn_by_points() -> None:
    y = rng.normal(size=5000)
    p = Prediction(y + rng.normal(size=5000))
    found = bootstrap(METRICS["mae"], y, p, n=1000)
    error = np.abs(y - p.values)
    half = 1.96 * error.std() / math.sqrt(5000)
    assert found.high - found.low == pytest.approx(2 * half, rel=0.1)


def test_hits_of_a_million_rows() -> None:
    y = rng.integers(2, size=1_000_000)
    p = Prediction(np.where(rng.random(1_000_000) < 0.9, y, 1 - y), classes=np.arange(2))
    found = bootstrap(METRICS["accuracy"], y, p, n=10_000)
    assert found.high - found.low == pytest.approx(2 * 1.96 * 0.3 / 1000, rel=0.1)


def test_coverage_of_bca_on_a_skewed_mean() -> None:
    generator = np.random.default_rng(8)
    covered = 0
    for i in range(200):
        y = generator.standard_exponential(40)
        found = bootstrap(METRICS["mae"], y, Prediction(np.zeros(40)), n=500, key=i)
        covered += found.low <= 1.0 <= found.high
    assert 0.88 <= covered / 200 <= 0.99


def test_degenerate_scores() -> None:
    y = np.ones(10)
    found = bootstrap(METRICS["mae"], y, Prediction(y + 2))
    assert (found.estimate, found.low, found.high) == (2.0, 2.0, 2.0)
    one_class = Prediction(np.zeros(5, int), None, np.zeros((5, 2)), np.arange(2))
    assert math.isnan(bootstrap(METRICS["roc_auc"], np.zeros(5, int), one_class).low)


def test_bad_arguments() -> None:
    with pytest.raises(DataError, match="got 5 of 3"):
        wilson(5, 3)
    with pytest.raises(DataError, match="between 0 and 1 such as 0.95, got 95"):
        wilson(1, 3, 95)
    with pytest.raises(DataError, match="at least two scores"):
        student([1.0])


def test_cells_and_rows_of_f1_agree_and_a_million_rows_are_quick() -> None:
    y = rng.integers(2, size=400)
    said = np.where(rng.random(400) < 0.8, y, 1 - y)
    cells = bootstrap_metric("f1", y, said)
    rows = stats.bootstrap(
        lambda a, b, sample_weight: 2 * (a * b) @ sample_weight / ((a + b) @ sample_weight), y, said,
        n_resamples=4000,
    ).interval  # fmt: skip
    assert cells.estimate == pytest.approx(f1_score(y, said))
    assert cells.low == pytest.approx(rows.low, abs=0.1 * rows.width)
    assert cells.high == pytest.approx(rows.high, abs=0.1 * rows.width)
    y = rng.integers(2, size=1_000_000)
    said = np.where(rng.random(1_000_000) < 0.9, y, 1 - y)
    seconds = []
    for _ in range(3):
        start = time.process_time()
        bootstrap_metric("f1", y, said, n_resamples=9999)
        seconds.append(time.process_time() - start)
    assert min(seconds) < 0.1


def test_groups_and_strata_of_any_metric() -> None:
    y, p = labels(120)
    twice = np.repeat(np.arange(120), 2)
    label = twice
    for name in ("accuracy", "f1_macro", "roc_auc"):
        alone = bootstrap(METRICS[name], y, p, n=3000, method="percentile")
        naive = bootstrap(METRICS[name], y[twice], p.take(twice), n=3000, method="percentile")
        grouped = bootstrap(
            METRICS[name], y[twice], p.take(twice), n=3000, method="percentile", groups=label
        )
        assert grouped.width == pytest.approx(alone.width, rel=0.1)
        assert grouped.width / naive.width == pytest.approx(math.sqrt(2), rel=0.1)
        assert grouped.estimate == pytest.approx(alone.estimate)
        strata = bootstrap(METRICS[name], y, p, n=2000, method="percentile", stratify=y)
        assert strata.estimate == pytest.approx(alone.estimate) and strata.width > 0
    with pytest.raises(ValueError, match="groups or stratify"):
        bootstrap(METRICS["accuracy"], y, p, groups=y, stratify=y)


def test_the_mean_area_of_many_rows_is_delongs_by_weight_and_like_the_bootstraps() -> None:
    n, classes = 8000, np.arange(3)
    y = rng.integers(0, 3, n)
    p = np.eye(3)[y] + rng.normal(0, 1.2, (n, 3))
    p = np.exp(p) / np.exp(p).sum(1, keepdims=True)
    guess = Prediction(p.argmax(1), p, p, classes)
    roc = METRICS["roc_auc"]
    found = interval(roc, y, guess)
    assert found.method == "delong" and found.estimate == pytest.approx(roc.score(y, guess))
    drawn = bootstrap(roc, y, guess, n=400, key=Key.of(0))
    assert found.width == pytest.approx(drawn.width, rel=0.15)
    weight = rng.integers(0, 3, n).astype(float)
    at = np.repeat(np.arange(n), weight.astype(int))
    twice = Prediction(guess.values[at], p[at], p[at], classes)
    assert interval(roc, y, guess, sample_weight=weight) == interval(roc, y[at], twice)


def test_areas_of_resamples_equal_a_loop_and_delong() -> None:
    y = rng.integers(2, size=3000)
    s = 1 / (1 + np.exp(-(y + rng.normal(size=3000))))
    found = bootstrap_metric("roc_auc", y, (s > 0.5).astype(int), s, n_resamples=2000)
    delong = stats.auc_interval(y, s)
    assert found.low == pytest.approx(delong.low, abs=0.08 * delong.width)
    assert found.high == pytest.approx(delong.high, abs=0.08 * delong.width)


def test_arrays_are_read() -> None:
    with pytest.raises(DataError, match="proba has 3 columns for the 2 labels"):
        bootstrap_metric("log_loss", [0, 1], [0, 1], np.ones((2, 3)) / 3)
    with pytest.raises(DataError, match="one value per row"):
        bootstrap_metric("accuracy", [0, 1], [0])
    text = bootstrap_metric("accuracy", ["a", "b", "b"], ["a", "b", "a"], n_resamples=100)
    assert text.estimate == pytest.approx(2 / 3)


def test_r2_of_a_report_is_free_of_the_bias_of_a_ratio() -> None:
    rng, r2 = np.random.default_rng(0), METRICS["r2"]
    plain, freed = [], []
    for _ in range(1500):
        f = rng.normal(size=25)
        y, said = f + rng.normal(size=25), Prediction(f)  # R² is a half
        plain.append(r2.score(y, said))
        sample = Resampled(r2, y, [said], np.ones(25), 2, Key.of(0))
        freed.append(sample.jackknife())
    error = np.std(freed) / np.sqrt(len(freed))
    assert np.mean(plain) - 0.5 < -5 * error  # low by about 2/n
    assert abs(np.mean(freed) - 0.5) < 2 * error
    found = interval(r2, y, said)
    assert found.estimate == freed[-1] and found.method == "bca, jackknife"
    assert found.low < found.estimate < found.high


def test_the_jackknife_counts_weights_as_rows() -> None:
    rng, r2 = np.random.default_rng(1), METRICS["r2"]
    f = rng.normal(size=30)
    y, w = f + rng.normal(size=30), rng.integers(1, 4, 30)
    rows = np.repeat(np.arange(30), w)
    one = interval(r2, y, Prediction(f), sample_weight=w).estimate
    assert one == pytest.approx(interval(r2, y[rows], Prediction(f[rows])).estimate, rel=1e-12)


def test_rows_without_a_mistake_are_no_certainty() -> None:
    y = np.repeat([0, 1], [30, 10])
    said = Prediction(y, np.eye(2)[y], np.eye(2)[y], np.arange(2))
    for name in ("precision", "recall"):
        found = interval(metric(name), y, said)
        assert tuple(found) == pytest.approx(tuple(wilson(10, 10)))
    both = [wilson(30, 30).low, wilson(10, 10).low]
    assert interval(METRICS["balanced_accuracy"], y, said).low == pytest.approx(np.mean(both))
    assert interval(METRICS["roc_auc"], y, said).low == pytest.approx(min(both))
    never = interval(metric("precision"), y, Prediction(np.zeros(40, int), classes=np.arange(2)))
    assert np.isnan(never.low)


def test_jackknife_of_very_few_rows_stays_within_the_limits() -> None:
    y, told = np.array([1.0, 2.0, 2.1]), Prediction(np.array([2.0, 1.0, 2.0]))
    found = bootstrap(METRICS["r2"], y, told, unbiased=True)
    plain = bootstrap(METRICS["r2"], y, told)
    assert found.low <= found.estimate <= found.high or found.estimate == plain.estimate
    assert found.estimate <= 1
