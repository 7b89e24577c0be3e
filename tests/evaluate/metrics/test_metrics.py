"""Metrics equal scikit-learn's, weighted or not, for one weighting or many."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn import metrics as sk
from sklearn.calibration import calibration_curve

from groundstate.errors import DataError
from groundstate.evaluate import (
    METRICS,
    Prediction,
    all_scores,
    bootstrap_metric,
    interval,
    metric,
)
from groundstate.evaluate.metrics import ConfusionAccumulator, ece, reliability, report

rng = np.random.default_rng(0)
N = 200


def classification(k: int) -> tuple[Any, Prediction]:
    logits = rng.normal(size=(N, k)).round(1)  # with ties
    p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    truth = np.array([rng.choice(k, p=row) for row in p])
    return truth, Prediction(p.argmax(1), p, p, np.arange(k))


def auc(y: Any, p: Prediction, w: Any) -> float:
    assert p.probability is not None
    if p.probability.shape[1] == 2:
        return float(sk.roc_auc_score(y, p.probability[:, 1], sample_weight=w))
    return float(
        np.mean(
            [
                sk.roc_auc_score(y == c, p.probability[:, c], sample_weight=w)
                for c in range(p.probability.shape[1])
            ]
        )
    )


PEERS: dict[str, Callable[[Any, Prediction, Any], float]] = {
    "accuracy": lambda y, p, w: sk.accuracy_score(y, p.values, sample_weight=w),
    "balanced_accuracy": lambda y, p, w: sk.balanced_accuracy_score(y, p.values, sample_weight=w),
    "f1_macro": lambda y, p, w: sk.f1_score(y, p.values, average="macro", sample_weight=w),
    "log_loss": lambda y, p, w: sk.log_loss(y, p.probability, sample_weight=w),
    "brier": lambda y, p, w: sk.brier_score_loss(
        y, p.probability if p.probability.shape[1] > 2 else p.probability[:, 1], sample_weight=w
    ),
    "roc_auc": auc,
    "r2": lambda y, p, w: sk.r2_score(y, p.values, sample_weight=w),
    "rmse": lambda y, p, w: sk.root_mean_squared_error(y, p.values, sample_weight=w),
    "mae": lambda y, p, w: sk.mean_absolute_error(y, p.values, sample_weight=w),
}


@pytest.mark.parametrize("name", PEERS)
@pytest.mark.parametrize("k", [2, 3])
def test_parity_with_sklearn(name: str, k: int) -> None:
    y, prediction = classification(k)
    if METRICS[name].task == "regression":
        y = 1e3 + rng.normal(size=N)
        prediction = Prediction(y + rng.normal(size=N))
    weights = np.stack([np.ones(N), rng.integers(0, 4, N), rng.random(N)])
    ours = METRICS[name].scores(y, prediction, weights)
    theirs = [PEERS[name](y, prediction, w) for w in weights]
    np.testing.assert_allclose(ours, theirs, rtol=1e-10)
    assert METRICS[name].score(y, prediction) == pytest.approx(theirs[0], rel=1e-10)


def test_each_metric_has_a_peer_or_is_one_line() -> None:
    assert set(METRICS) - set(PEERS) == {"mean_nll"}
    assert METRICS["mean_nll"].score(np.zeros(2), Prediction(np.array([-1.0, -3.0]))) == 2.0


def test_constant_target_and_absent_classes() -> None:
    y = np.full(4, 3.0)
    assert METRICS["r2"].score(y, Prediction(y)) == 1.0
    assert METRICS["r2"].score(y, Prediction(y + 1)) == 0.0
    labels = np.array([0, 0, 1])
    p = Prediction(np.array([0, 1, 1]), classes=np.arange(5))
    assert METRICS["f1_macro"].score(labels, p) == pytest.approx(2 / 3)
    assert METRICS["balanced_accuracy"].score(labels, p) == 0.75
    p = Prediction(np.zeros(3, int), None, np.zeros((3, 2)), np.arange(2))
    assert np.isnan(METRICS["roc_auc"].score(np.zeros(3, int), p))


def test_names_and_needs() -> None:
    assert metric(None, "regression") is METRICS["r2"] and metric("mae") is METRICS["mae"]
    with pytest.raises(DataError, match="did you mean 'accuracy'"):
        metric("acuracy")
    with pytest.raises(DataError, match="there are accuracy, balanced_accuracy"):
        metric("zzz")
    labels_only = Prediction(np.zeros(2, int), classes=np.arange(2))
    with pytest.raises(DataError, match="log_loss needs a model that gives probability"):
        METRICS["log_loss"].score(np.zeros(2, int), labels_only)
    with pytest.raises(DataError, match="f1_macro is not a mean over rows"):
        METRICS["f1_macro"].per_row(np.zeros(2, int), labels_only)
    scores = all_scores(np.array([0, 1]), labels_only, "classification")
    assert list(scores) == ["accuracy", "balanced_accuracy", "f1_macro"]
    assert pickle.loads(pickle.dumps(METRICS["rmse"])) is METRICS["rmse"]


class Fake:
    def __init__(self, **answers: Any) -> None:
        for name, value in answers.items():
            setattr(self, name, (lambda v: lambda X: v)(value) if name != "classes_" else value)


def test_predictions_are_aligned_with_all_classes() -> None:
    classes = np.array(["a", "b", "c"])
    model = Fake(
        predict=np.array(["c", "a"]), predict_proba=np.array([[0.2, 0.8], [0.9, 0.1]]),
        classes_=np.array(["a", "c"]),
    )  # fmt: skip
    found = Prediction.of(model, None, classes)
    assert found.values.tolist() == [2, 0]
    assert found.probability.tolist() == [[0.2, 0.0, 0.8], [0.9, 0.0, 0.1]]
    margin = Fake(predict=np.array(["b", "a"]), decision_function=np.array([1.0, -2.0]),
                  classes_=np.array(["a", "b"]))  # fmt: skip
    found = Prediction.of(margin, None, classes[:2])
    assert found.probability is None and found.ranking.tolist() == [[-1.0, 1.0], [2.0, -2.0]]
    with pytest.raises(DataError, match="not among"):
        Prediction.of(Fake(predict=np.array(["z"]), classes_=np.array(["z"])), None, classes)


def test_folds_that_speak_on_several_scales_are_ranked_each_on_its_own() -> None:
    rng = np.random.default_rng(0)
    y, rows = np.tile([0, 1], 50), np.arange(100).reshape(2, 50)
    p = np.clip(0.3 * y + 0.7 * rng.random(100), 0.01, 0.99)
    sure = np.stack([1 - p, p], 1)
    far = 100 * np.stack([1 - p, p], 1) + 1e3  # the same order, as distances
    both = np.arange(2)
    parts = [
        (rows[0], Prediction(y[rows[0]], sure[rows[0]], sure[rows[0]], both)),
        (rows[1], Prediction(y[rows[1]], None, far[rows[1]], both)),
    ]
    whole = Prediction.assemble(parts, 100)
    assert whole.probability is None and whole.ranking is not None
    area = metric("roc_auc").score(y, whole)
    each = [metric("roc_auc").score(y[part], whole.take(part)) for part in rows]
    assert min(each) - 0.02 < area < max(each) + 0.02


def test_reliability_bars_hold_the_share_at_both_ends() -> None:
    from groundstate.evaluate.metrics.proper import reliability

    for n in range(1, 60):
        curve = reliability(np.r_[np.zeros(n), np.ones(n)], np.r_[np.zeros(n), np.ones(n)], 2)
        assert curve.low[0] == 0 and curve.high[1] == 1
        assert (curve.low <= curve.observed).all() and (curve.observed <= curve.high).all()


def test_scores_of_clusterings_have_their_usual_names() -> None:
    import sklearn.metrics as peer

    from groundstate import metrics
    from groundstate.evaluate.metrics import clusters

    names = [name for name in vars(clusters) if name.endswith("_score")]
    assert len(names) == 12
    for name in names:
        assert getattr(metrics, name) is getattr(peer, name)


@pytest.mark.parametrize("kind", ["uint8", "int8", "int64", "float16", "float32"])
@pytest.mark.parametrize("name", ["rmse", "mae", "mse", "r2"])
def test_narrow_numbers_neither_wrap_nor_overflow(kind: str, name: str) -> None:
    scale = {"float32": 1e25, "float16": 300.0, "int64": 2.0**61}.get(kind, 120.0)
    truth, predicted = (np.random.default_rng(0).random((2, 100)) * scale).astype(kind)
    wide = bootstrap_metric(name, truth.astype(float), predicted.astype(float), n_resamples=50)
    assert metric(name).score(truth, Prediction(predicted)) == pytest.approx(wide.estimate)
    found = interval(metric(name), truth, Prediction(predicted))
    assert found.low <= found.estimate <= found.high
    if kind == "float16" and name != "mse":
        assert report(truth, predicted)[name] == pytest.approx(wide.estimate)


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_intervals_have_the_unit_of_the_target(scale: float) -> None:
    truth, predicted = np.random.default_rng(0).normal(size=(2, 100))
    for name in ("rmse", "mae"):
        plain = bootstrap_metric(name, truth, predicted, n_resamples=200)
        scaled = bootstrap_metric(name, truth * scale, predicted * scale, n_resamples=200)
        assert scaled.low == pytest.approx(plain.low * scale)
        assert scaled.high == pytest.approx(plain.high * scale)


def test_weights_that_sum_to_one_row_have_an_interval() -> None:
    p, w, u = np.random.default_rng(0).random((3, 200))
    y = (u > 0.5).astype(int)
    found = bootstrap_metric("log_loss", y, p > 0.5, p, sample_weight=w / w.sum(), n_resamples=300)
    assert found.low < found.estimate < found.high


def test_matthews_keeps_its_digits_for_rare_classes_and_any_weights() -> None:
    rare = ConfusionAccumulator(2, np.array([1e9, 1.0, 1.0, 1.0]))
    assert rare.mcc == pytest.approx(0.5 - 1e-9, rel=1e-12)
    y, pred, w = np.random.default_rng(0).integers(0, 4, (3, 200))
    for scale in (1e-200, 1.0, 1e100):
        table = ConfusionAccumulator(4)
        table.update(y, pred, w * scale)
        assert table.mcc == pytest.approx(sk.matthews_corrcoef(y, pred, sample_weight=w))


def test_quantile_bins_keep_hard_forecasts_apart() -> None:
    p = np.repeat([0.0, 1.0], 50)
    y = np.tile([0, 1], 50)
    assert ece(y, p, strategy="quantile") == pytest.approx(0.5)
    seen, predicted = calibration_curve(y, p, n_bins=10, strategy="quantile")
    curve = reliability(y, p, 10, strategy="quantile")
    np.testing.assert_allclose(curve.observed, seen)
    np.testing.assert_allclose(curve.predicted, predicted)
