"""Solving with covariances that are not stored: conjugate gradients, low rank, tiles."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from groundstate.math.kernels import RBF, Geometry, Laplacian, White
from groundstate.math.kernels import covariance as tiled
from groundstate.math.kernels.covariance import TiledCovariance
from groundstate.math.kernels.pivots import pivoted_cholesky
from groundstate.math.linalg.conjugate_gradients import conjugate, log_quadratic
from groundstate.math.linalg.low_rank import LowRank

G = torch.Generator().manual_seed(0)
X = torch.rand(120, 2, generator=G, dtype=torch.float64) * 4
B = torch.randn(120, 3, generator=G, dtype=torch.float64)
SPREAD = torch.rand(120, generator=G, dtype=torch.float64) * 0.1 + 0.05
DENSE = RBF(1.0)(X) + torch.diag(SPREAD)


def test_conjugate_gradients_solve_all_columns() -> None:
    found = conjugate(DENSE, B, tol=1e-12)
    torch.testing.assert_close(found.x, torch.linalg.solve(DENSE, B), rtol=1e-7, atol=1e-7)
    assert float(found.error.max()) < 1e-11
    mixed = torch.cat([B[:, :1], torch.zeros(120, 1).double(), DENSE[:, :1]], 1)
    ends = conjugate(DENSE, mixed, tol=1e-10).x  # columns that are done at once, soon and late
    torch.testing.assert_close(ends, torch.linalg.solve(DENSE, mixed), atol=1e-6, rtol=1e-6)


def test_a_preconditioner_saves_steps() -> None:
    K = TiledCovariance(RBF(1.0), X, SPREAD)
    plain = conjugate(DENSE, B, tol=1e-8).steps
    assert K.solve(B, 1e-8).steps < plain / 3


def test_lanczos_log_determinant() -> None:
    K = TiledCovariance(RBF(1.0), X, SPREAD, rank=40)
    P = K.preconditioner
    z = P.draw(64, torch.Generator().manual_seed(1))
    found = K.solve(z, 1e-8)
    estimate = P.log_det + ((z * P.solve(z)).sum(0) * log_quadratic(found)).mean()
    assert float(estimate) == pytest.approx(float(torch.logdet(DENSE)), abs=1.0)
    exact = torch.logdet(DENSE)  # with as many orthonormal starts as rows the mean is the trace
    eye = torch.eye(120, dtype=torch.float64)
    assert float(log_quadratic(conjugate(DENSE, eye, tol=1e-14)).sum()) == pytest.approx(
        float(exact), rel=1e-6
    )


def test_pivoted_cholesky_explains_everything_in_the_end() -> None:
    kernel = Laplacian(1.0) + White(0.3)  # noise is nobody's to explain
    L, chosen = pivoted_cholesky(kernel, X, 120)
    torch.testing.assert_close(L @ L.T, Laplacian(1.0)(X), atol=1e-9, rtol=0)
    assert len(set(chosen.tolist())) == 120
    few = pivoted_cholesky(kernel, X, 7)[0]
    left = (Laplacian(1.0)(X) - few @ few.T).diagonal()
    assert float(left.min()) > -1e-12 and few.shape == (120, 7)
    doubled = torch.cat([X[:5], X[:5]])
    assert len(pivoted_cholesky(RBF(1.0), doubled, 10)[1]) == 5


def test_low_rank_plus_diagonal() -> None:
    L = B.clone()
    P = LowRank(L, SPREAD)
    dense = L @ L.T + torch.diag(SPREAD)
    torch.testing.assert_close(P.solve(B), torch.linalg.solve(dense, B))
    assert float(P.log_det) == pytest.approx(float(torch.logdet(dense)))
    z = P.draw(20_000, torch.Generator().manual_seed(0))
    assert float((z @ z.T / 20_000 - dense).abs().max()) < 0.5


@pytest.mark.parametrize("single", [False, True])
def test_tiles_are_the_matrix(single: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiled, "TILE", 120 * 17)  # rows come 17 at a time
    K = TiledCovariance(RBF(1.0), X, SPREAD, single=single)
    torch.testing.assert_close(K @ B, DENSE @ B, rtol=1e-5, atol=1e-5)
    found = K.solve(B, 1e-9)
    torch.testing.assert_close(found.x, torch.linalg.solve(DENSE, B), rtol=1e-6, atol=1e-6)
    assert float(found.error.max()) < 1e-9


def test_slope_of_a_product_in_the_parameters() -> None:
    kernel = 2.0 * RBF((1.0, 0.7))
    theta = torch.from_numpy(kernel.theta).requires_grad_()
    K = TiledCovariance(kernel, X, SPREAD, theta.detach())
    total = (B * (kernel.of(Geometry(X, X), theta) @ B.flip(1))).sum()
    (expected,) = torch.autograd.grad(total, theta)
    np.testing.assert_allclose(K.slope(B, B.flip(1), theta.detach()), expected, rtol=1e-10)
