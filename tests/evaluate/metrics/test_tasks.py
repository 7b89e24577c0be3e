"""Reports, count metrics, overlap, probabilities and predictive distributions, by their numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
import torch
from sklearn import metrics as sk
from sklearn.linear_model import BayesianRidge, LinearRegression

import groundstate
from groundstate.errors import DataError, ShapeError
from groundstate.evaluate import metrics

rng = np.random.default_rng(0)
# TP=40, FN=10, FP=20, TN=30
Y = np.r_[np.ones(50, int), np.zeros(50, int)]
SAID = np.r_[np.ones(40, int), np.zeros(10, int), np.ones(20, int), np.zeros(30, int)]


def from_table(table: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    pairs = [(k, j) for k, row in enumerate(table) for j, n in enumerate(row) for _ in range(n)]
    y, said = np.array(pairs).T
    return y, said


def test_public_module() -> None:
    assert groundstate.metrics is metrics and groundstate.stats.ttest


def test_binary_report_is_sklearn_to_the_bit() -> None:
    y = rng.integers(2, size=200)
    p = np.clip(0.3 * y + 0.7 * rng.random(200), 0, 1)
    w = rng.random(200)
    said = (p >= 0.5).astype(int)
    for weight in (None, w):
        found = metrics.report(y, said, np.stack([1 - p, p], 1), sample_weight=weight)
        o = {"sample_weight": weight}
        assert found.task == "binary"
        expected = {
            "accuracy": sk.accuracy_score(y, said, **o),
            "balanced_accuracy": sk.balanced_accuracy_score(y, said, **o),
            "precision": sk.precision_score(y, said, **o),
            "recall": sk.recall_score(y, said, **o),
            "f1": sk.f1_score(y, said, **o),
            "roc_auc": sk.roc_auc_score(y, p, **o),
            "average_precision": sk.average_precision_score(y, p, **o),
            "log_loss": sk.log_loss(y, np.stack([1 - p, p], 1), **o),
            "brier": sk.brier_score_loss(y, p, **o),
        }
        assert {k: found[k] for k in expected} == expected
    text = str(found)
    assert all(f"{name} " in text for name in ("accuracy", "roc_auc", "ece")) and " to " in text
    with pytest.raises(ValueError, match="did you mean roc_auc"):
        found["roc_acu"]


def test_other_reports() -> None:
    y, said = rng.integers(4, size=(2, 100))
    found = metrics.report(y, said)
    assert found["f1_macro"] == sk.f1_score(y, said, average="macro")
    assert found["f1_of_macros"] != found["f1_macro"] and found.task == "multiclass"
    x, f = rng.normal(size=(2, 50))
    found = metrics.report(x, f)
    assert dict(found) == {
        "rmse": sk.root_mean_squared_error(x, f), "mae": sk.mean_absolute_error(x, f),
        "r2": sk.r2_score(x, f),
    }  # fmt: skip
    assert "r2" in str(found)
    many = metrics.report(rng.normal(size=(20, 2)), rng.normal(size=(20, 2)))
    assert many.task == "multivariate regression"
    tags = rng.integers(2, size=(2, 30, 3))
    assert metrics.report(*tags)["hamming_loss"] == sk.hamming_loss(*tags)
    masks = rng.integers(2, size=(2, 4, 8, 8))
    found = metrics.report(*masks)
    assert found.task == "mask" and set(found) >= {"iou", "dice", "hausdorff"}
    undefined = metrics.report([0, 0, 1, 1], [0, 0, 0, 0])
    assert math.isnan(undefined["precision"]) and "undefined" in str(undefined)
    assert undefined.to_dict()["precision"] is None


def test_energies() -> None:
    e = rng.normal(size=(60, 3))
    y = rng.integers(3, size=60)
    one, two = metrics.report(y, energy=e), metrics.report(y, energy=5 * e)
    assert one["accuracy"] == two["accuracy"] and one["log_loss"] != two["log_loss"]
    p = np.exp(-e) / np.exp(-e).sum(1, keepdims=True)
    assert one["log_loss"] == pytest.approx(sk.log_loss(y, p))
    with pytest.raises(DataError, match="needs predictions"):
        metrics.report(y)


def test_tasks_and_risk() -> None:
    assert metrics.for_task(["a", "b", "c"]).tuning == "log_loss"
    assert "log_loss" not in metrics.for_task(["a", "b"], proba=False).report
    assert metrics.for_task(np.zeros((3, 4, 4), int)).task == "mask"
    y, said = rng.integers(2, size=(2, 50))
    risk = metrics.empirical_risk(y != said)
    assert risk == pytest.approx(1 - sk.accuracy_score(y, said)) == sk.zero_one_loss(y, said)
    sign = 2 * y - 1, 2 * said - 1
    assert risk == pytest.approx(np.mean((sign[0] - sign[1]) ** 2) / 4)
    with pytest.raises(ShapeError, match="one loss per row"):
        metrics.empirical_risk([])
    with pytest.raises(ValueError, match="did you mean 'accuracy'"):
        metrics.metric("acuracy")


def test_confusion_and_rates() -> None:
    assert metrics.confusion(Y, SAID).tolist() == [[30, 20], [10, 40]]
    assert metrics.confusion(Y, SAID, positive_first=True).tolist() == [[40, 10], [20, 30]]
    acc = metrics.ConfusionAccumulator(2)
    acc.update(Y, SAID)
    assert acc.precision[1] == pytest.approx(0.666667, abs=1e-6) and acc.recall[1] == 0.8
    assert acc.npv[1] == 0.75 and acc.specificity[1] == pytest.approx(0.6)
    assert 1 - acc.specificity[1] == pytest.approx(0.4) and acc.accuracy == 0.7
    assert acc.balanced_accuracy == pytest.approx(0.7)
    assert acc.mcc == pytest.approx(0.408248, abs=1e-6)
    f = [acc.f_beta(b)[1] for b in (1, 2, 0.5, 1e-9, 1e9)]
    assert f == pytest.approx([0.727273, 0.769231, 0.689655, 2 / 3, 0.8], abs=1e-6)
    assert acc.iou[1] == pytest.approx(0.571429, abs=1e-6)


def test_accumulators_merge_over_shards() -> None:
    y, said = rng.integers(5, size=(2, 300))
    w = rng.random(300)
    whole = metrics.ConfusionAccumulator(5)
    whole.update(y, said, w)
    parts = [metrics.ConfusionAccumulator(5) for _ in range(3)]
    for i, part in enumerate(parts):
        part.update(y[i::3], said[i::3], w[i::3])
    merged = parts[0] + parts[1] + parts[2]
    assert merged.table == pytest.approx(whole.table)
    assert whole.table == pytest.approx(sk.confusion_matrix(y, said, sample_weight=w))
    assert whole.mcc == pytest.approx(sk.matthews_corrcoef(y, said, sample_weight=w))
    on_device = metrics.ConfusionAccumulator(5)
    on_device.update(torch.as_tensor(y), torch.as_tensor(said))
    assert np.array_equal(on_device.table, sk.confusion_matrix(y, said))
    x, f = rng.normal(1e6, 1, size=(2, 500))
    streams = [metrics.RegressionAccumulator() for _ in range(2)]
    streams[0].update(x[:200], f[:200])
    streams[1].update(x[200:], f[200:])
    both = streams[0] + streams[1]
    assert both.r2 == pytest.approx(sk.r2_score(x, f), rel=1e-9)
    assert both.rmse == pytest.approx(sk.root_mean_squared_error(x, f))
    low, high = both.square.interval()
    assert low < both.mse < high
    with pytest.raises(DataError, match="labels must be 0 to 4"):
        whole.update([7], [0])


def test_histogram_area_is_within_its_bound() -> None:
    y = rng.integers(2, size=5000)
    s = 1 / (1 + np.exp(-(y + rng.normal(size=5000))))
    parts = [metrics.AUCAccumulator(bins=1024) for _ in range(2)]
    parts[0].update(y[:2000], s[:2000])
    parts[1].update(y[2000:], s[2000:])
    acc = parts[0] + parts[1]
    assert abs(acc.auc - sk.roc_auc_score(y, s)) <= acc.error_bound < 0.01
    fine = metrics.AUCAccumulator()
    fine.update(y, s)
    assert fine.auc == pytest.approx(sk.roc_auc_score(y, s), abs=1e-4)


def test_f1_of_macros() -> None:
    y, said = from_table([[8, 2], [1, 9]])
    p, r = (f(y, said, average="macro") for f in (sk.precision_score, sk.recall_score))
    assert (p, r) == pytest.approx((0.853535, 0.85), abs=1e-6)
    assert metrics.f1_of_macros(y, said) == pytest.approx(0.851764, abs=1e-6)
    assert sk.f1_score(y, said, average="macro") == pytest.approx(0.849624, abs=1e-6)
    y, said = from_table([[5, 1, 0], [2, 6, 2], [0, 3, 1]])
    assert metrics.f1_of_macros(y, said) == pytest.approx(0.555095, abs=1e-6)
    assert sk.f1_score(y, said, average="macro") == pytest.approx(0.551648, abs=1e-6)


def test_overlap() -> None:
    assert metrics.iou(Y, SAID)[1] == pytest.approx(0.571429, abs=1e-6)
    assert metrics.dice(Y, SAID)[1] == pytest.approx(0.727273, abs=1e-6)
    assert 1 - metrics.dice(Y, SAID)[1] == pytest.approx(0.272727, abs=1e-6)
    a = rng.integers(3, size=(5, 6, 6))
    b = rng.integers(3, size=(5, 6, 6))
    j, d = metrics.iou(a, b, pool="pooled"), metrics.dice(a, b, pool="pooled")
    assert d == pytest.approx(2 * j / (1 + j))
    assert j == pytest.approx(sk.jaccard_score(a.ravel(), b.ravel(), average=None))
    per_image = np.mean(
        [sk.jaccard_score(x.ravel(), z.ravel(), average=None, labels=[0, 1, 2])
         for x, z in zip(a, b)], 0
    )  # fmt: skip
    assert metrics.iou(a, b) == pytest.approx(per_image)
    empty = np.zeros((1, 4, 4), int)
    assert metrics.iou(empty, empty, n_classes=2).tolist() == [1, 1]
    disjoint = np.array([[[1, 0]]]), np.array([[[0, 1]]])
    assert metrics.dice(*disjoint)[1] == 0 and metrics.dice(disjoint[0], disjoint[0])[1] == 1
    ignored = np.array([[[1, 9]]]), np.array([[[1, 0]]])
    assert metrics.iou(*ignored, n_classes=2, ignore_index=9)[1] == 1
    assert set(metrics.mean_iou(a, b)) == {"image", "pooled"}
    with pytest.raises(ShapeError, match="one shape"):
        metrics.iou(a, b[:2])


def test_hausdorff() -> None:
    a, b = [(0, 0), (1, 0), (0, 1)], [(0, 0), (3, 0)]
    assert metrics.hausdorff(a, b, directed=True) == 1
    assert metrics.hausdorff(b, a, directed=True) == 2 == metrics.hausdorff(a, b)
    m, n = rng.random((2, 12, 12)) > 0.9
    points = [np.argwhere(mask) * [1.0, 2.5] for mask in (m, n)]
    assert metrics.hausdorff(m, n, sampling=(1.0, 2.5)) == pytest.approx(metrics.hausdorff(*points))
    theirs = max(
        scipy.spatial.distance.directed_hausdorff(*points)[0],
        scipy.spatial.distance.directed_hausdorff(*points[::-1])[0],
    )
    assert metrics.hausdorff(*points) == pytest.approx(theirs)
    assert metrics.hausdorff(m, n, percentile=95) <= metrics.hausdorff(m, n)
    square = np.zeros((9, 9), bool)
    square[2:7, 2:7] = True
    assert metrics.hausdorff(square, square, boundary=True) == 0
    with pytest.raises(DataError, match="empty"):
        metrics.hausdorff(np.zeros((2, 2), bool), m[:2, :2] | True)


def test_regression_numbers() -> None:
    y, f = [1, 2, 3], [1, 0, 7]
    assert sk.mean_squared_error(y, f) == pytest.approx(6.666667, abs=1e-6)
    assert sk.mean_absolute_error(y, f) == 2
    x, t = np.arange(4.0)[:, None], np.array([1.0, 2, 2, 4])
    fit = LinearRegression().fit(x, t).predict(x)
    for form in ("residual", "explained", "pearson"):
        assert metrics.r2(t, fit, form) == pytest.approx(0.852632, abs=1e-6)


def test_probability_numbers() -> None:
    y, p = np.array([0, 0, 1, 1]), np.array([0.2, 0.4, 0.6, 0.9])
    assert sk.log_loss(y, p) == pytest.approx(0.337539, abs=1e-6)
    assert sk.brier_score_loss(y, p) == pytest.approx(0.0925)
    assert sk.d2_log_loss_score(y, p) == pytest.approx(0.513034, abs=1e-6)
    s = [0.1, 0.4, 0.35, 0.8, 0.35, 0.7]
    assert sk.average_precision_score([0, 0, 0, 1, 1, 1], s) == pytest.approx(0.866667, abs=1e-6)
    y = np.r_[1, 0, 0, 0, 0, 1, 1, 1, 0, 0]
    p = np.repeat([0.1, 0.9], 5)
    parts = metrics.brier_parts(y, p)
    assert parts == pytest.approx((0.05, 0.04, 0.24)) and parts.total == pytest.approx(0.25)
    assert metrics.brier_parts(y, p, 2).total == pytest.approx(0.25)
    assert metrics.ece(y, p) == pytest.approx(0.2)
    curve = metrics.reliability(y, p)
    assert curve.observed == pytest.approx([0.2, 0.6]) and (curve.low < curve.observed).all()


def test_calibration_error_falls_as_root_n() -> None:
    means = []
    for n in (400, 6400):
        found = []
        for seed in range(20):
            g = np.random.default_rng(seed)
            p = g.random(n)
            found.append(metrics.ece(g.random(n) < p, p))
        means.append(np.mean(found))
    assert means[0] / means[1] == pytest.approx(4.0, rel=0.25)
    g = np.random.default_rng(1)
    p = g.random(3000)
    y = g.random(3000) < p
    assert metrics.ece(y, p, norm="l2", debias=True) < metrics.ece(y, p, norm="l2")
    table = g.dirichlet(np.ones(3), 500)
    said = np.array([g.choice(3, p=row) for row in table])
    top = metrics.ece(said == table.argmax(1), table.max(1))
    assert metrics.ece(said, table) == top
    from sklearn.calibration import calibration_curve

    theirs = calibration_curve(y, p, n_bins=10, strategy="quantile")
    ours = metrics.reliability(y, p, 10, "quantile")
    assert ours.observed == pytest.approx(theirs[0]) and ours.predicted == pytest.approx(theirs[1])
    with pytest.raises(DataError, match="0 and 1"):
        metrics.ece([2, 3], [0.1, 0.2])


def test_coverage_of_right_intervals() -> None:
    y = rng.normal(size=4000)
    X = rng.normal(size=(4000, 2))
    z = scipy.stats.norm.ppf(0.95)
    found = metrics.coverage(y, np.full(4000, -z), np.full(4000, z), X)
    assert 0.9 in found.overall and found.mean_width == pytest.approx(2 * z)
    assert found.by_feature is not None and len(found.by_feature["x0"]) == 10
    assert all(abs(part.estimate - 0.9) < 0.07 for part in found.by_feature["x1"])
    with pytest.raises(DataError, match="ends before it begins"):
        metrics.coverage([0.0], [1.0], [0.0])


def test_scores_of_distributions() -> None:
    assert metrics.crps_gaussian(0, 0, 1) == pytest.approx(0.233695, abs=1e-6)
    draws = rng.normal(size=(200, 2000))
    y = rng.normal(size=200)
    assert metrics.crps_sample(y, draws) == pytest.approx(metrics.crps_gaussian(y, 0, 1), abs=0.05)
    few = draws[:3, :6]
    slow = (
        np.abs(few - y[:3, None]).mean(1) - np.abs(few[:, :, None] - few[:, None]).mean((1, 2)) / 2
    )
    assert metrics.crps_sample(y[:3], few) == pytest.approx(slow)
    exact = metrics.interval_score([0.0, 3.0, -2.0], [-1] * 3, [1] * 3, level=0.9)
    assert exact == pytest.approx([2, 42, 22])


def test_pit() -> None:
    X = rng.normal(size=(600, 2))
    y = X @ [1.0, -1.0] + rng.normal(size=600)
    sure = metrics.pit(BayesianRidge().fit(X[:300], y[:300]), X[300:], y[300:])
    assert sure.kind == "gaussian" and sure.pvalue > 0.01 and sure.histogram.sum() == 300
    wrong = metrics.pit(BayesianRidge().fit(X[:300], y[:300]), X[300:], 4 * y[300:])
    assert wrong.pvalue < 1e-6
    points = metrics.pit(LinearRegression().fit(X, y), X, y)
    assert points.kind == "no uncertainty" and points.values is None


def test_every_metric_takes_weights_as_rows() -> None:
    rng = np.random.default_rng(0)
    y, w = rng.integers(0, 2, 200), rng.integers(1, 4, 200)
    p = 0.4 * y + 0.6 * rng.random(200)
    rows = np.repeat(np.arange(200), w)
    pred = (p > 0.5).astype(int)
    one = metrics.report(y, pred, p, sample_weight=w)
    two = metrics.report(y[rows], pred[rows], p[rows])
    assert one.to_dict() == pytest.approx(two.to_dict(), abs=1e-12)
    for strategy in ("uniform", "quantile"):
        a = metrics.reliability(y, p, 10, strategy, sample_weight=w)
        b = metrics.reliability(y[rows], p[rows], 10, strategy)
        for name in ("predicted", "observed", "count", "low", "high"):
            np.testing.assert_allclose(getattr(a, name), getattr(b, name), atol=1e-12)
        weighed = metrics.ece(y, p, strategy=strategy, sample_weight=w)
        assert weighed == pytest.approx(metrics.ece(y[rows], p[rows], strategy=strategy), abs=1e-12)
    parts = metrics.brier_parts(y, p, 10, sample_weight=w)
    assert parts == pytest.approx(metrics.brier_parts(y[rows], p[rows], 10), abs=1e-12)


def test_a_class_that_does_not_occur() -> None:
    p = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.6, 0.3, 0.1], [0.3, 0.6, 0.1]])
    y = np.array([0, 1, 0, 1])
    found = metrics.report(y, p.argmax(1), p, classes=[0, 1, 2])
    assert found["log_loss"] == pytest.approx(-np.log([0.7, 0.8, 0.6, 0.6]).mean())
    assert found.interval("log_loss").low <= found["log_loss"]
    with pytest.raises(ShapeError, match="pass classes="):
        metrics.report(y, p.argmax(1), p)
    alone = metrics.report(np.zeros(3, int), np.zeros(3, int), [0.1, 0.2, 0.3], classes=[0, 1])
    assert np.isnan(alone["average_precision"]) and np.isnan(alone["recall"])
    assert "undefined" in str(alone)
