"""Mahalanobis distances, and what is a metric."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.spatial.distance import jensenshannon
from scipy.spatial.distance import mahalanobis as scipy_mahalanobis
from scipy.stats import chi2, kstest
from sklearn.covariance import EmpiricalCovariance

from groundstate.math.distances import check_metric, chi2_pvalue, mahalanobis
from groundstate.math.distances.mahalanobis import scaled_squares

RNG = np.random.default_rng(0)
A0 = np.array([[3.0, 1.0], [1.0, 2.0]])
X = RNG.normal(size=(40, 3)) @ RNG.normal(size=(3, 3))
S = np.cov(X.T)


def test_worked_numbers() -> None:
    diag = np.diag([4.0, 1.0])
    assert mahalanobis([[2.0, 0.0], [0.0, 2.0]], [0.0, 0.0], cov=diag).tolist() == [1.0, 2.0]
    assert mahalanobis([[1.0, 1.0]], [0.0, 0.0], cov=A0)[0] == pytest.approx(0.7745967, abs=1e-7)
    Y = X[:5]
    euclid = np.linalg.norm(X[:, None] - Y, axis=2)
    np.testing.assert_allclose(mahalanobis(X, Y, cov=np.eye(3)), euclid, atol=1e-12)
    # one standard deviation for all directions: |x - m|/σ
    np.testing.assert_allclose(
        mahalanobis(X, X.mean(0), cov=4 * np.eye(3)), np.linalg.norm(X - X.mean(0), axis=1) / 2
    )


def test_agrees_with_scipy_and_scikit_learn() -> None:
    P = np.linalg.inv(S)
    ours = mahalanobis(X[:6], X[10:14], cov=S)
    peer = [[scipy_mahalanobis(a, b, P) for b in X[10:14]] for a in X[:6]]
    np.testing.assert_allclose(ours, peer, atol=1e-10)
    np.testing.assert_allclose(mahalanobis(X[:6], X[10:14], precision=P), peer, atol=1e-10)
    fitted = EmpiricalCovariance().fit(X)
    np.testing.assert_allclose(mahalanobis(X) ** 2, fitted.mahalanobis(X), atol=1e-10)


def test_invariance_and_whitening() -> None:
    B, c = RNG.normal(size=(3, 3)) + 2 * np.eye(3), RNG.normal(size=3)
    np.testing.assert_allclose(mahalanobis(X @ B.T + c), mahalanobis(X), atol=1e-9)
    J = np.linalg.inv(np.linalg.cholesky(S))
    Z = X @ J.T
    np.testing.assert_allclose(
        mahalanobis(X, X, cov=S), np.linalg.norm(Z[:, None] - Z, axis=2), atol=1e-9
    )
    np.testing.assert_allclose(mahalanobis(X, X, J=J), mahalanobis(X, X, cov=S), atol=1e-9)


def test_low_rank_is_a_pseudometric() -> None:
    J = np.array([[1.0, -1.0]])
    assert mahalanobis([[5.0, 5.0], [1.0, 0.0]], [0.0, 0.0], J=J).tolist() == [0.0, 1.0]
    M = J.T @ J
    found = mahalanobis([[5.0, 5.0], [1.0, 0.0]], [0.0, 0.0], precision=M, pinv=True)
    np.testing.assert_allclose(found, [0.0, 1.0], atol=1e-12)
    flat = np.column_stack([X[:, :2], X[:, 0] + X[:, 1]])
    with pytest.raises(ValueError, match="cov is singular.*pinv=True"):
        mahalanobis(flat)
    np.testing.assert_allclose(mahalanobis(flat, pinv=True), mahalanobis(X[:, :2]), atol=1e-6)
    with pytest.raises(ValueError, match="not positive definite"):
        mahalanobis(X[:, :2], [0.0, 0.0], precision=M)
    with pytest.raises(ValueError, match="negative eigenvalue"):
        mahalanobis(X[:, :2], [0.0, 0.0], precision=-np.eye(2), pinv=True)


def test_p_values_are_uniform_for_gaussian_rows() -> None:
    rows = np.random.default_rng(1).normal(size=(4000, 3)) @ np.linalg.cholesky(S).T
    d = mahalanobis(rows, np.zeros(3), cov=S)
    p = chi2_pvalue(d, 3)
    np.testing.assert_allclose(p, chi2.sf(d**2, 3), atol=1e-12)
    assert kstest(p, "uniform").pvalue > 0.01


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: mahalanobis(X, cov=S, precision=S), "one of cov, precision and J"),
        (lambda: mahalanobis(X[0]), r"rows \(\.\.\., n, d\)"),
        (lambda: mahalanobis(X, [0.0, 0.0]), "X has 3 columns, Y has 2"),
        (lambda: mahalanobis(X, cov=np.eye(2)), r"cov needs shape \(\.\.\., 3, 3\)"),
        (lambda: mahalanobis(X, J=np.ones((2, 2))), r"J needs shape \(\.\.\., p, 3\)"),
        (lambda: chi2_pvalue(1.0, 0), "at least 1"),
    ],
)
def test_errors_teach(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_gradient_is_zero_and_finite_at_the_mean() -> None:
    x = torch.zeros(1, 2, dtype=torch.float64, requires_grad=True)
    mahalanobis(x, torch.zeros(2).double(), cov=torch.eye(2).double()).sum().backward()
    assert x.grad is not None and bool((x.grad == 0).all())


# --- axioms ------------------------------------------------------------------------------


def draw(rng: np.random.Generator, n: int) -> Any:
    return rng.normal(size=(n, 2))


def simplex(rng: np.random.Generator, n: int) -> Any:
    return rng.dirichlet([1.0, 1.0, 1.0], n)


@pytest.mark.parametrize("seed", range(3))
def test_what_is_a_metric(seed: int) -> None:
    P = np.linalg.inv(A0)

    def verdict(d: Any, points: Any = draw) -> str:
        return check_metric(d, points, random_state=seed).verdict

    assert verdict("euclidean") == verdict("cityblock") == "metric"
    assert verdict(lambda x, y: float(np.sqrt((x - y) @ P @ (x - y)))) == "metric"
    assert verdict("sqeuclidean") == "neither"
    assert verdict(lambda x, y: abs(float((x - y) @ [1.0, 2.0]))) == "pseudometric"
    assert verdict(jensenshannon, simplex) == "metric"  # scipy's is the root
    assert verdict(lambda p, q: jensenshannon(p, q) ** 2, simplex) == "neither"


def test_only_the_last_axiom_fails_for_a_map_of_low_rank() -> None:
    found = check_metric(lambda x, y: abs(float(x[0] - y[0])), draw)
    assert found.is_pseudometric and not found.distinguishes
    assert found.symmetry == found.negativity == found.identity == 0.0
    assert "broken distinguishability" in str(found)


def test_each_axiom_is_seen() -> None:
    squared = check_metric("sqeuclidean", np.array([[0.0], [1.0], [2.0]]))
    assert squared.triangle > 0.1 and squared.symmetry == squared.identity == 0.0
    lopsided = check_metric(lambda x, y: max(0.0, float(x[0] - y[0])), draw)
    assert lopsided.symmetry > 0.1
    shifted = check_metric(lambda x, y: float(np.linalg.norm(x - y)) + 1, draw)
    assert shifted.identity > 0.1 and shifted.triangle == 0.0
    below = check_metric(lambda x, y: -float(np.linalg.norm(x - y)), draw)
    assert below.negativity > 0.1
    words = check_metric(lambda a, b: float(a != b), ["cat", "dog", "cow", "cat"])
    assert words.verdict == "metric"


def test_axioms_refuse_what_they_cannot_check() -> None:
    with pytest.raises(ValueError, match="three points, got 2"):
        check_metric("euclidean", [[0.0], [1.0]])
    with pytest.raises(ValueError, match="no metric of scipy"):
        check_metric("nonsense", draw)
    with pytest.raises(TypeError, match="function of two points"):
        check_metric(3.0, draw)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="NaN or infinity"):
        check_metric(lambda x, y: np.nan, draw)


@pytest.mark.parametrize("d", [1, 3, 8, 9, 20])
def test_scaled_squares_by_columns_and_whole(d: int) -> None:
    g = torch.Generator().manual_seed(d)
    x = torch.randn(7000, d, generator=g, dtype=torch.float64)
    m, s = torch.randn(2, 3, d, generator=g, dtype=torch.float64)
    for scales in (s, s[:, :1]):
        want = ((x[:, None] - m) * scales).square().sum(-1)
        torch.testing.assert_close(scaled_squares(x, m, scales), want)
    few = [v[:4].clone().requires_grad_() for v in (x, m, s)]
    assert torch.autograd.gradcheck(scaled_squares, few)
