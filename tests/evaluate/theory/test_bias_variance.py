"""Bias, variance and noise against closed forms; uncertainty; capacity."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from groundstate import LinearRegression
from groundstate.errors import DataError
from groundstate.evaluate import (
    bias_variance,
    bregman_parts,
    domingos_parts,
    log_parts,
    squared_parts,
    zero_one_parts,
)

x = np.linspace(-1, 1, 20)[:, None]
distribution = (x, lambda x: np.sin(3 * x[:, 0]), 0.3)


def polynomial(degree: int) -> Any:
    return make_pipeline(PolynomialFeatures(degree), LinearRegression())


@pytest.mark.parametrize(("degree", "bias"), [(1, 0.196456), (3, 0.004096), (5, 1.4e-5), (9, 0.0)])
def test_polynomials_on_a_fixed_design(degree: int, bias: float) -> None:
    found = bias_variance(polynomial(degree), distribution)
    means = found.means()
    assert means["bias"] == pytest.approx(bias, abs=1e-6)
    assert means["variance"] == pytest.approx(0.09 * (degree + 1) / 20, abs=1e-9)
    assert means["noise"] == pytest.approx(0.09)
    assert means["total"] == pytest.approx(means["bias"] + means["variance"] + means["noise"])
    drawn = bias_variance(polynomial(degree), distribution, method="monte_carlo", n_datasets=200)
    for name in ("bias", "variance"):
        # the mean of 200 fits is itself off by variance/200
        room = 4 * drawn.errors[name] + means["variance"] / 200
        assert abs(drawn.means()[name] - means[name]) < room + 1e-9
    np.testing.assert_allclose(drawn.total, drawn.bias + drawn.variance + drawn.noise)


def test_one_point() -> None:
    y = np.array([0.0, 2.0])
    parts = squared_parts([[1.0], [2.0], [6.0]], [y.mean()], y.var())
    found = [float(v[0]) for v in parts]
    assert found == pytest.approx([9.666667, 4.0, 4.666667, 1.0], abs=1e-6)
    direct = np.mean([(a - b) ** 2 for a in (1, 2, 6) for b in y])
    assert found[0] == pytest.approx(direct)


def test_uneven_noise_and_random_designs() -> None:
    sigma = lambda x: 0.1 + 0.4 * np.abs(x[:, 0])
    fixed = bias_variance(polynomial(3), (x, distribution[1], sigma))
    np.testing.assert_allclose(fixed.noise, sigma(x) ** 2)
    drawn = bias_variance(
        polynomial(3), (x, distribution[1], sigma), method="monte_carlo", n_datasets=300
    )
    assert drawn.means()["variance"] == pytest.approx(fixed.means()["variance"], rel=0.15)
    fresh = bias_variance(
        DecisionTreeRegressor(random_state=0), (lambda g: g.uniform(-1, 1, (40, 1)), *distribution[1:]),
        n_datasets=50, x_eval=x,
    )  # fmt: skip
    assert fresh.predictions.shape == (50, 20) and fresh.means()["bias"] < 0.02
    assert fresh.means()["variance"] == pytest.approx(0.09, abs=0.05)  # one row in each leaf


def test_a_table_gives_variance_and_the_rest() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 1))
    y = np.sin(3 * X[:, 0]) + 0.3 * rng.normal(size=300)
    found = bias_variance(polynomial(1), X=X, y=y, n_datasets=60)
    assert found.bias is None and found.noise is None
    assert found.means()["bias_and_noise"] == pytest.approx(0.09 + 0.2, abs=0.05)
    assert found.means()["variance"] == pytest.approx(0.29 * 2 / 300, rel=0.6)
    known = bias_variance(polynomial(1), X=X, y=y, n_datasets=60, noise_var=0.09)
    assert known.means()["bias"] == pytest.approx(0.2, abs=0.05)
    grid = np.repeat(np.linspace(-1, 1, 60), 5)[:, None]
    z = np.sin(3 * grid[:, 0]) + 0.3 * rng.normal(size=300)
    repeated = bias_variance(polynomial(1), X=grid, y=z, n_datasets=40)
    assert repeated.means()["noise"] == pytest.approx(0.09, abs=0.02)


def test_zero_one() -> None:
    parts = zero_one_parts([0.9], [0.8])
    assert float(parts.total[0]) == pytest.approx((0.36 + 0.64 + 0.04) / 4)
    assert float(zero_one_parts([0.7], [0.3]).total[0]) == pytest.approx(0.58)
    p, q = np.random.default_rng(1).dirichlet(np.ones(4), (2, 50))
    several = zero_one_parts(p, q)
    np.testing.assert_allclose(several.total, 1 - (p * q).sum(1))
    his = domingos_parts(p, q)
    np.testing.assert_allclose(
        his.total, his.noise_factor * his.noise + his.bias + his.net_variance
    )
    np.testing.assert_allclose(his.total, several.total)
    # two classes: c1 = 2 P(fit says y*) − 1 and the variance counts against or for
    two = domingos_parts([0.9, 0.7], [0.8, 0.3])
    np.testing.assert_allclose(two.noise_factor, [0.6, -0.4])
    np.testing.assert_allclose(two.net_variance, [two.variance[0], -two.variance[1]])
    with pytest.raises(DataError, match="sum to 1"):
        zero_one_parts([[0.5, 0.2]], [[0.5, 0.5]])


def test_log_loss() -> None:
    parts = log_parts([[0.7, 0.3]], [[[0.6, 0.4]], [[0.9, 0.1]]])
    found = [float(v[0]) for v in (parts.total - parts.noise, parts.bias, parts.variance)]
    assert found == pytest.approx([0.087632, 0.020260, 0.067372], abs=1e-6)
    rng = np.random.default_rng(2)
    p, q = rng.dirichlet(np.ones(3), 20), rng.dirichlet(np.ones(3), (9, 20))
    many = log_parts(p, q)
    direct = -(p * np.log(q)).sum(-1).mean(0)
    np.testing.assert_allclose(many.total, direct)
    # Itakura-Saito distance: its dual mean is harmonic
    saito = lambda a, b: a / b - np.log(a / b) - 1
    a, b = rng.uniform(1, 2, 20), rng.uniform(1, 2, (9, 20))
    parts = bregman_parts(a, b, saito, lambda q: 1 / (1 / q).mean(0))
    np.testing.assert_allclose(parts.total, saito(a, b).mean(0))


def test_labels_by_generator_and_table() -> None:
    chance = lambda x: 1 / (1 + np.exp(-3 * x[:, 0]))
    wide = np.linspace(-1, 1, 60)[:, None]
    low = bias_variance(LogisticRegression(), (wide, chance), loss="zero_one", n_datasets=40)
    high = bias_variance(
        DecisionTreeClassifier(random_state=0), (wide, chance), loss="zero_one", n_datasets=40,
        form="domingos",
    )  # fmt: skip
    assert high.means()["variance"] > 2 * low.means()["variance"]
    assert high.domingos is not None
    np.testing.assert_allclose(high.domingos.total, high.total)
    logs = bias_variance(LogisticRegression(), (wide, chance), loss="log", n_datasets=40)
    p = chance(wide)
    entropy = -(p * np.log(p) + (1 - p) * np.log(1 - p)).mean()
    assert logs.means()["noise"] == pytest.approx(entropy) and logs.errors["variance"] > 0
    rng = np.random.default_rng(3)
    y = rng.random(60) < chance(wide)
    for loss in ("zero_one", "log"):
        table = bias_variance(LogisticRegression(), X=wide, y=y, loss=loss, n_datasets=20)
        np.testing.assert_allclose(table.total, table.bias_and_noise + table.variance)


def test_errors() -> None:
    with pytest.raises(DataError, match=r"\(x, f, sigma\)"):
        bias_variance(LinearRegression(), (x, distribution[1]))
    with pytest.raises(ValueError, match="dual_mean"):
        bias_variance(LinearRegression(), distribution, loss=lambda a, b: a)
    with pytest.raises(DataError, match="linear in y"):
        bias_variance(DecisionTreeRegressor(), distribution, method="exact")
    with pytest.raises(DataError, match="two training sets"):
        bias_variance(LinearRegression(), distribution, n_datasets=1)
