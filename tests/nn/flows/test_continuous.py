"""Continuous flows: linear fields in closed form, gradients two ways, traces by estimate."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from groundstate.nn.flows import Continuous, Flow, Velocity


class Linear(nn.Module):
    def __init__(self, A: Tensor) -> None:
        super().__init__()
        self.A = nn.Parameter(A)

    def forward(self, t: Tensor, x: Tensor, context: Tensor | None = None) -> Tensor:
        return x @ self.A.T


A = torch.tensor([[0.3, -0.8, 0.1], [0.5, -0.2, 0.0], [0.2, 0.4, 0.6]], dtype=torch.float64)


def rows(n: int, d: int, seed: int = 0) -> Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def moving(features: int, context: int = 0, activation: str = "silu") -> Velocity:
    v = Velocity(features, (8, 8), activation, context).double()
    g = torch.Generator().manual_seed(4)
    with torch.no_grad():
        for p in v.parameters():
            p.add_(0.2 * torch.randn(p.shape, generator=g, dtype=torch.float64))
    return v


@pytest.mark.parametrize("method", ["dopri5", "rk4"])
def test_a_linear_field_is_the_matrix_exponential(method: str) -> None:
    f = Continuous(Linear(A), 3, method=method, n_steps=40).double()
    x = rows(5, 3)
    out, ladj = f.inverse(x)
    assert torch.allclose(out, x @ torch.linalg.matrix_exp(A).T, atol=1e-4)
    assert torch.allclose(ladj, A.trace().expand(5), atol=1e-4)  # t tr A at t = 1
    back, minus = f(out)
    assert torch.allclose(back, x, atol=1e-4) and torch.allclose(minus, -ladj, atol=1e-4)


@pytest.mark.parametrize("activation", ["silu", "tanh", "softplus", "gelu"])
@pytest.mark.parametrize("context", [0, 2])
def test_push_is_the_jacobian(activation: str, context: int) -> None:
    v = moving(3, context, activation)
    x, y, t = rows(4, 3), rows(4, context, 2) if context else None, torch.tensor(0.3)
    eye = torch.eye(3, dtype=torch.float64)[:, None]
    value, moved = v.push(t, x, y, eye)
    assert torch.allclose(value, v(t, x, y))
    for i in range(4):
        one = None if y is None else y[i : i + 1]
        J = torch.autograd.functional.jacobian(lambda u, one=one: v(t, u[None], one)[0], x[i])
        assert torch.allclose(moved[:, i].T, J, atol=1e-10)


@pytest.mark.parametrize("context", [0, 2])
def test_log_determinant_is_that_of_the_solution(context: int) -> None:
    f = Continuous(moving(2, context), 2, context, rtol=1e-8, atol=1e-8).double().eval()
    x, y = rows(3, 2), rows(3, context, 1) if context else None
    z, ladj = f(x, y)
    for i in range(3):
        one = None if y is None else y[i : i + 1]
        J = torch.autograd.functional.jacobian(lambda u, one=one: f(u[None], one)[0][0], x[i])
        assert torch.linalg.slogdet(J)[1].item() == pytest.approx(ladj[i].item(), abs=1e-6)
    assert torch.allclose(f.inverse(z, y)[0], x, atol=1e-4)
    # any module will do: derivatives then come from forward mode
    plain = Continuous(Wrapped(f.velocity), 2, context, rtol=1e-8, atol=1e-8).double().eval()
    assert torch.allclose(plain(x, y)[1], ladj, atol=1e-7)


class Wrapped(nn.Module):
    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, t: Tensor, x: Tensor, context: Tensor | None = None) -> Tensor:
        v: Tensor = self.net(t, x, context)
        return v


def test_adjoint_and_backprop_agree() -> None:
    grads = {}
    for gradient in ("backprop", "adjoint", "checkpoint"):
        f = Continuous(moving(2), 2, rtol=1e-9, atol=1e-9, gradient=gradient).double().eval()
        Flow(f).double().log_prob(rows(6, 2)).sum().backward()
        grads[gradient] = torch.cat([p.grad.flatten() for p in f.velocity.parameters()])  # type: ignore[union-attr]
    assert torch.allclose(grads["adjoint"], grads["backprop"], atol=1e-5)
    assert torch.allclose(grads["checkpoint"], grads["backprop"], atol=1e-10)


def test_hutchinson_is_unbiased_and_fixed_outside_training() -> None:
    f = Continuous(moving(4), 4, trace="hutchinson", method="rk4", n_steps=10).double()
    exact = Continuous(f.velocity, 4, trace="exact", method="rk4", n_steps=10).double().eval()
    x = rows(3, 4)
    with torch.no_grad():
        f.train()
        mean = torch.stack([f(x)[1] for _ in range(800)]).mean(0)
        assert torch.allclose(mean, exact(x)[1], atol=0.05)
        f.eval()
        assert torch.equal(f(x)[1], f(x)[1])
    assert not f.exact and exact.exact and not Continuous(Linear(A), 11).exact


def test_paths() -> None:
    f = Continuous(Linear(A), 3).double()
    x = rows(5, 3)
    times = torch.linspace(0, 1, 6)
    way = f.path(x, times=times)
    assert way.shape == (6, 5, 3) and torch.equal(way[0], x)
    assert torch.allclose(way[-1], f.inverse(x)[0], atol=1e-4)
    euler = f.path(x, method="euler", n_steps=1)[-1]
    assert torch.allclose(euler, x + x @ A.T)


def test_guidance() -> None:
    f = Continuous(moving(2, 3), 2, 3).double()
    z, c = rows(4, 2), rows(4, 3, 1)
    given = f.path(z, c, method="euler", n_steps=1)[-1] - z
    free = f.path(z, torch.zeros_like(c), method="euler", n_steps=1)[-1] - z
    twice = f.path(z, c, method="euler", n_steps=1, guidance=2.0)[-1] - z
    assert torch.allclose(twice, free + 2 * (given - free), atol=1e-6)


def test_errors() -> None:
    with pytest.raises(ValueError, match="trace must be"):
        Continuous(Linear(A), 3, trace="all")
    with pytest.raises(ValueError, match="method must be one of"):
        Continuous(Linear(A), 3, method="radau")
    with pytest.raises(ValueError, match="gradient must be one of"):
        Continuous(Linear(A), 3, gradient="none")
