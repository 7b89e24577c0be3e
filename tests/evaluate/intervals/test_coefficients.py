"""Standard errors, tests and measures of fit."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
import scipy.stats
from sklearn.metrics import d2_tweedie_score

from groundstate import (
    GLM,
    KNeighborsRegressor,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
)
from groundstate.errors import DataError, Unreliable, Unsupported
from groundstate.evaluate import d2, inference, mcfadden_r2, r2
from groundstate.math.distributions import NegativeBinomial
from groundstate.math.stats import nested_f_test

X = np.arange(4.0)[:, None]
Y = np.array([1.0, 2.0, 2.0, 4.0])
LX, LY = np.array([[-1.0], [0.0], [1.0], [2.0]]), np.array([0, 1, 0, 1])
COUNTS = np.array([1, 2, 3, 6])
rng = np.random.default_rng(0)


def test_least_squares_toy() -> None:
    table = inference(LinearRegression().fit(X, Y), X, Y)
    np.testing.assert_allclose(table.estimate, [0.9, 0.9])
    np.testing.assert_allclose(table.se, [0.494975, 0.264575], atol=1e-6)
    np.testing.assert_allclose(table.statistic, [1.818275, 3.401680], atol=1e-6)
    np.testing.assert_allclose(table.p_value, [0.210648, 0.076620], atol=1e-6)
    assert np.isclose(table.log_likelihood, -2.189816, atol=1e-6)
    assert np.isclose(table.f_test[0], 11.571429) and np.isclose(table.sse, 0.7)
    # conf_int: t quantile of 2 degrees of freedom is 4.302653
    np.testing.assert_allclose(
        table.conf_int()[1], 0.9 + np.r_[-1, 1] * 4.302653 * table.se[1], 1e-6
    )


def test_logistic_toy_by_both_roads() -> None:
    for model in (LogisticRegression(C=np.inf, tol=1e-8), GLM("bernoulli", tol=1e-8)):
        table = inference(model.fit(LX, LY), LX, LY)
        np.testing.assert_allclose(table.se, [1.242932, 1.085192], atol=1e-5)
        np.testing.assert_allclose(table.lr_test, [0.850204, 0.356495], atol=1e-5)
        assert np.isclose(table.log_likelihood, -2.347487, atol=1e-6) and table.kind == "z"


def test_poisson_toy_table_and_frame() -> None:
    table = inference(GLM("poisson").fit(X, COUNTS), X, COUNTS)
    np.testing.assert_allclose(table.se, [0.702306, 0.295493], atol=1e-5)
    frame = table.to_frame()
    assert frame.columns == ["parameter", "estimate", "se", "z", "p", "low", "high"]
    assert frame["parameter"].to_list() == ["intercept", "x0"]
    assert "intercept" in repr(table) and "likelihood ratio" in str(table)


def test_more_classes_and_the_numeric_hessian() -> None:
    rows = rng.normal(size=(120, 2))
    labels = rng.integers(3, size=120)
    model = LogisticRegression(C=np.inf, tol=1e-9).fit(rows, labels)
    table = inference(model, rows, labels)
    assert table.names[0] == "1: intercept" and len(table.se) == 6
    design = np.column_stack([np.ones(120), rows])

    def loss(theta: np.ndarray) -> float:
        score = np.column_stack([np.zeros(120), design @ theta.reshape(2, 3).T])
        return float((np.log(np.exp(score).sum(1)) - score[np.arange(120), labels]).sum())

    h, k = 1e-4, 6
    eye = np.eye(k) * h
    hessian = np.array([[
        (loss(table.estimate + eye[a] + eye[b]) - loss(table.estimate + eye[a] - eye[b])
         - loss(table.estimate - eye[a] + eye[b]) + loss(table.estimate - eye[a] - eye[b]))
        / (4 * h * h) for b in range(k)] for a in range(k)])  # fmt: skip
    np.testing.assert_allclose(table.covariance, np.linalg.inv(hessian), rtol=1e-4, atol=1e-6)


def test_weights_are_rows_and_sparse_is_dense() -> None:
    rows, w = rng.normal(size=(50, 3)), rng.integers(1, 4, 50)
    y = rng.poisson(np.exp(0.3 * rows[:, 0]))
    index = np.repeat(np.arange(50), w)
    a = inference(GLM("poisson", tol=1e-9).fit(rows, y, w), rows, y, w)
    b = inference(GLM("poisson", tol=1e-9).fit(rows[index], y[index]), rows[index], y[index])
    np.testing.assert_allclose(a.se, b.se)
    np.testing.assert_allclose([a.aic, a.bic, *a.lr_test], [b.aic, b.bic, *b.lr_test])
    sparse = scipy.sparse.csr_array(rows)
    c = inference(GLM("poisson", tol=1e-9).fit(sparse, y, w), sparse, y, w)
    np.testing.assert_allclose(a.se, c.se)
    a = inference(LinearRegression().fit(rows, y, w), rows, y, w)
    b = inference(LinearRegression().fit(rows[index], y[index]), rows[index], y[index])
    np.testing.assert_allclose(a.se, b.se)
    np.testing.assert_allclose(a.f_test, b.f_test)


def test_far_columns_keep_their_digits() -> None:
    near, far = (inference(GLM("poisson").fit(x, COUNTS), x, COUNTS) for x in (X, X + 1e9))
    np.testing.assert_allclose(far.se[1], near.se[1], rtol=1e-6)
    np.testing.assert_allclose(far.se[0], 1e9 * near.se[1], rtol=1e-6)


def test_intervals_cover() -> None:
    hits = []
    for seed in range(120):
        g = np.random.default_rng(seed)
        rows = g.normal(size=(80, 1))
        y = g.poisson(np.exp(0.2 + 0.5 * rows[:, 0]))
        low, high = inference(GLM("poisson").fit(rows, y), rows, y).conf_int()[1]
        hits.append(low <= 0.5 <= high)
    assert 0.9 <= np.mean(hits) <= 0.99


def test_a_zero_slope_is_called_significant_as_often_as_said() -> None:
    p = []
    for seed in range(120):
        g = np.random.default_rng(seed)
        rows, y = g.normal(size=(60, 1)), g.gamma(2.0, size=60)
        p.append(inference(GLM("gamma", "log").fit(rows, y), rows, y).p_value[1])
    assert scipy.stats.kstest(p, "uniform").pvalue > 0.001


def test_offset_and_nested_tables() -> None:
    rows = rng.normal(size=(60, 3))
    exposure = rng.uniform(0.5, 3, 60)
    y = rng.poisson(exposure * np.exp(0.2 + 0.3 * rows[:, 0]))
    model = GLM(NegativeBinomial(0.2)).fit(rows, y, offset=np.log(exposure))
    table = inference(model, rows, y, offset=np.log(exposure))
    assert table.lr_test[0] > 0 and len(table.se) == 4
    z = rows[:, 0] + rng.normal(size=60)
    small, big = (inference(LinearRegression().fit(r, z), r, z) for r in (rows[:, :1], rows))
    found = nested_f_test(small.sse, small.df_resid, big.sse, big.df_resid)
    assert found.df == (2, 56) and 0 < found.pvalue < 1


def test_refusals_say_why() -> None:
    with pytest.raises(ValueError, match="penalty.*alpha=0"):
        inference(PoissonRegressor().fit(X, COUNTS), X, COUNTS)
    with pytest.raises(ValueError, match="penalty"):
        inference(Ridge().fit(X, Y), X, Y)
    with pytest.raises(ValueError, match="penalty"):
        inference(LogisticRegression().fit(LX, LY), LX, LY)
    twice = np.column_stack([X, X])
    with pytest.raises(ValueError, match="singular.*x0"):
        inference(GLM("poisson").fit(twice, COUNTS), twice, COUNTS)
    with pytest.raises(ValueError, match="rows.*of the fit"):
        inference(GLM("poisson").fit(X, COUNTS), X[::-1], COUNTS)
    with pytest.raises(Unsupported, match="bootstrap"):
        inference(KNeighborsRegressor(2).fit(X, Y), X, Y)
    with pytest.raises(ValueError, match="no freedom"):
        inference(LinearRegression().fit(X[:2], Y[:2]), X[:2], Y[:2])
    with pytest.raises(ValueError, match="level"):
        inference(LinearRegression().fit(X, Y), X, Y).conf_int(1.0)


def test_three_forms_of_r2_agree_for_least_squares_alone() -> None:
    f = LinearRegression().fit(X, Y).predict(X)
    forms = ("residual", "explained", "pearson")
    np.testing.assert_allclose([r2(Y, f, form) for form in forms], 0.852632, atol=1e-6)  # type: ignore[arg-type]
    told = [r2(Y, f + 1, form) for form in forms]  # type: ignore[arg-type]
    assert len(set(np.round(told, 6))) == 3
    with pytest.warns(Unreliable, match="constant"):
        assert np.isnan(r2([1, 1], [0, 1]))
    with pytest.raises(ValueError, match="form"):
        r2(Y, f, "adjusted")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="same length"):
        r2(Y, f[:2])


def test_d2_and_mcfadden() -> None:
    mu = np.array([1.0, 2.0, 3.0, 5.0])
    for power, family in ((0, "gaussian"), (1, "poisson"), (2, "gamma")):
        assert np.isclose(d2(COUNTS, mu, family), d2_tweedie_score(COUNTS, mu, power=power))
    model = LogisticRegression(C=np.inf, tol=1e-8).fit(LX, LY)
    assert np.isclose(mcfadden_r2(model, LX, LY), 0.153323, atol=1e-6)
    assert np.isclose(mcfadden_r2(model, LX, LY, np.full(4, 2.0)), 0.153323, atol=1e-6)
    with pytest.warns(Unreliable, match="constant"):
        assert np.isnan(d2([1, 1], [1, 2]))
    with pytest.warns(Unreliable, match="single class"):
        assert np.isnan(mcfadden_r2(model, LX[:1], LY[:1]))
    with pytest.raises(DataError, match="probabilities"):
        mcfadden_r2(LinearRegression().fit(X, Y), X, Y)


def test_a_model_behind_a_preparation_is_asked_about_its_own_columns() -> None:
    from groundstate import LinearRegression
    from groundstate.models.tables.table import TablePredictor

    rng = np.random.default_rng(3)
    rows = {"size": rng.normal(5, 2, 80), "age": rng.normal(40, 9, 80)}
    y = rows["size"] - 0.2 * rows["age"] + rng.normal(size=80)
    model = TablePredictor(LinearRegression()).fit(rows, y)
    found = inference(model, rows, y)
    assert found.names == ("intercept", "size", "age")
    raw = np.stack([rows["size"], rows["age"]], 1)
    plain = inference(LinearRegression().fit(raw, y), raw, y)
    # a standardised column has the same t, and its coefficient per standard deviation
    np.testing.assert_allclose(found.statistic[1:], plain.statistic[1:], rtol=1e-6)
    np.testing.assert_allclose(found.estimate[1:], plain.estimate[1:] * raw.std(0), rtol=1e-6)
