"""A network's prediction is a value and a distribution: mode, mean, curves of probabilities and bands."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import distributions as D

from groundstate import MLPClassifier, MLPRegressor
from groundstate.report.curves import plot_band, plot_probabilities

FIXED: dict[str, Any] = {
    "learning_rate_init": 0.02, "max_iter": 60, "n_iter_no_change": np.inf, "random_state": 0,
}  # fmt: skip
RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (600, 1))


def noisy(x: Any, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    return np.sin(2 * x[:, 0]) + (0.1 + 0.2 * (x[:, 0] > 0)) * rng.normal(size=len(x))


def test_bernoulli_says_one_above_a_half() -> None:
    y = (X[:, 0] + 0.3 * RNG.normal(size=600) > 0).astype(int)
    model = MLPClassifier((10,), "tanh", **FIXED).fit(X, y)
    one = model.predict_proba(X)[:, 1]
    np.testing.assert_array_equal(model.predict(X), one > 0.5)
    logit = model.decision_function(X)
    np.testing.assert_allclose(one, 1 / (1 + np.exp(-logit)), atol=1e-12)
    left, right = plot_probabilities(X, one, logits=logit).axes
    for axis, wanted in ((left, logit), (right, one)):
        drawn = axis.lines[1].get_xydata()
        np.testing.assert_allclose(drawn[:, 1], wanted[np.argsort(X[:, 0])])


def test_categorical_says_the_largest_and_curves_sum_to_one() -> None:
    y = np.digitize(X[:, 0] + 0.3 * RNG.normal(size=600), (-0.7, 0.7))
    model = MLPClassifier((10,), "tanh", **FIXED).fit(X, y)
    distribution = model.predict_dist(X)
    assert isinstance(distribution, D.Categorical)
    np.testing.assert_array_equal(distribution.probs.argmax(1).numpy(), model.predict(X))
    lines = plot_probabilities(X, model.predict_proba(X)).axes[0].lines
    total = sum(line.get_ydata() for line in lines)
    assert len(lines) == 3
    np.testing.assert_allclose(total, 1, atol=1e-12)


@pytest.mark.parametrize("loss", ["squared_error", "normal"])
def test_normal_says_its_mean_and_its_band_covers(loss: str) -> None:
    y = noisy(X, 1)
    model = MLPRegressor(loss, (20,), "tanh", batch_size=50, **FIXED).fit(X, y)
    fresh = np.random.default_rng(2).uniform(-2, 2, (4000, 1))
    told, distribution = model.predict(fresh), model.predict_dist(fresh)
    torch.testing.assert_close(distribution.mean.reshape(-1), torch.as_tensor(told))
    low, high = model.predict_interval(fresh, 0.9).T
    outcome = noisy(fresh, 3)
    assert abs(((outcome >= low) & (outcome <= high)).mean() - 0.9) < 0.04
    std = distribution.stddev.reshape(-1).numpy()
    inside = np.abs(outcome - told) <= 2 * std
    assert abs(inside.mean() - 0.9545) < 0.03
    band = (
        plot_band(fresh, distribution.mean, distribution.stddev)
        .axes[0]
        .collections[0]
        .get_paths()[0]
        .vertices
    )
    assert band[:, 1].max() == pytest.approx((told + 2 * std).max(), rel=1e-6)
    if loss == "normal":  # the width follows x
        assert std[fresh[:, 0] > 0.2].mean() > 2 * std[fresh[:, 0] < -0.2].mean()
