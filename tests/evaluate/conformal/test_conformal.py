"""Conformal coverage, calibration, thresholds, and models without labels."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import BayesianRidge, LinearRegression, LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.mixture import GaussianMixture
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

import groundstate as gs
from groundstate.errors import DataError
from groundstate.evaluate import (
    assess_density,
    bayes_threshold,
    conformal,
    conformal_cv,
    fit_temperature,
    recalibrate,
    split,
    threshold_table,
    tune_threshold,
)
from groundstate.evaluate.conformal.scores import class_scores, quantile
from groundstate.evaluate.metrics import ece

LEVEL = 0.9


def line(g: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    x = g.uniform(-1, 1, size=(n, 2))
    return x, x[:, 0] + (0.2 + np.abs(x[:, 1])) * g.normal(size=n)


def blobs(g: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    y = g.choice(3, size=n, p=[0.6, 0.3, 0.1])
    return g.normal(size=(n, 2)) + np.eye(3)[y, :2] * 1.5, y


def covered(make, runs: int = 60) -> float:  # type: ignore[no-untyped-def]
    return float(np.mean([make(np.random.default_rng(s)) for s in range(runs)]))


@pytest.mark.parametrize("score", ["absolute", "normalised"])
@pytest.mark.parametrize("n", [40, 200])
def test_regression_intervals_cover(score: str, n: int) -> None:
    def one(g: np.random.Generator) -> float:
        x, y = line(g, 100 + n + 300)
        model = BayesianRidge().fit(x[:100], y[:100])
        scale = (lambda v: 0.2 + np.abs(v[:, 1])) if score == "normalised" else None
        found = conformal(model, x[100 : 100 + n], y[100 : 100 + n], LEVEL, score, scale=scale)
        return float(found.predict(x[100 + n :]).contains(y[100 + n :]).mean())

    assert LEVEL - 0.015 <= covered(one) <= LEVEL + 0.04


def test_normalised_intervals_are_wide_where_noise_is() -> None:
    g = np.random.default_rng(0)
    x, y = line(g, 900)
    model = LinearRegression().fit(x[:300], y[:300])
    found = conformal(model, x[300:600], y[300:600], score="normalised",
                      scale=lambda v: 0.2 + np.abs(v[:, 1])).predict(x[600:])  # fmt: skip
    width, noise = found.high - found.low, np.abs(x[600:, 1])
    assert np.corrcoef(width, noise)[0, 1] > 0.99
    quiet, loud = noise < 0.3, noise > 0.7
    inside = found.contains(y[600:])
    assert abs(inside[quiet].mean() - inside[loud].mean()) < 0.12
    own = conformal(
        BayesianRidge().fit(x[:300], y[:300]), x[300:600], y[300:600], score="normalised"
    )
    assert own.predict(x[600:]).coverage(y[600:]).estimate > 0.85
    with pytest.raises(DataError, match="need a spread"):
        conformal(model, x, y, score="normalised")


def test_quantile_bands_are_calibrated() -> None:
    g = np.random.default_rng(1)
    x, y = line(g, 2400)
    low, high = (
        GradientBoostingRegressor(loss="quantile", alpha=a, n_estimators=40, max_depth=2,
                                  random_state=0).fit(x[:500], y[:500])
        for a in (0.2, 0.8)
    )  # fmt: skip
    band = conformal((low, high), x[500:1000], y[500:1000]).predict(x[1000:])
    assert band.contains(y[1000:]).mean() == pytest.approx(LEVEL, abs=0.03)
    flat = conformal(LinearRegression().fit(x[:500], y[:500]), x[500:1000], y[500:1000])
    assert band.mean_width < flat.predict(x[1000:]).mean_width


@pytest.mark.parametrize("score", ["lac", "aps"])
def test_class_sets_cover(score: str) -> None:
    def one(g: np.random.Generator) -> float:
        x, y = blobs(g, 600)
        model = GaussianNB().fit(x[:200], y[:200])
        sets = conformal(model, x[200:400], y[200:400], LEVEL, score).predict(x[400:])
        assert (sets.member.sum(1) >= 1).all()
        return float(sets.contains(y[400:]).mean())

    assert covered(one) >= LEVEL - 0.015


def test_randomised_sets_cover_exactly() -> None:
    def one(g: np.random.Generator) -> float:
        x, y = blobs(g, 600)
        model = GaussianNB().fit(x[:200], y[:200])
        found = conformal(model, x[200:400], y[200:400], 0.8, "aps", randomised=True,
                          random_state=int(g.integers(1000)))  # fmt: skip
        return float(found.predict(x[400:]).contains(y[400:]).mean())

    assert covered(one) == pytest.approx(0.8, abs=0.015)


def test_each_class_and_each_group_is_covered() -> None:
    def rare(g: np.random.Generator) -> tuple[float, float]:
        x, y = blobs(g, 1500)
        model = LogisticRegression().fit(x[:300], y[:300])
        both = []
        for by in ("all", "class"):
            sets = conformal(model, x[300:900], y[300:900], LEVEL, by=by).predict(x[900:])
            both.append(float(sets.contains(y[900:])[y[900:] == 2].mean()))
        return both[0], both[1]

    each = np.array([rare(np.random.default_rng(s)) for s in range(30)]).mean(0)
    assert each[0] < 0.8 and each[1] >= LEVEL - 0.02
    g = np.random.default_rng(0)
    x, y = line(g, 3000)
    group = np.where(np.abs(x[:, 1]) > 0.5, "loud", "quiet")
    model = LinearRegression().fit(x[:500], y[:500])
    found = conformal(model, x[500:1500], y[500:1500], by="group", groups=group[500:1500])
    inside = found.predict(x[1500:], group[1500:]).contains(y[1500:])
    for name in ("loud", "quiet"):
        assert inside[group[1500:] == name].mean() == pytest.approx(LEVEL, abs=0.035)
    assert np.isinf(found.predict(x[:1], ["new"]).high[0])
    with pytest.raises(DataError, match="pass groups"):
        found.predict(x[:1])


def test_cv_plus_and_jackknife_plus() -> None:
    def one(g: np.random.Generator) -> float:
        x, y = line(g, 360)
        found = conformal_cv(LinearRegression(), x[:60], y[:60], LEVEL, cv=5)
        return float(found.predict(x[60:]).contains(y[60:]).mean())

    assert LEVEL - 0.015 <= covered(one, 40) <= LEVEL + 0.05
    g = np.random.default_rng(0)
    x, y = line(g, 40)
    found = conformal_cv(LinearRegression(), x[:25], y[:25], LEVEL, cv=25)
    band = found.predict(x[25:])
    ends = []
    for row in x[25:]:  # the definition, row by row
        mid = np.array([m.predict(row[None])[0] for m in found.models])[found.fold]
        ends.append((np.sort(mid - found.scores)[int(26 * 0.1) - 1],
                     np.sort(mid + found.scores)[int(np.ceil(26 * 0.9)) - 1]))  # fmt: skip
    assert np.column_stack([band.low, band.high]) == pytest.approx(np.array(ends))


@pytest.mark.parametrize("score", ["lac", "aps"])
def test_cv_plus_sets(score: str) -> None:
    def one(g: np.random.Generator) -> float:
        x, y = blobs(g, 400)
        found = conformal_cv(KNeighborsClassifier(15), x[:100], y[:100], LEVEL, score, cv=4)
        return float(found.predict(x[100:]).contains(y[100:]).mean())

    assert covered(one, 25) >= LEVEL - 0.015


def test_our_estimators_and_texts() -> None:
    g = np.random.default_rng(0)
    x, y = blobs(g, 400)
    names = np.array(["a", "b", "c"])[y]
    model = gs.LogisticRegression().fit(x[:200], names[:200])
    sets = conformal(model, x[200:300], names[200:300]).predict(x[300:])
    assert sets[0] and set(sets[0]) <= {"a", "b", "c"} and 1 <= sets.mean_size <= 3
    assert sets.coverage(names[300:]).estimate > 0.8
    ridge = gs.Ridge().fit(x[:200], x[:200, 0])
    assert conformal(ridge, x[200:300], x[200:300, 0]).predict(x[300:]).mean_width >= 0
    with pytest.raises(DataError, match="never seen"):
        conformal(model, x[:2], ["a", "z"])
    with pytest.raises(DataError, match="predict_proba"):
        conformal(ridge, x, y, score="lac")
    assert np.isinf(quantile(np.arange(5.0), 0.9))
    p = np.array([[0.5, 0.3, 0.2]])
    assert class_scores(p, "aps") == pytest.approx(np.array([[0.5, 0.8, 1.0]]))


def test_temperature() -> None:
    g = np.random.default_rng(0)
    logits = g.normal(size=(3000, 4)) * 2
    y = (logits + g.gumbel(size=logits.shape)).argmax(1)
    found = fit_temperature(-3 * logits, y)
    assert found.beta == pytest.approx(1 / 3, rel=0.05) and found.after < found.before
    p = found.predict_proba(-3 * logits)
    assert np.array_equal(p.argmax(1), logits.argmax(1))
    near = [
        log_loss(y, softmax(b * 3 * logits, axis=1)) for b in (found.beta * 0.99, found.beta * 1.01)
    ]
    assert log_loss(y, p) < min(near)
    two = logits[:, :2]
    coin = (two + g.gumbel(size=two.shape)).argmax(1)
    cooled = fit_temperature(-5 * two, coin).predict_proba(-5 * two)[:, 1]
    hot = softmax(5 * two, axis=1)[:, 1]
    assert roc_auc_score(coin, cooled) == pytest.approx(roc_auc_score(coin, hot), abs=1e-12)
    assert ece(coin, cooled) < 0.5 * ece(coin, softmax(5 * two, axis=1)[:, 1])
    with pytest.raises(DataError, match="class numbers 0 to 3"):
        fit_temperature(logits, y + 9)


def test_recalibration_never_sees_test_rows() -> None:
    g = np.random.default_rng(0)
    x, y = blobs(g, 600)
    wide = np.hstack([x] * 4)  # naive Bayes counts each column four times
    parts = split(wide, y, (0.4, 0.3, 0.3))
    model = GaussianNB().fit(wide[parts.train], y[parts.train])
    for method in ("temperature", "isotonic", "sigmoid"):
        fixed = recalibrate(model, wide, y, method, split=parts)
        before, after = (log_loss(y[parts.test], m.predict_proba(wide[parts.test]))
                         for m in (model, fixed))  # fmt: skip
        assert after < before
    with pytest.raises(DataError, match="test rows"):
        recalibrate(model, wide, y, split=parts, part="test")


def test_thresholds() -> None:
    g = np.random.default_rng(0)
    x, y = blobs(g, 500)
    y = (y > 0).astype(int)
    model = LogisticRegression().fit(x, y)
    p = model.predict_proba(x)[:, 1]
    table = threshold_table(y, p)
    assert (np.diff(table.recall) <= 0).all() and (np.diff(table.fpr) <= 0).all()
    at = int(np.searchsorted(table.threshold, 0.5))
    assert np.array_equal(p >= 0.5, model.decision_function(x) >= 0)
    assert table.accuracy[at] == pytest.approx(model.score(x, y)) and len(table.to_frame()) == len(
        table
    )
    assert bayes_threshold([[0, 9], [1, 0]]) == pytest.approx(0.9)
    parts = split(x, y)
    cheap = tune_threshold(LogisticRegression(), x, y, cost=[[0, 9], [1, 0]], split=parts)
    eager = tune_threshold(LogisticRegression(), x, y, cost=[[0, 1], [9, 0]], split=parts)
    assert eager.threshold < 0.4 < cheap.threshold and "by costs alone 0.9" in str(cheap)
    kept = tune_threshold(model, x, y, split=parts, part="val", cv="prefit")
    assert kept.classifier.predict(x).shape == (500,)
    with pytest.raises(DataError, match="nothing is tuned on test rows"):
        tune_threshold(LogisticRegression(), x, y, split=parts, part="test")
    with pytest.raises(DataError, match="must cost more"):
        bayes_threshold([[0, 0], [1, 0]])


class Memoriser:
    def __init__(self, rows: np.ndarray) -> None:
        self.rows = rows

    def sample(self, n: int) -> np.ndarray:
        return self.rows[np.arange(n) % len(self.rows)] + 1e-3


def test_models_without_labels() -> None:
    g = np.random.default_rng(0)
    rows = g.normal(size=(1200, 3))
    train, held = rows[:400], rows[400:800]
    model = GaussianMixture(1, random_state=0).fit(train)
    found = assess_density(model, train, held, g.normal(size=(400, 3)), level=0.999)
    assert 0.5 in found.lookalike_auc and not found.memorises
    truth = -1.5 * np.log(2 * np.pi) - 1.5
    assert truth in found.log_likelihood and 0.0 in found.overfit
    assert found.bits_per_dim.estimate == pytest.approx(
        -found.log_likelihood.estimate / 3 / np.log(2)
    )
    copy = assess_density(Memoriser(train), train, held)
    assert copy.memorises and copy.log_likelihood is None and "repeats" in str(copy)
    many = GaussianMixture(40, random_state=0, reg_covar=1e-4).fit(train)
    assert assess_density(many, train, held).overfit.low > 0
    ours = gs.GaussianMixture(2, random_state=0).fit(train)
    assert assess_density(ours, train, held).log_likelihood.low < truth + 0.2
    with pytest.raises(DataError, match="neither score_samples nor sample"):
        assess_density(object(), train, held)
