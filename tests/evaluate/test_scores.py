"""Scores, seeds, pipeline bootstrap, sources of spread."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDRegressor
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeRegressor

from groundstate.errors import DataError
from groundstate.evaluate import (
    Scores,
    cross_validate,
    pipeline_bootstrap,
    retrain,
    split,
    variation_report,
)
from groundstate.evaluate.audit.ledger import adjust
from groundstate.evaluate.metrics import bounds_of
from groundstate.math.stats import Interval, Region

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 3))
y = X[:, 0] + rng.normal(size=200)
label = (y > 0).astype(int)


def test_scores_are_arrays_that_say_how_sure_they_are() -> None:
    values = rng.normal(0.9, 0.02, size=12)
    scores = Scores(values, ("seed",), "accuracy")
    assert np.array_equal(np.asarray(scores), values) and scores[3] == values[3]
    assert (
        len(scores) == 12
        and list(scores) == list(values)
        and np.asarray(scores).mean() == scores.mean
    )
    assert scores.std == pytest.approx(values.std(ddof=1))
    assert (
        str(scores).startswith("accuracy 0.8998")
        and " to " in str(scores)
        and " to " in repr(scores)
    )
    assert f"{scores}" == str(scores)
    counts, edges = scores.hist(5)
    assert counts.sum() == 12 and len(edges) == 6
    again = Scores.from_json(scores.to_json())
    assert again.to_dict() == scores.to_dict() and np.array_equal(again.values, scores.values)
    low, high = scores.interval(0.9)
    assert low < scores.mean < high
    assert scores.interval(method="bootstrap").width < scores.interval(method="t").width
    assert scores.interval(method="eti").low >= values.min()
    with pytest.raises(ValueError):
        scores.values[0] = 1.0
    with pytest.raises(DataError, match="one value has no interval"):
        Scores([0.5]).interval()
    assert "no interval" in str(Scores([0.5]))
    with pytest.raises(DataError, match="as many names"):
        Scores([[1.0, 2.0]], ("seed",))
    with pytest.raises(DataError, match="not stored scores"):
        Scores.from_dict({"values": [1.0]})


def test_fold_scores_get_the_corrected_error() -> None:
    d = [0.02, 0.01, 0.03, 0, 0.02, 0.04, 0.01, 0.02, 0.03, 0.02]
    folds = Scores(d, ("fold",), n_train=90, n_test=10)
    assert folds.mean / folds.standard_error == pytest.approx(3.7697, abs=1e-4)
    assert folds.interval().method == "corrected t"
    naive = folds.interval(method="t", unsafe=True)
    assert folds.interval().width > naive.width
    assert folds.mean / ((naive.high - folds.mean) / 2.262157) == pytest.approx(5.4772, abs=1e-4)
    with pytest.raises(DataError, match="unsafe=True"):
        folds.interval(method="t")


def test_two_peaks_get_a_region() -> None:
    g = np.random.default_rng(1)
    two = Scores(np.r_[g.normal(0.2, 0.02, 400), g.normal(0.8, 0.02, 400)])
    region = two.credible()
    assert two.is_bimodal and isinstance(region, Region) and len(region) == 2
    assert region.total == pytest.approx(0.1568, abs=0.03) and " or " in str(region)
    assert tuple(two.interval(method="eti")) == pytest.approx((0.1671, 0.8329), abs=0.01)
    one = Scores(g.normal(0.5, 0.1, 400))
    assert not one.is_bimodal and isinstance(one.credible(), Interval)
    assert not Scores(np.ones(20)).is_bimodal


def test_seeds() -> None:
    parts = split(X, label, (0.7, 0.3))
    found = retrain(LinearRegression(), X, y, parts)
    assert found.n_fits == 1 and found.scores.std == 0 and found.deterministic
    assert "same for every seed" in str(found)
    forest = RandomForestClassifier(3, max_depth=3)
    found = retrain(forest, X, label, parts, seeds=8, repeat_same_seed=2)
    assert found.n_fits == 10 and found.scores.std > 0 and found.hardware_sd == 0
    assert 0 < found.disagreement < 0.5 and found.relative_sd > 0
    again = retrain(forest, X, label, parts, seeds=8)
    assert np.array_equal(found.scores.values, again.scores.values)
    tree = DecisionTreeRegressor(max_features=1, max_depth=4)
    moved = retrain(tree, X, y, parts, seeds=4)
    said = moved.predictions
    apart = [np.abs(said[i] - said[j]).mean() for i in range(4) for j in range(i)]
    assert moved.disagreement == pytest.approx(np.mean(apart))


def test_error_of_a_quantile_falls_as_root_m() -> None:
    g = np.random.default_rng(2)
    spread = [np.quantile(g.normal(size=(2000, m)), 0.9, axis=1).std() for m in (100, 400)]
    assert spread[0] / spread[1] == pytest.approx(2.0, rel=0.15)


def test_pipeline_bootstrap_of_random_labels() -> None:
    totals = {"oob": [], "632": [], "632+": [], "resplit": []}
    shares = []
    for seed in range(5):
        g = np.random.default_rng(seed)
        x, coin = g.normal(size=(200, 2)), g.integers(2, size=200)
        for how, values in totals.items():
            found = pipeline_bootstrap(
                KNeighborsClassifier(1), x, coin, n=20, evaluate=how, random_state=seed
            )
            values.append(found.estimate)
            if how == "resplit":
                shares.append(found.duplicates)
                assert found.leaky and str(found).startswith("LEAKY")
    means = {how: np.mean(values) for how, values in totals.items()}
    assert means["oob"] == pytest.approx(0.4995, abs=0.03)
    assert means["632"] == pytest.approx(0.316, abs=0.02)
    assert means["632+"] == pytest.approx(0.498, abs=0.03)
    assert means["resplit"] == pytest.approx(0.227, abs=0.03)
    assert np.mean(shares) == pytest.approx(0.547, abs=0.015)
    assert 1 - math.exp(-0.8) == pytest.approx(0.5507, abs=1e-4)


def test_pipeline_bootstrap_leaves_rows_and_groups_out() -> None:
    found = pipeline_bootstrap(LinearRegression(), X, y, n=40)
    assert len(found.scores) == 40 and found.duplicates == 0
    assert found.estimate == pytest.approx(found.scores.mean, rel=0.05)
    people = np.repeat(np.arange(100), 2)
    twice = np.repeat(rng.normal(size=(100, 2)), 2, axis=0)
    coin = np.repeat(rng.integers(2, size=100), 2)
    leak = pipeline_bootstrap(KNeighborsClassifier(1), twice + 1e-6 * rng.normal(size=(200, 2)), coin,
                              n=20)  # fmt: skip
    fair = pipeline_bootstrap(KNeighborsClassifier(1), twice + 1e-6 * rng.normal(size=(200, 2)), coin,
                              n=20, groups=people)  # fmt: skip
    assert fair.estimate == pytest.approx(0.5, abs=0.1) and leak.estimate < 0.3
    plus = pipeline_bootstrap(LinearRegression(), X, y, n=40, evaluate="632+")
    assert plus.train < plus.estimate < plus.oob < plus.no_information
    with pytest.raises(ValueError, match="evaluate must be"):
        pipeline_bootstrap(LinearRegression(), X, y, evaluate="magic")


def test_spread_by_source() -> None:
    fixed = variation_report(LinearRegression(), X, y, bootstraps=6)
    assert fixed.seed == 0 and fixed.interaction == 0 and fixed.scores.values.shape == (6, 1)
    label_fit = variation_report(LogisticRegression(), X, label, bootstraps=8)
    p = label_fit.scores.mean
    assert label_fit.test == pytest.approx(math.sqrt(p * (1 - p) / 50), rel=0.2)
    forest = variation_report(
        DecisionTreeRegressor(max_features=1, max_depth=3), X, y, seeds=5, bootstraps=5
    )
    assert forest.interaction > 0 and "sd by source" in str(forest) and forest.advice
    assert forest.total == pytest.approx(
        math.sqrt(forest.test**2 + forest.seed**2 + forest.train**2 + forest.interaction**2)
    )


def test_parts_add_in_quadrature() -> None:
    def table(g: np.random.Generator, n: int = 30) -> tuple[np.ndarray, np.ndarray]:
        x = g.normal(size=(n, 4))
        return x, x @ [1.0, -1.0, 0.5, 0.0] + g.normal(size=n)

    model = SGDRegressor(max_iter=2, tol=None, eta0=0.08, learning_rate="constant", penalty=None)
    # one small test set has a lucky or unlucky spread of losses: average over several
    reports = [variation_report(model, generator=table, seeds=8, bootstraps=12, random_state=s)
               for s in range(10)]  # fmt: skip
    predicted = math.sqrt(np.mean([r.total**2 for r in reports]))
    g = np.random.default_rng(7)
    found = []
    for i in range(500):
        x, t = table(g)
        x2, t2 = table(g)
        fit = SGDRegressor(max_iter=2, tol=None, eta0=0.08, learning_rate="constant", penalty=None,
                           random_state=i).fit(x, t)  # fmt: skip
        found.append(np.mean((fit.predict(x2) - t2) ** 2))
    assert predicted == pytest.approx(np.std(found), rel=0.15)
    assert all(r.seed < r.test for r in reports)


@pytest.mark.parametrize("method", ["auto", "t", "normal"])
def test_no_interval_leaves_the_values_a_metric_can_take(method: str) -> None:
    near = Scores([1.0, 0.9, 1.0, 0.8, 1.0], ("fold",), "accuracy", 80.0, 20.0)
    found = near.interval(method=method, unsafe=True)
    assert found.low < found.estimate < found.high == 1.0
    small = Scores([0.1, 0.0, 0.2], ("seed",), "zero_one").interval()
    assert small.low == 0.0
    assert Scores([1.0, 0.9, 1.2], ("seed",), "own").interval().high > 1.2  # nothing is known


def test_cross_validation_of_a_classifier_ends_at_one() -> None:
    X = np.r_[np.zeros(20), np.ones(20)][:, None] + 0.01 * np.arange(40)[:, None] % 0.3
    y = np.repeat([0, 1], 20)
    y[0] = 1
    found = cross_validate(LogisticRegression(), X, y, cv=5)
    assert found.scores.metric == "accuracy" and "to 1)" in str(found)


def test_an_interval_after_many_looks_ends_at_one_too() -> None:
    area = Interval(0.97, 0.93, 0.995)
    wide = adjust(area, 20, bounds=bounds_of("roc_auc")).simultaneous
    assert wide.high == 1.0 and wide.low < 0.93
