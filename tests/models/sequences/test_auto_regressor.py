"""Linear autoregression: statsmodels, the equation itself, series that weigh, what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from statsmodels.tsa.ar_model import AutoReg

import groundstate
from groundstate import AutoRegressor
from groundstate.errors import DataError, ShapeError


def drawn(theta: list[float], n: int = 400, c: float = 1.0, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = list(rng.normal(size=len(theta)))
    for _ in range(n):
        x.append(c + sum(t * v for t, v in zip(theta, x[::-1])) + rng.normal())
    return np.array(x)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("theta", [[0.8], [0.5, 0.3], [0.4, -0.3, 0.2, 0.1]])
def test_agrees_with_statsmodels(theta: list[float], intercept: bool) -> None:
    x, p = drawn(theta), len(theta)
    peer = AutoReg(x, p, trend="c" if intercept else "n").fit()
    model = AutoRegressor(p, fit_intercept=intercept).fit(x)
    ours = np.concatenate([[model.intercept_] if intercept else [], model.coef_])
    np.testing.assert_allclose(ours, peer.params, rtol=0, atol=1e-8)
    assert model.noise_variance_ == pytest.approx(peer.sigma2, abs=1e-8)
    assert model.energy(x)[0] == pytest.approx(-peer.llf, abs=1e-7)
    np.testing.assert_allclose(np.sort_complex(model.roots_), np.sort_complex(peer.roots), 1e-8)
    made, theirs = model.forecast(12, level=0.9), peer.get_prediction(len(x), len(x) + 11)
    np.testing.assert_allclose(made.mean, theirs.predicted_mean, atol=1e-8)
    np.testing.assert_allclose(
        np.stack([made.lower, made.upper], 1), theirs.conf_int(alpha=0.1), atol=1e-7
    )


def test_a_shifted_series_loses_no_digits() -> None:
    x = drawn([0.5, 0.3]) + 1e6
    peer = AutoReg(x, 2).fit()
    np.testing.assert_allclose(AutoRegressor(2).fit(x).coef_, peer.params[1:], atol=1e-8)


def test_the_variance_of_the_process() -> None:
    model = AutoRegressor(1).fit(drawn([0.8]))
    model.coef_ = [0.8]
    model.noise_variance_ = 1.0
    assert model.autocovariance()[0] == pytest.approx(2.777778, abs=1e-6)
    far = model.forecast(200)
    wide = (far.upper - far.lower)[-1] / (2 * 1.6448536269514722)
    assert wide**2 == pytest.approx(2.777778, abs=1e-6)


def test_a_constant_series_stays_constant() -> None:
    model = AutoRegressor(2).fit(np.full(50, 3.0))
    made = model.forecast(5)
    np.testing.assert_allclose(made.mean, 3.0, atol=1e-9)
    np.testing.assert_allclose(made.upper - made.lower, 0.0, atol=1e-9)


def test_stationarity_is_read_off_the_roots() -> None:
    assert AutoRegressor(1).fit(drawn([0.8])).is_stationary_
    growing = AutoRegressor(1).fit(1.1 ** np.arange(60.0))
    assert not growing.is_stationary_ and growing.coef_[0] == pytest.approx(1.1, abs=1e-8)
    with pytest.raises(ValueError, match="not stationary"):
        growing.autocovariance()


def test_several_series_share_an_equation_and_weigh() -> None:
    a, b = drawn([0.5, 0.3], 200), drawn([0.5, 0.3], 100, seed=1)
    twice = AutoRegressor(2).fit([a, b, b])
    weighted = AutoRegressor(2).fit([a, b], sample_weight=[1.0, 2.0])
    np.testing.assert_allclose(weighted.coef_, twice.coef_, atol=1e-12)
    assert weighted.noise_variance_ == pytest.approx(twice.noise_variance_, abs=1e-12)
    np.testing.assert_allclose(AutoRegressor(2).fit([b, a, b]).coef_, twice.coef_, atol=1e-12)
    alone = AutoRegressor(2).fit([a, b], sample_weight=[1.0, 0.0])
    np.testing.assert_allclose(alone.coef_, AutoRegressor(2).fit(a).coef_, atol=1e-12)
    assert twice.predict(steps=4).shape == (3, 4) and twice.energy([a, b]).shape == (2,)
    np.testing.assert_allclose(twice.predict([a, b], 4), twice.predict(steps=4)[:2])


def test_forms_of_a_series_agree() -> None:
    x = drawn([0.6])
    expected = AutoRegressor(1).fit(x).predict(steps=3)
    for given in (
        x.tolist(),
        pd.Series(x),
        pd.DataFrame({"x": x}),
        x[:, None],
        [x],
        x[None, :, None],
    ):
        found = AutoRegressor(1).fit(given).predict(steps=3)
        np.testing.assert_allclose(found.reshape(-1), expected, atol=1e-12)
    tensor = torch.from_numpy(x)
    model = AutoRegressor(1).fit(tensor)
    assert isinstance(model.predict(tensor, 3), torch.Tensor)
    single = AutoRegressor(1).fit(tensor.float())
    assert single.coef_.dtype == np.float32
    np.testing.assert_allclose(single.coef_, model.coef_, atol=1e-4)
    assert AutoRegressor(1).fit([1, 2, 3, 5]).predict().shape == (1,)


def test_saved_and_loaded(tmp_path: Path) -> None:
    model = AutoRegressor(2).fit(drawn([0.5, 0.3]))
    again = groundstate.load(model.save(tmp_path / "ar.gs"))
    np.testing.assert_array_equal(again.predict(steps=5), model.predict(steps=5))
    assert again.is_stationary_ and again.score(drawn([0.5, 0.3])) > 0.3
    draws = again.infer({"x": drawn([0.5, 0.3])}, "y", "sample", n=3, random_state=0)
    assert draws.shape == (3, 1, 1)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(DataError, match="series 0 has 3 items, but 3 to look back"):
        AutoRegressor(3).fit([1.0, 2.0, 3.0])
    with pytest.raises(DataError, match="NaN or infinity"):
        AutoRegressor(1).fit([1.0, np.nan, 3.0])
    with pytest.raises(DataError, match="one column, got 2"):
        AutoRegressor(1).fit(np.ones((9, 2)))
    with pytest.raises(DataError, match="holds numbers"):
        AutoRegressor(1).fit(["a", "b"])
    with pytest.raises(ValueError, match="not y"):
        AutoRegressor(1).fit(np.ones(9), np.ones(9))
    with pytest.raises(ValueError, match="'p' parameter"):
        AutoRegressor(0).fit(np.ones(9))
    model = AutoRegressor(2).fit(drawn([0.5, 0.3]))
    with pytest.raises(ShapeError, match="1 columns, got 2"):
        model.predict(np.ones((9, 2)))
    with pytest.raises(DataError, match="has 1 items, a forecast looks back at 2"):
        model.predict([1.0])
    with pytest.raises(ValueError, match="steps"):
        model.forecast(0)


def test_calibrated_bands_hold_their_share_of_what_was_not_learned(tmp_path: Path) -> None:
    x = drawn([0.5, 0.3], 300)
    model = AutoRegressor(60).fit(x[:150])  # two rows for a coefficient
    level, holdout = 0.9, 100
    plain = model.forecast(1, [x[:i] for i in range(202, 302)], level)
    truth = x[202:302]
    inside = (plain.lower[:, 0] <= truth) & (truth <= plain.upper[:, 0])
    assert inside.mean() < 0.8
    assert model.calibrate(x, 1, level, holdout) is model and model.band_ > 1.2
    made = model.forecast(1, [x[:i] for i in range(202, 302)], level)
    np.testing.assert_allclose(made.mean, plain.mean)
    inside = (made.lower[:, 0] <= truth) & (truth <= made.upper[:, 0])
    assert inside.sum() == 91  # the 91st smallest of 100 errors, itself included
    again = groundstate.load(model.save(tmp_path / "ar.gs"))
    np.testing.assert_array_equal(again.forecast(4).upper, model.forecast(4).upper)
    assert model.fit(x).band_ == 1.0
    with pytest.raises(ValueError, match="hold no forecast of 5 steps; use a larger holdout"):
        model.calibrate(x, 5, holdout=3)
