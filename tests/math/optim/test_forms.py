"""Critical points, slices through them, and the conditioning of least squares."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from groundstate import optim
from groundstate.errors import DataError

FORMS = {
    "minimum": [[3.0, 2.0], [2.0, 6.0]],
    "maximum": [[-3.0, -2.0], [-2.0, -6.0]],
    "inconclusive": [[1.0, 1.0], [1.0, 1.0]],  # a valley
    "saddle": [[1.0, 0.0], [0.0, -1.0]],
}


@pytest.mark.parametrize("kind", FORMS)
def test_four_quadratic_forms(kind: str) -> None:
    H = torch.tensor(FORMS[kind], dtype=torch.float64)
    for found in (
        optim.classify_critical_point(FORMS[kind]),
        optim.classify_critical_point(lambda x: 0.5 * x @ H @ x, [0.0, 0.0]),
    ):
        assert found.kind == kind
        np.testing.assert_allclose(found.eigenvalues, np.linalg.eigvalsh(FORMS[kind]), atol=1e-12)
        if kind in ("maximum", "saddle"):
            assert found.escape is not None
            assert found.escape @ found.hessian @ found.escape < 0
        else:
            assert found.escape is None


def test_the_second_order_does_not_always_decide() -> None:
    for power in (3, 4):
        found = optim.classify_critical_point(lambda x, p=power: (x**p).sum(), [0.0])
        assert found.kind == "inconclusive" and found.escape is None
    downhill = optim.classify_critical_point(np.diag([-1.0, 0.0]))
    assert downhill.kind == "inconclusive" and downhill.escape is not None


def test_only_critical_points_are_classified() -> None:
    with pytest.raises(ValueError, match="not a critical point.*gradient is 2"):
        optim.classify_critical_point(lambda x: (x**2).sum(), [1.0])
    with pytest.raises(ValueError, match="needs the point x"):
        optim.classify_critical_point(lambda x: x)
    with pytest.raises(ValueError, match="symmetric"):
        optim.classify_critical_point([[1.0, 2.0], [0.0, 1.0]])
    with pytest.raises(ValueError, match="square"):
        optim.classify_critical_point([1.0, 2.0])


def test_slices_have_the_curvature_of_the_form() -> None:
    def f(x: Any) -> Any:
        return torch.sin(x[0]) ** 2 - torch.cosh(x[1]) + x[0] * x[1]

    H = optim.classify_critical_point(f, [0.0, 0.0]).hessian
    u, v = np.array([1.0, 0.2]), np.array([-0.3, 1.0])
    found = optim.slices(f, [0.0, 0.0], u, v)
    np.testing.assert_allclose(found.curvatures, [u @ H @ u, v @ H @ v], rtol=1e-5)
    assert found.curvatures[0] > 0 > found.curvatures[1]  # a saddle
    assert found.U.shape == found.t.shape == (101,) and found.U[50] == found.V[50]
    with pytest.raises(ValueError, match="v must be a nonzero vector"):
        optim.slices(f, [0.0, 0.0], u, [0.0, 0.0])


def rows(n: int = 300) -> np.ndarray:
    rng = np.random.default_rng(0)
    mix = np.array([[1.0, 0.6, 0.2], [0.0, 2.0, 0.5], [0.0, 0.0, 0.3]])
    return rng.normal(size=(n, 3)) @ mix + [5.0, 0.0, -2.0]


def test_centring_zeroes_the_block_beside_the_intercept() -> None:
    X = rows()
    centred, mean = optim.centre(X)
    np.testing.assert_allclose(centred + mean, X)
    H = optim.least_squares_hessian(centred)
    assert np.abs(H[0, 1:]).max() < 1e-14 and H[0, 0] == pytest.approx(1)
    assert np.abs(optim.least_squares_hessian(X)[0, 1:]).max() > 1


def test_condition_falls_from_raw_to_whitened() -> None:
    X = rows()
    centred, _ = optim.centre(X)
    white = optim.ZCAWhitener().fit_transform(X)
    kappa = [optim.hessian_condition(t) for t in (X, centred, centred / centred.std(0), white)]
    assert kappa[0] > kappa[1] > kappa[2] > kappa[3]
    assert kappa[3] == pytest.approx(1, abs=1e-10)
    values = np.linalg.eigvalsh(optim.least_squares_hessian(X))
    assert kappa[0] == pytest.approx(values[-1] / values[0], rel=1e-9)
    assert optim.hessian_condition(np.column_stack([X, X[:, 0]])) == np.inf


def test_whitened_least_squares_takes_one_step() -> None:
    X = rows()
    y = torch.from_numpy(X @ [1.0, -2.0, 3.0] + 4)
    whitener = optim.ZCAWhitener().fit(X)
    white = whitener.transform(X)
    np.testing.assert_allclose(white.T @ white / len(white), np.eye(3), atol=1e-12)
    np.testing.assert_allclose(whitener.matrix_, whitener.matrix_.T, atol=1e-12)
    np.testing.assert_allclose(whitener.inverse_transform(white), X, atol=1e-10)
    design = torch.from_numpy(np.column_stack([np.ones(len(white)), white]))

    def loss(w: Any) -> Any:
        return 0.5 * (y - design @ w).square().mean()

    found = optim.gradient_descent(loss, np.zeros(4), 1.0, tol=1e-8)
    assert found.nit == 1 and found.fun < 1e-20


def test_weights_are_repetitions() -> None:
    X = rows(40)
    weight = np.arange(40) % 3
    again = np.repeat(X, weight, axis=0)
    for f in (
        lambda t, w: optim.centre(t, sample_weight=w)[1],
        lambda t, w: optim.least_squares_hessian(t, sample_weight=w),
        lambda t, w: optim.ZCAWhitener().fit(t, sample_weight=w).matrix_,
    ):
        np.testing.assert_allclose(f(X, weight), f(again, None), rtol=1e-9, atol=1e-12)


def test_dependent_columns_need_eps() -> None:
    X = np.column_stack([rows(), rows()[:, 0]])
    with pytest.raises(DataError, match="linearly dependent.*eps"):
        optim.ZCAWhitener().fit(X)
    assert np.isfinite(optim.ZCAWhitener(1e-3).fit_transform(X)).all()
    with pytest.raises(DataError, match="must be a table"):
        optim.centre([1.0, 2.0])
