"""Skill against a constant answer, a stump and a linear model."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from groundstate.errors import DataError
from groundstate.evaluate import baseline
from groundstate.evaluate.compare.baseline import skill_interval

rng = np.random.default_rng(0)


def test_a_noise_target_has_no_skill() -> None:
    X = rng.normal(size=(400, 3))
    found = baseline(LinearRegression(), X, rng.normal(size=400))
    assert found.skill.low < 0 < found.skill.high
    assert not found.beats_dummy and found.exit_status == 3
    labels = rng.integers(2, size=400)
    found = baseline(LogisticRegression(), X, labels)
    assert found.skill.low <= 0 <= found.skill.high and found.exit_status == 3
    assert "not shown to be better" in str(found)


def test_a_good_model_beats_all() -> None:
    X = rng.normal(size=(600, 2))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)  # no line and no single feature tells it
    found = baseline(DecisionTreeClassifier(max_depth=6, random_state=0), X, y)
    assert [e.name for e in found] == ["model", "dummy", "stump", "linear"]
    assert found.exit_status == 0 and found.skill.low > 0.5
    assert found["linear"].skill.estimate < 0.3 and found["dummy"].skill.estimate == 0
    assert found["dummy"].skill.low == found["dummy"].skill.high == 0
    with pytest.raises(DataError, match="no baseline is called 'x'"):
        found["x"]


def test_skill_is_one_minus_the_ratio_of_test_losses() -> None:
    X = rng.normal(size=(200, 2))
    y = X[:, 0] + rng.normal(size=200)
    split = np.arange(140), np.arange(140, 200)
    found = baseline(LinearRegression(), X, y, split)
    model = LinearRegression().fit(X[:140], y[:140])
    mse = np.square(model.predict(X[140:]) - y[140:]).mean()
    dummy = np.square(y[:140].mean() - y[140:]).mean()
    assert found.skill.estimate == pytest.approx(1 - mse / dummy)
    assert found["model"].loss.estimate == pytest.approx(mse)
    fitted = baseline(model, X, y, split)
    assert fitted.skill.estimate == pytest.approx(found.skill.estimate)


def test_intervals_cover_the_true_skill() -> None:
    """Skill of a given predictor: rows drawn anew cover 1 - E a/E b in about 95 %."""
    generator, hits = np.random.default_rng(3), 0
    for i in range(200):
        z = generator.normal(size=(150, 2))
        a, b = z[:, 0] ** 2, (z[:, 0] + z[:, 1]) ** 2
        found = skill_interval(a, b, n_resamples=500, random_state=i)
        hits += found.low <= 0.5 <= found.high
    assert 0.90 <= hits / 200 <= 0.985


def test_mixed_tables_and_weights() -> None:
    n = 200
    colour = rng.choice(["red", "blue"], n)
    table = pd.DataFrame({"size": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
                          "colour": colour})  # fmt: skip
    y = np.where((colour == "red") ^ (rng.random(n) < 0.1), "yes", "no")
    found = baseline(None, table, y, task="classification")
    assert found["linear"].skill.low > 0 and found["stump"].skill.low > 0
    assert found.to_dict()["entries"][0]["name"] == "dummy"
    X = rng.normal(size=(60, 2))
    target = X[:, 0] + rng.normal(size=60)
    weight = rng.integers(1, 4, 60)
    rows = np.repeat(np.arange(60), weight)
    cut = np.arange(40), np.arange(40, 60)
    place = np.flatnonzero(rows < 40), np.flatnonzero(rows >= 40)
    a = baseline(LinearRegression(), X, target, cut, sample_weight=weight)
    b = baseline(LinearRegression(), X[rows], target[rows], place)
    assert a.skill.estimate == pytest.approx(b.skill.estimate)
    assert a.skill.low == pytest.approx(b.skill.low)


def test_errors() -> None:
    with pytest.raises(ValueError, match="task must be"):
        baseline(None, np.zeros((5, 1)), np.zeros(5))
    with pytest.raises(DataError, match="one loss per row"):
        skill_interval([1.0], [1.0, 2.0])
