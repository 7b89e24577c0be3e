"""Wasserstein distances: on the line, sliced, exact and entropic between samples."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.optimize import linprog
from scipy.stats import wasserstein_distance
from torch import distributions as D

from groundstate import divergences as dv
from groundstate.errors import ShapeError

RNG = np.random.default_rng(0)
GRID = np.arange(5)
A, B = [5, 4, 3, 2, 1], [1, 5, 4, 3, 2]


def by_program(x: np.ndarray, y: np.ndarray, a: np.ndarray, b: np.ndarray, p: float) -> float:
    n, m = len(x), len(y)
    C = np.abs(x[:, None] - y) ** p
    rows = np.kron(np.eye(n), np.ones(m))
    columns = np.kron(np.ones(n), np.eye(m))
    found = linprog(C.ravel(), A_eq=np.r_[rows, columns], b_eq=np.r_[a / a.sum(), b / b.sum()])
    return float(found.fun) ** (1 / p)


def test_worked_numbers() -> None:
    a, b = (D.Normal(*torch.tensor(v).double()) for v in ([0.0, 1.0], [3.0, 2.0]))
    assert float(dv.wasserstein_1d(a, b, 2)) == pytest.approx(math.sqrt(10), abs=1e-9)
    assert dv.wasserstein_1d(GRID, GRID, 1, A, B) == pytest.approx(0.666667, abs=1e-6)
    assert dv.wasserstein_1d(GRID, GRID, 2, A, B) == pytest.approx(0.816497, abs=1e-6)
    # uncrossing pays for p = 2: 0 → 1 and 1 → 2 cost 2, the crossing swap 0 → 2 and 1 → 1 cost 4
    assert 2 * dv.wasserstein_1d([0, 1], [1, 2], 2) ** 2 == pytest.approx(2)


@pytest.mark.parametrize("p", [1, 1.5, 2, 3])
def test_on_the_line(p: float) -> None:
    for _ in range(5):
        n, m = RNG.integers(1, 12, 2)
        x, y = RNG.normal(size=n), RNG.normal(size=m)
        a, b = RNG.random(n), RNG.random(m)
        value = dv.wasserstein_1d(x, y, p, a, b)
        assert value == pytest.approx(by_program(x, y, a, b, p), rel=1e-6)
        assert dv.wasserstein_1d(y, x, p, b, a) == pytest.approx(value)
        if p == 1:
            assert value == pytest.approx(wasserstein_distance(x, y, a, b))
        assert value <= dv.wasserstein_1d(x, y, p + 1, a, b) + 1e-12
        assert dv.wasserstein(x, y, p, a, b) == pytest.approx(value)
    x, w = RNG.normal(size=6), RNG.integers(1, 4, 6)
    y = RNG.normal(size=5)
    repeated = dv.wasserstein_1d(np.repeat(x, w), y, p)
    assert dv.wasserstein_1d(x, y, p, w) == pytest.approx(repeated)
    X, Y = RNG.normal(size=(3, 7)), RNG.normal(size=(3, 4))
    loop = [dv.wasserstein_1d(a, b, p) for a, b in zip(X, Y, strict=True)]
    np.testing.assert_allclose(dv.wasserstein_1d(X, Y, p), loop, atol=1e-12)


def test_gradients_on_the_line() -> None:
    x, y = (torch.from_numpy(RNG.normal(size=s)).requires_grad_() for s in (5, 4))
    w = torch.from_numpy(RNG.random(5)).requires_grad_()
    assert torch.autograd.gradcheck(lambda x, y: dv.wasserstein_1d(x, y, 2), (x, y))
    assert torch.autograd.gradcheck(lambda x, y, w: dv.wasserstein_1d(x, y, 3, w), (x, y, w))
    assert dv.wasserstein_1d(x, x, 2).item() == 0
    mean = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    law = D.Normal(mean, torch.tensor(1.0).double())
    other = D.Normal(*torch.tensor([2.0, 1.0]).double())
    (slope,) = torch.autograd.grad(dv.wasserstein_1d(law, other, 2), mean)
    assert float(slope) == pytest.approx(-1)


def test_sliced() -> None:
    d = 6
    X = RNG.normal(size=(300, d))
    shift = RNG.normal(size=d)
    found = dv.sliced_wasserstein(X, X + shift, n_projections=20_000, random_state=0)
    assert found == pytest.approx(np.linalg.norm(shift) / math.sqrt(d), rel=0.02)
    Y = RNG.normal(size=(200, d))
    theta = RNG.normal(size=(7, d))
    theta /= np.linalg.norm(theta, axis=1, keepdims=True)
    each = [dv.wasserstein_1d(X @ t, Y @ t, 3) ** 3 for t in theta]
    value = dv.sliced_wasserstein(X, Y, p=3, projections=theta)
    assert value == pytest.approx(np.mean(each) ** (1 / 3))
    w = RNG.integers(1, 4, 200)
    assert dv.sliced_wasserstein(X, Y, y_weights=w, projections=theta) == pytest.approx(
        dv.sliced_wasserstein(X, np.repeat(Y, w, axis=0), projections=theta)
    )
    same = [dv.sliced_wasserstein(X, Y, random_state=3) for _ in range(2)]
    assert same[0] == same[1] <= dv.wasserstein(X, Y)
    t = torch.from_numpy(X[:8]).requires_grad_()
    target = torch.from_numpy(Y[:8])
    assert torch.autograd.gradcheck(
        lambda x: dv.sliced_wasserstein(x, target, 8, random_state=0), (t,)
    )


def test_between_samples() -> None:
    X, Y, Z = RNG.normal(size=(3, 20, 3))
    for p in (1, 2):
        xy, yz, xz = dv.wasserstein(X, Y, p), dv.wasserstein(Y, Z, p), dv.wasserstein(X, Z, p)
        assert xz <= xy + yz + 1e-12 and xy == pytest.approx(dv.wasserstein(Y, X, p))
        assert dv.wasserstein(X, X, p) == 0
        assert dv.wasserstein(X[:1], Y[:1], p) == pytest.approx(np.linalg.norm(X[0] - Y[0]))
    shifted = dv.wasserstein(X, X + np.array([1, 2, 2]))
    assert shifted == pytest.approx(3)
    x, y = (torch.from_numpy(v[:6]).requires_grad_() for v in (X, Y))
    w = torch.from_numpy(RNG.random(6)).requires_grad_()
    assert torch.autograd.gradcheck(lambda x, y, w: dv.wasserstein(x, y, 2, w), (x, y, w))
    batch = dv.wasserstein(np.stack([X, Y]), np.stack([Y, Z]))
    np.testing.assert_allclose(batch, [dv.wasserstein(X, Y), dv.wasserstein(Y, Z)])


def test_sinkhorn_divergence() -> None:
    assert dv.sinkhorn([0, 1], [1, 3], eps=1.0, tol=1e-9) == pytest.approx(2.538778, abs=1e-5)
    assert dv.sinkhorn([0, 1], [1, 3], eps=0.1, tol=1e-9) == pytest.approx(2.5, abs=1e-3)
    assert dv.wasserstein([0, 1], [1, 3]) ** 2 == pytest.approx(2.5)
    X, Y = RNG.normal(size=(30, 2)), RNG.normal(size=(25, 2)) + 1
    assert dv.sinkhorn(X, X, tol=1e-10) == pytest.approx(0, abs=1e-9)
    assert dv.sinkhorn(X, Y) > 0
    small = dv.sinkhorn(X, Y, eps=0.01, tol=1e-4)
    assert small == pytest.approx(dv.wasserstein(X, Y) ** 2, rel=0.02)
    w = RNG.integers(1, 4, 30)
    assert dv.sinkhorn(X, Y, eps=0.3, x_weights=w, tol=1e-10) == pytest.approx(
        dv.sinkhorn(np.repeat(X, w, axis=0), Y, eps=0.3, tol=1e-10)
    )
    batch = dv.sinkhorn(np.stack([X, 2 * X]), np.stack([Y, Y]), eps=0.5)
    assert batch[1] == pytest.approx(dv.sinkhorn(2 * X, Y, eps=0.5))
    x, y = (torch.from_numpy(v[:5].copy()).requires_grad_() for v in (X, Y))
    w2 = torch.zeros(5, dtype=torch.float64, requires_grad=True)
    for p in (2, 1.5):
        assert torch.autograd.gradcheck(
            lambda x, y, w, p=p: dv.sinkhorn(
                x, y, eps=0.3, p=p, x_weights=w.exp(), tol=1e-13
            ),
            (x, y, w2),
        )  # fmt: skip


@pytest.mark.parametrize("p", [1, 2, 1.5])
def test_without_the_matrix_of_costs(p: float, monkeypatch: pytest.MonkeyPatch) -> None:
    X, Y = RNG.normal(size=(60, 3)), RNG.normal(size=(50, 3)) + 1
    results = []
    for rows, cells in ((5000, 1 << 20), (10, 500)):
        monkeypatch.setattr("groundstate.math.transport.online.DENSE", rows)
        monkeypatch.setattr("groundstate.math.transport.online._CELLS", {"cpu": cells})
        x, y = (torch.from_numpy(v).requires_grad_() for v in (X, Y))
        w = torch.linspace(1, 2, 60).double().requires_grad_()
        value = dv.sinkhorn(x, y, eps=0.1, p=p, x_weights=w, tol=1e-11)
        results.append((value, *torch.autograd.grad(value, (x, y, w))))
    for dense, tiles in zip(*results, strict=True):
        torch.testing.assert_close(tiles, dense, atol=1e-9, rtol=1e-9)


def test_mistakes() -> None:
    with pytest.raises(ValueError, match="p must be"):
        dv.wasserstein([0], [1], p=0.5)
    with pytest.raises(ShapeError, match="rows"):
        dv.wasserstein(np.zeros((2, 3)), np.zeros((2, 2)))
    with pytest.raises(ShapeError, match="as many weights"):
        dv.wasserstein_1d([0, 1], [1, 2], 1, [1, 2, 3])
    with pytest.raises(ShapeError, match="as many x_weights"):
        dv.wasserstein(np.zeros((2, 3)), np.zeros((2, 3)), x_weights=[1.0])
    with pytest.raises(ValueError, match="non-negative"):
        dv.wasserstein(np.zeros((2, 3)), np.zeros((2, 3)), x_weights=[1.0, -1.0])
    with pytest.raises(ValueError, match="eps must be positive"):
        dv.sinkhorn([0, 1], [1, 2], eps=0.0)
    with pytest.raises(ShapeError, match="must hold values"):
        dv.wasserstein_1d([], [1.0])
