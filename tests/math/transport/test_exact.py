"""Exact transport: optimality by duality, exact marginals, parity with other solvers, gradients."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import linear_sum_assignment, linprog

from groundstate import transport
from groundstate.errors import ShapeError
from groundstate.math.transport.exact import _positive
from groundstate.math.transport.line import power_cost
from groundstate.math.transport.network_simplex_numba import solve

RNG = np.random.default_rng(0)


def check_optimal(a: np.ndarray, b: np.ndarray, M: np.ndarray) -> transport.Transport:
    found = transport.emd(a, b, M)
    scale = np.abs(M).max() * a.sum() + 1e-300
    np.testing.assert_allclose(found.plan.sum(1), a, atol=1e-14 * a.sum(), rtol=1e-13)
    np.testing.assert_allclose(found.plan.sum(0), b, atol=1e-14 * a.sum(), rtol=1e-13)
    assert found.plan.min() >= 0
    assert (M - found.u[:, None] - found.v).min() >= -1e-12 * np.abs(M).max()
    assert abs(a @ found.u + b @ found.v - found.cost) <= 1e-12 * scale
    assert found.cost == pytest.approx((found.plan * M).sum())
    assert np.count_nonzero(found.plan) <= len(a) + len(b) - 1
    return found


@pytest.mark.parametrize("seed", range(30))
def test_plans_are_optimal(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, m = rng.integers(1, 40, 2)
    M = [
        rng.random((n, m)),
        ((rng.normal(size=(n, 1, 2)) - rng.normal(size=(1, m, 2))) ** 2).sum(-1),
        rng.integers(0, 3, (n, m)).astype(float),  # many ties
        rng.normal(size=(n, m)) * 1e6 - 1e5,  # negative costs
        np.zeros((n, m)),
    ][seed % 5]
    a, b = rng.random(n), rng.random(m)
    if seed % 3 == 0:  # degenerate: equal masses, some of them zero
        a, b = rng.integers(0, 3, n).astype(float), rng.integers(0, 3, m).astype(float)
        a[0] += 1
        b[0] += 1
    b *= a.sum() / b.sum()
    found = check_optimal(a, b, M)
    rows, columns = np.kron(np.eye(n), np.ones(m)), np.kron(np.ones(n), np.eye(m))
    peer = linprog(M.ravel(), A_eq=np.r_[rows, columns], b_eq=np.r_[a, b])
    assert found.cost == pytest.approx(peer.fun, rel=1e-7, abs=1e-7 * (np.abs(M).max() + 1e-9))


@pytest.mark.parametrize("n", [1, 2, 17, 120])
def test_assignments_are_permutations(n: int) -> None:
    M = RNG.random((n, n))
    found = transport.emd(None, None, M)
    assert set(np.unique(found.plan)) <= {0.0, 1 / n}
    rows, columns = linear_sum_assignment(M)
    assert found.cost == pytest.approx(M[rows, columns].mean())
    assert (found.plan > 0).sum(0).tolist() == [1] * n == (found.plan > 0).sum(1).tolist()


def test_on_a_line_and_for_points() -> None:
    x, y, a, b = RNG.normal(size=12), RNG.normal(size=9), RNG.random(12), RNG.random(9)
    b *= a.sum() / b.sum()
    for p in (1, 2, 3):
        M = np.abs(x[:, None] - y) ** p
        line = power_cost(*map(torch.from_numpy, (x, y)), p, *map(torch.from_numpy, (a, b)))
        assert transport.emd(a, b, M).cost == pytest.approx(float(line) * a.sum())
    assert transport.emd([1.0], [1.0], [[7.0]]).cost == 7


def test_metric_axioms_on_random_pmfs() -> None:
    points = RNG.normal(size=(8, 2))
    M = np.linalg.norm(points[:, None] - points, axis=-1)
    for _ in range(10):
        p, q, r = RNG.dirichlet(np.ones(8), 3)
        pq, qr, pr = (transport.emd(u, v, M).cost for u, v in ((p, q), (q, r), (p, r)))
        assert pr <= pq + qr + 1e-12 and pq > 0
        assert pq == pytest.approx(transport.emd(q, p, M).cost)
        assert transport.emd(p, p, M).cost == pytest.approx(0, abs=1e-15)


def test_zero_masses_have_prices_too() -> None:
    M = RNG.random((5, 6))
    a, b = np.array([0.5, 0, 0.5, 0, 0]), np.array([0, 0.25, 0, 0.75, 0, 0])
    found = check_optimal(a, b, M)
    assert np.isfinite(found.u).all() and np.isfinite(found.v).all()
    moved = a + 1e-7 * np.array([-1, 1, 0, 0, 0])
    rise = transport.emd(moved, b, M).cost - found.cost
    assert rise / 1e-7 <= found.u[1] - found.u[0] + 1e-6 or rise > 0


def test_gradients_and_batches() -> None:
    g = torch.Generator().manual_seed(0)
    M = torch.rand(2, 4, 5, generator=g, dtype=torch.float64, requires_grad=True)
    s = torch.randn(2, 4, generator=g, dtype=torch.float64, requires_grad=True)
    t = torch.randn(2, 5, generator=g, dtype=torch.float64, requires_grad=True)
    cost = lambda s, t, M: transport.emd(s.softmax(-1), t.softmax(-1), M).cost
    assert torch.autograd.gradcheck(cost, (s, t, M))
    whole = cost(s, t, M)
    for k in range(2):
        torch.testing.assert_close(cost(s[k], t[k], M[k]), whole[k])
    single = transport.emd(None, None, M.detach().float())
    assert single.cost.dtype == torch.float32 and single.plan.shape == (2, 4, 5)


def test_linear_program_takes_over() -> None:
    a, b, M = RNG.dirichlet(np.ones(7)), RNG.dirichlet(np.ones(6)), RNG.random((7, 6))
    cost, plan, u, v = _positive(a, b, M, max_pivots=0)
    found = transport.emd(a, b, M)
    assert solve(M, a, b, 0)[-1] == -1
    assert cost == pytest.approx(found.cost) and a @ u + b @ v == pytest.approx(cost)
    np.testing.assert_allclose(plan.sum(1), a, atol=1e-9)


def test_mistakes() -> None:
    M = np.ones((2, 2))
    with pytest.raises(ValueError, match="same positive total mass"):
        transport.emd([0.5, 0.5], [0.5, 0.6], M)
    with pytest.raises(ValueError, match="must not be negative"):
        transport.emd([1.5, -0.5], [0.5, 0.5], M)
    with pytest.raises(ShapeError, match="needs 2 masses a"):
        transport.emd([1.0], [0.5, 0.5], M)
    with pytest.raises(ShapeError, match="M must be costs"):
        transport.emd(None, None, [1.0, 2.0])
    with pytest.raises(ValueError, match="M holds NaN"):
        transport.emd(None, None, [[np.nan, 1.0]])
    assert transport.emd([0.5, 0.5], [0.5, 0.5 + 1e-8], M).cost == pytest.approx(1)
    assert repr(transport.emd(None, None, M)) == "Transport(cost=1.0, plan=(2, 2))"
