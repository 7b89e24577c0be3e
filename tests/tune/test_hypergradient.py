"""Gradients through learning, by three methods."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from groundstate.errors import DataError
from groundstate.tune import hypergradient
from groundstate.tune.gradients.hypergradients import Problem, response

X = torch.tensor([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]], dtype=torch.float64)
Y = torch.tensor([1.0, 2.0, 2.0], dtype=torch.float64)
ROW = torch.tensor([2.0, 1.0], dtype=torch.float64)
ONE = torch.ones(1, dtype=torch.float64)


def train(theta: Tensor, lam: Tensor) -> Tensor:
    return 0.5 * (X @ theta - Y).square().sum() + 0.5 * lam[0] * theta.square().sum()


def validation(theta: Tensor, lam: Tensor) -> Tensor:
    return (ROW @ theta - 3.0).square()


def ridge(lam: float = 1.0) -> Tensor:
    return torch.linalg.solve(X.T @ X + lam * torch.eye(2, dtype=torch.float64), X.T @ Y)


def test_ridge_numbers() -> None:
    theta = ridge()
    assert theta.tolist() == pytest.approx([0.705882, 0.882353], abs=5e-7)
    moved = response(Problem(train, validation, theta), ONE)[:, 0]
    assert moved.tolist() == pytest.approx([-0.197232, -0.114187], abs=5e-7)
    found = hypergradient(Problem(train, validation, theta), ONE)
    assert float(found) == pytest.approx(0.718095, abs=5e-7)


def test_three_methods_agree_at_convergence() -> None:
    start = torch.zeros(2, dtype=torch.float64)
    unrolled = Problem(train, validation, start, steps=300, rate=0.15)
    found = [
        float(hypergradient(Problem(train, validation, ridge()), ONE, "implicit")),
        float(hypergradient(unrolled, ONE, "forward")),
        float(hypergradient(unrolled, ONE, "reverse", segment=32)),
    ]
    assert found[1] == pytest.approx(found[0], abs=1e-6)
    assert found[2] == pytest.approx(found[0], abs=1e-6)


def test_direct_part_and_several_settings() -> None:
    def several(theta: Tensor, lam: Tensor) -> Tensor:
        return train(theta, lam[:1]) - lam[1] * theta.sum()

    def judged(theta: Tensor, lam: Tensor) -> Tensor:
        return validation(theta, lam) + 3.0 * lam[1]

    lam = torch.tensor([1.0, 0.2], dtype=torch.float64)
    H = X.T @ X + torch.eye(2, dtype=torch.float64)

    def risk(value: Tensor) -> Tensor:
        theta = torch.linalg.solve(
            H + (value[0] - 1) * torch.eye(2, dtype=H.dtype), X.T @ Y + value[1]
        )
        return judged(theta, value)

    exact = torch.func.grad(risk)(lam)
    theta = torch.linalg.solve(H, X.T @ Y + 0.2)
    found = hypergradient(Problem(several, judged, theta), lam)
    torch.testing.assert_close(found, exact, atol=1e-9, rtol=1e-9)


def test_the_learning_rate_has_a_gradient_too() -> None:
    slope = torch.func.grad(train)

    def step(theta: Tensor, lam: Tensor) -> Tensor:
        return theta - lam[0] * slope(theta, ONE)

    problem = Problem(train, validation, torch.zeros(2, dtype=torch.float64), step, steps=3)
    rate = torch.tensor([0.05], dtype=torch.float64)
    forward, reverse = (hypergradient(problem, rate, m) for m in ("forward", "reverse"))
    torch.testing.assert_close(forward, reverse)
    eps = 1e-6

    def risk(value: float) -> float:
        theta = torch.zeros(2, dtype=torch.float64)
        for _ in range(3):
            theta = step(theta, torch.tensor([value], dtype=torch.float64))
        return float(validation(theta, ONE))

    assert float(forward) == pytest.approx((risk(0.05 + eps) - risk(0.05 - eps)) / 2e-6, rel=1e-6)


def test_errors() -> None:
    problem = Problem(train, validation, ridge())
    with pytest.raises(DataError, match="method is 'implicit', 'forward' or 'reverse'"):
        hypergradient(problem, ONE, "adjoint")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="params is a vector of real settings"):
        hypergradient(problem, torch.ones(1, 1))
