"""The matrix of a kernel as an operator: products, solutions, traces, factors."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch

from groundstate import linalg
from groundstate.errors import NotConverged, ShapeError
from groundstate.math.kernels import RBF, Gram, Kernel, Laplace, Linear, Matern, White

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = RNG.normal(size=(41, 3))
NOISY = RBF(1.3) + White(0.1)
KERNELS: list[Kernel] = [RBF(1.3), NOISY, Matern(0.8, nu=2.5) * 2.0, Linear() + White(0.5)]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("chunk", [None, 7, 60])
def test_products_are_those_of_the_matrix(kernel: Kernel, chunk: int | None) -> None:
    K, dense = Gram(kernel, X, chunk=chunk), np.asarray(kernel(X))
    V = RNG.normal(size=(60, 4))
    np.testing.assert_allclose(K @ V, dense @ V, rtol=0, atol=1e-10)
    np.testing.assert_allclose(K.rmatvec(V[:, 0]), dense @ V[:, 0], rtol=0, atol=1e-10)
    np.testing.assert_allclose(K.diag(), np.diagonal(dense), rtol=0, atol=1e-12)
    np.testing.assert_allclose(K.to_dense(), dense, rtol=0, atol=1e-12)
    across, both = Gram(kernel, X, Y, chunk), np.asarray(kernel(X, Y))
    W = RNG.normal(size=(41, 2))
    assert across.shape == (60, 41) and across.T.shape == (41, 60)
    np.testing.assert_allclose(across @ W, both @ W, rtol=0, atol=1e-10)
    np.testing.assert_allclose(across.T @ V, both.T @ V, rtol=0, atol=1e-10)
    np.testing.assert_allclose(across.rmatvec(V.T), V.T @ both, rtol=0, atol=1e-10)
    np.testing.assert_allclose(across.diag(), np.diagonal(both), rtol=0, atol=1e-12)


def test_tensors_stay_tensors_and_have_gradients() -> None:
    x = torch.from_numpy(X[:8]).requires_grad_()
    v = torch.from_numpy(RNG.normal(size=(8, 2))).requires_grad_()
    out = Gram(NOISY, x, chunk=3) @ v
    assert isinstance(out, torch.Tensor)
    torch.testing.assert_close(out, NOISY(x) @ v)
    assert torch.autograd.gradcheck(lambda a, b: Gram(NOISY, a, chunk=3) @ b, (x, v))
    stacked = torch.randn(5, 8, 2, dtype=torch.float64)
    each = torch.stack([Gram(NOISY, x) @ one for one in stacked])
    torch.testing.assert_close(Gram(NOISY, x) @ stacked, each, rtol=0, atol=1e-12)


def test_solutions() -> None:
    B = RNG.normal(size=(60, 2))
    K = Gram(NOISY, X, chunk=11)
    np.testing.assert_allclose(K.solve(B, tol=1e-12), np.linalg.solve(NOISY(X), B), atol=1e-8)
    np.testing.assert_allclose(K.solve(B[:, 0]), K.solve(B)[:, 0], atol=1e-6)
    with pytest.warns(NotConverged, match="above tol=1e-14; add noise"):
        Gram(RBF(3.0), X, rank=1).solve(B, tol=1e-14, max_iter=2)


def test_pivoted_cholesky_leaves_the_trace() -> None:
    K = Gram(Laplace(1.0), X)
    for rank in (1, 5, 20, 60):
        L, chosen = K.pivoted_cholesky(rank)
        left = K.to_dense() - L @ L.T
        assert L.shape == (60, rank) and len(set(chosen.tolist())) == rank
        assert np.linalg.eigvalsh(left).min() > -1e-10  # the trace norm is then the trace
        error = np.abs(np.linalg.eigvalsh(left)).sum()
        assert error == pytest.approx(K.trace() - (L**2).sum(), abs=1e-9)
    assert len(Gram(Linear(), X).pivoted_cholesky(60)[1]) == 3  # the rank of the matrix


def test_nystrom_is_exact_on_its_landmarks() -> None:
    K = Gram(RBF(1.0), X)
    at = np.array([3, 17, 40])
    L = K.nystrom(at)
    np.testing.assert_allclose((L @ L.T)[at], K.to_dense()[at], atol=1e-6)
    assert np.linalg.eigvalsh(K.to_dense() - L @ L.T).min() > -1e-6
    whole = K.nystrom(60)
    np.testing.assert_allclose(whole @ whole.T, K.to_dense(), atol=1e-5)
    np.testing.assert_array_equal(K.nystrom(9, random_state=1), K.nystrom(9, random_state=1))
    chosen, factor = K.pivoted_cholesky(6)[1], K.pivoted_cholesky(6)[0]
    same = K.nystrom(chosen)  # the pivoted factor is Nyström's on its own rows
    np.testing.assert_allclose(same @ same.T, factor @ factor.T, atol=1e-6)


def test_traces() -> None:
    K = Gram(NOISY, X)
    assert K.trace() == pytest.approx(66.0)
    assert K.trace(probes=4000, random_state=0) == pytest.approx(66.0, rel=0.02)
    exact = np.trace(np.linalg.inv(NOISY(X)))
    assert K.inverse_trace(4000, random_state=0) == pytest.approx(exact, rel=0.02)


def test_log_determinant_of_two_thousand_rows_within_one_percent() -> None:
    rows = np.random.default_rng(1).normal(size=(2000, 2))
    kernel = RBF(0.5) + White(0.1)
    exact = np.linalg.slogdet(kernel(rows))[1]
    for seed in range(3):
        found = Gram(kernel, rows, chunk=500).logdet(random_state=seed)
        assert found == pytest.approx(exact, rel=0.01)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Gram(RBF(), X, Y[:, :2]), "rows of one width"),
        (lambda: Gram(RBF(), np.zeros((0, 2))), "at least one row"),
        (lambda: Gram(RBF(), X, chunk=0), "chunk must be at least 1"),
        (lambda: Gram(RBF(), [[np.nan]]), "X holds NaN"),
        (lambda: Gram(RBF(), X) @ np.ones(5), "x must have 60 entries"),
        (lambda: Gram(RBF(), X, Y).solve(np.ones(60)), "leave Y out"),
        (lambda: Gram(RBF(), X).nystrom(61), "60 rows to choose landmarks from, got 61"),
    ],
)
def test_errors_teach(make: Any, message: str) -> None:
    with pytest.raises((ValueError, ShapeError), match=message):
        make()


def test_float32_stays() -> None:
    K = Gram(NOISY, X.astype(np.float32))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (K @ np.ones(60, np.float32)).dtype == np.float32
        assert K.solve(np.ones(60, np.float32), tol=1e-4).dtype == np.float32


def test_it_is_a_linear_operator_like_any_other() -> None:
    square, across = Gram(NOISY, X, chunk=13), Gram(RBF(1.3), X, Y, chunk=13)
    for K in (square, across, across.H @ square, 2.0 * square + square):
        linalg.dot_test(K)
    dense, both = square.to_dense(), across.to_dense()
    np.testing.assert_allclose((across.H @ square).to_dense(), both.T @ dense, atol=1e-10)
    np.testing.assert_allclose((square - 0.5 * square).to_dense(), 0.5 * dense, atol=1e-12)
    shifted = square + linalg.LinearOperator.of(np.eye(60))
    b = RNG.normal(size=60)
    expected = np.linalg.solve(dense + np.eye(60), b)
    np.testing.assert_allclose(shifted.solve(b), expected, atol=1e-8)
    np.testing.assert_allclose(linalg.solve(square, b)[0], np.linalg.solve(dense, b), atol=1e-8)
    assert shifted.trace() == pytest.approx(np.trace(dense) + 60)
    assert shifted.trace(2000, random_state=0) == pytest.approx(np.trace(dense) + 60, rel=0.02)
    with pytest.raises(ShapeError, match="square operator"):
        across.trace()


def test_few_rows_are_factored_and_more_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    b = RNG.normal(size=(60, 2))
    exact = Gram(NOISY, X).solve(b)
    monkeypatch.setattr("groundstate.math.kernels.gram.DENSE", 0)
    np.testing.assert_allclose(Gram(NOISY, X).solve(b, tol=1e-12), exact, atol=1e-9)
