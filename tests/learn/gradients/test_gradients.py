"""Gradients: by hand, by differences, by Jacobians, per example, and in the input."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import combinations
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from groundstate.energy import LinearEnergy, TargetEnergy
from groundstate.errors import DataError, ShapeError, Unsupported
from groundstate.learn import Perceptron
from groundstate.learn.gradients import (
    adapt_input,
    backprop,
    gradcheck,
    gradient_noise,
    jacobian,
    jvp,
    per_example_grads,
    saliency,
    vjp,
)
from groundstate.learn.gradients.backprop import SLOPES
from groundstate.learn.gradients.check import Mismatch

F64 = torch.float64


def t(values: Any) -> Tensor:
    return torch.tensor(values, dtype=F64)


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=F64)


def dense(sizes: list[int], activations: list[nn.Module], seed: int = 0) -> nn.Sequential:
    blocks: list[nn.Module] = []
    for k, (n, m, activation) in enumerate(zip(sizes[:-1], sizes[1:], activations, strict=True)):
        layer = nn.Linear(n, m).double()
        layer.weight.data, layer.bias.data = (
            normal(m, n, seed=seed + k),
            normal(m, seed=seed + 9 + k),
        )
        blocks += [layer, activation]
    return nn.Sequential(*blocks)


# --- backpropagation -------------------------------------------------------------------------


def test_the_worked_2_1_2_net() -> None:
    net = nn.Sequential(nn.Linear(2, 1), nn.Sigmoid(), nn.Linear(1, 2), nn.Sigmoid()).double()
    values = ([[1.0, -2.0]], [0.5], [[2.0], [-1.0]], [0.0, 1.0])
    for p, v in zip(net.parameters(), values, strict=True):
        p.data = t(v)
    passed = backprop(net, t([[1.0, 0.5]]), t([[1.0, 0.0]]))
    assert passed.a[1].item() == pytest.approx(0.622459, abs=1e-6)
    assert passed.loss.item() == pytest.approx(0.200985, abs=1e-6)
    assert passed.delta[1][0].tolist() == pytest.approx([-0.038812, 0.143158], abs=1e-6)
    assert passed.delta[0].item() == pytest.approx(-0.051885, abs=1e-6)
    assert passed.dW[1].flatten().tolist() == pytest.approx([-0.024159, 0.089110], abs=1e-6)
    assert passed.dW[0].flatten().tolist() == pytest.approx([-0.051885, -0.025942], abs=1e-6)


def test_the_scalar_logistic_net() -> None:
    """Three layers of one unit, all weights 1, x = 1, y = 0; loss (E − y)²."""
    net = dense([1, 1, 1, 1], [nn.Sigmoid(), nn.Sigmoid(), nn.Identity()])
    for p in net.parameters():
        p.data = torch.ones_like(p) if p.ndim == 2 else torch.zeros_like(p)
    passed = backprop(net, t([[1.0]]), t([[0.0]]), "squared")
    assert passed.loss.item() == pytest.approx(0.455676, abs=1e-6)
    found = [g.item() for g in passed.dW]
    assert found == pytest.approx([0.0582276, 0.2165066, 0.9113513], abs=1e-7)


MIXED = [
    nn.Tanh(),
    nn.ReLU(),
    nn.GELU(),
    nn.SiLU(),
    nn.Softplus(),
    nn.ELU(),
    nn.LeakyReLU(),
    nn.Sigmoid(),
]


def test_every_slope_is_in_the_mix() -> None:
    assert {type(m) for m in MIXED} | {nn.Identity} == set(SLOPES)


@pytest.mark.parametrize("loss", ["half_squared", "squared", "cross_entropy", "bce"])
def test_backprop_is_autograd(loss: str) -> None:
    net = dense([4, 5, 6, 5, 4, 5, 6, 5, 4, 3], [*MIXED, nn.Identity()])
    x = normal(7, 4, seed=3).requires_grad_()
    y: Tensor = normal(7, 3, seed=4)
    out = net(x)
    if loss == "cross_entropy":
        y = torch.arange(7) % 3
        total = nn.functional.cross_entropy(out, y, reduction="sum")
    elif loss == "bce":
        y = (y > 0).double()
        total = nn.functional.binary_cross_entropy_with_logits(out, y, reduction="sum")
    else:
        total = (0.5 if loss == "half_squared" else 1.0) * (out - y).square().sum()
    dx, *grads = torch.autograd.grad(total, [x, *net.parameters()])
    passed = backprop(net, x.detach(), y, loss)
    ours = [g for pair in zip(passed.dW, passed.db, strict=True) for g in pair]
    for a, b in zip([passed.dx, *ours], [dx, *grads], strict=True):
        assert torch.allclose(a, b, rtol=1e-12, atol=1e-12)
    assert passed.loss.item() == pytest.approx(total.item(), rel=1e-12)
    assert len(passed.z) == 9 and len(passed.a) == 10  # kept: linear in depth


def test_backprop_says_what_it_cannot() -> None:
    with pytest.raises(Unsupported, match="but met Conv1d; use torch.autograd"):
        backprop(nn.Sequential(nn.Conv1d(1, 1, 1)), t([[1.0]]), t([[1.0]]))
    with pytest.raises(Unsupported, match="knows the losses half_squared"):
        backprop(dense([1, 1], [nn.Tanh()]), t([[1.0]]), t([[1.0]]), "hinge")
    with pytest.raises(ShapeError, match=r"y has shape \(1, 2\), but the network gives \(1, 1\)"):
        backprop(dense([1, 1], [nn.Tanh()]), t([[1.0]]), t([[1.0, 2.0]]))


def test_target_gradients_are_the_elements() -> None:
    """∂e'/∂U_ij = x_i (h_j − ĥ_j) h'_j, and a unit step makes it backpropagation."""
    layer = TargetEnergy(3, 2).double()
    x, down = normal(1, 3), normal(1, 2, seed=1)
    h = layer.activate(x).detach()
    target = h - down  # step 1 along −∂L/∂h
    (U,) = torch.autograd.grad(layer(x=x, y=target).sum(), layer.U)
    slope = 1 - h.square()
    for i in range(3):
        for j in range(2):
            want = x[0, i] * (h[0, j] - target[0, j]) * slope[0, j]
            assert U[i, j].item() == pytest.approx(want.item(), abs=1e-15)
    net = nn.Sequential(nn.Linear(3, 2), nn.Tanh()).double()
    net[0].weight.data, net[0].bias.data = layer.U.detach().T.clone(), layer.c.detach().clone()
    (W,) = torch.autograd.grad((net(x) * down).sum(), net[0].weight)  # ∂L/∂h = down
    assert (W.T - U).abs().max().item() <= 1e-16


# --- checks by differences -------------------------------------------------------------------


class Net(nn.Module):
    def __init__(self, kind: type[nn.Module] = nn.Tanh) -> None:
        super().__init__()
        self.net = dense([4, 5, 6, 3], [kind(), kind(), nn.Identity()])

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return 0.5 * (self.net(x) - y).square().sum(1)


def by_hand(net: Net, drop: bool) -> Any:
    def gradient(x: Tensor, y: Tensor) -> Mapping[str, Tensor]:
        passed = backprop(net.net, x, y)
        linear = net.net[2]
        below = passed.delta[2] @ net.net[4].weight  # type: ignore[operator]
        d2 = below if drop else passed.delta[1]  # the slope σ' is forgotten
        down = d2 @ linear.weight  # type: ignore[operator]
        d1 = down * (1 - passed.a[1].square())
        return {
            "net.0.weight": d1.T @ x, "net.2.weight": d2.T @ passed.a[1], "net.4.weight": passed.dW[2],
            "x": d1 @ net.net[0].weight,  # type: ignore[operator]
        }  # fmt: skip

    return gradient


def test_gradcheck_catches_a_dropped_slope() -> None:
    net, inputs = Net(), {"x": normal(3, 4, seed=5), "y": normal(3, 3, seed=6)}
    right = gradcheck(net, inputs, gradient=by_hand(net, drop=False))
    assert right.worst < 1e-8
    with pytest.raises(Mismatch, match=r"gradient in '.*' is wrong: its relative error"):
        gradcheck(net, inputs, gradient=by_hand(net, drop=True))
    wrong = gradcheck(net, inputs, gradient=by_hand(net, drop=True), rtol=1e9)
    assert wrong.worst > 0.5
    own = gradcheck(net, inputs)
    assert own.worst < 1e-8 and {"x", "y", "net.0.weight", "net.4.bias"} <= set(own.errors)


def test_gradcheck_leaves_kinks_out() -> None:
    x = t([[0.0, 1.0, -1.0, 3e-7]])
    report = gradcheck(lambda x: torch.relu(x).sum(1), {"x": x}, ("x",))
    assert report.kinks == [("x", 0), ("x", 3)]
    assert report.errors["x"] < 1e-9


def test_gradcheck_takes_directions_for_many_numbers() -> None:
    A = normal(300, 300) / 300
    calls = 0

    def f(x: Tensor) -> Tensor:
        nonlocal calls
        calls += 1
        return torch.tanh(x @ A).sum(1)

    report = gradcheck(f, {"x": normal(1, 300, seed=1)}, ("x",), n_directions=5)
    assert report.worst < 1e-6 and calls < 15
    with pytest.raises(Mismatch):
        gradcheck(f, {"x": normal(1, 300, seed=1)}, ("x",), gradient=lambda x: {"x": 1.01 * x})


def test_gradcheck_of_an_energy() -> None:
    e = LinearEnergy(2, 3, scale=1.0)
    report = gradcheck(e, {"x": normal(4, 2), "y": torch.tensor([0, 1, 2, 0])})
    assert set(report.errors) == {"x", "W", "b"} and report.worst < 1e-8
    assert next(e.parameters()).dtype == torch.float32  # a copy was checked
    with pytest.raises(Unsupported, match="nothing to differentiate"):
        gradcheck(lambda y: y.sum(), {"y": torch.tensor([1])})


# --- forward and reverse mode ----------------------------------------------------------------


@pytest.mark.parametrize(("n", "m"), [(3, 8), (8, 3)])
def test_modes_agree(n: int, m: int) -> None:
    net = dense([n, 6, m], [nn.Tanh(), nn.Sigmoid()])
    x, u, v = normal(n, seed=1), normal(n, seed=2), normal(m, seed=3)
    forward, reverse = (jacobian(net, x, mode) for mode in ("forward", "reverse"))
    assert forward.shape == (m, n)
    assert torch.allclose(forward, reverse, atol=1e-10)
    assert torch.equal(jacobian(net, x), forward if n < m else reverse)
    (value, Ju), (same, Jv) = jvp(net, x, u), vjp(net, x, v)
    assert torch.allclose(value, net(x)) and torch.allclose(same, net(x))
    assert (v @ Ju).item() == pytest.approx((Jv @ u).item(), abs=1e-12)
    assert torch.allclose(Ju, forward @ u) and torch.allclose(Jv, v @ reverse)
    with pytest.raises(ValueError, match="mode must be"):
        jacobian(net, x, "backward")  # type: ignore[arg-type]


# --- single examples -------------------------------------------------------------------------


def test_per_example_gradients() -> None:
    net = dense([4, 5, 3], [nn.Tanh(), nn.Identity()])
    X, y = normal(10, 4, seed=1), torch.arange(10) % 3
    params = dict(net.named_parameters())

    def loss(p: Mapping[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        return nn.functional.cross_entropy(torch.func.functional_call(net, dict(p), (x,)), y)

    each = per_example_grads(loss, params, X, y, chunk=4)
    total = nn.functional.cross_entropy(net(X), y, reduction="sum")
    full = torch.autograd.grad(total, list(params.values()))
    for (name, g), f in zip(each.items(), full, strict=True):
        assert g.shape == (10, *params[name].shape)
        assert torch.allclose(g.sum(0), f, atol=1e-6)
    # the mean over all batches of three is the mean gradient
    flat = torch.cat([g.reshape(10, -1) for g in each.values()], 1)
    batches = torch.tensor(list(combinations(range(10), 3)))
    assert torch.allclose(flat[batches].mean(1).mean(0), flat.mean(0), atol=1e-12)
    noise = gradient_noise(each)
    assert noise.variance == pytest.approx(torch.cov(flat.T).trace().item())
    assert noise.scale == pytest.approx(noise.variance / flat.mean(0).square().sum().item())
    with pytest.raises(ValueError, match="at least two examples"):
        gradient_noise({"w": torch.ones(1, 2)})


# --- the input -------------------------------------------------------------------------------


def linear_energy(rows: list[list[float]]) -> LinearEnergy:
    e = LinearEnergy(2, len(rows), bias=False).double()
    e.W.data = t(rows)
    return e


def test_adapting_the_input_of_a_perceptron() -> None:
    """w_y = (1, 0), w_ŷ = (0, 2), x = (.3, .4), η = .1: the gap .5 closes by η‖w_y − w_ŷ‖² = .5."""
    e, y = linear_energy([[1.0, 0.0], [0.0, 2.0]]), torch.tensor([0])
    x = t([[0.3, 0.4]])
    assert saliency(e, x, y, Perceptron()).tolist() == [[-1.0, 2.0]]  # −w_y + w_ŷ
    moved = adapt_input(e, x, y, steps=1, lr=0.1, rule=Perceptron())
    assert moved.loss[:, 0].tolist() == pytest.approx([0.5, 0.0], abs=1e-12)
    assert torch.allclose(moved.x, t([[0.4, 0.2]]))
    assert all(p.grad is None for p in e.parameters())


def test_a_step_on_a_linear_energy() -> None:
    """x = (1, 2), w = (.5, −1), b = .3, η = .1: e_y falls by η(‖x‖² + 1), from 1.2 to .6."""
    e, x, y = LinearEnergy(2, 2).double(), t([[1.0, 2.0]]), torch.tensor([0])
    assert e.b is not None
    e.W.data[0], e.b.data[0] = t([0.5, -1.0]), 0.3
    before = e(x=x, y=y)
    grads = torch.autograd.grad(before.sum(), list(e.parameters()))
    with torch.no_grad():
        for p, g in zip(e.parameters(), grads, strict=True):
            p -= 0.1 * g
    assert [before.item(), e(x=x, y=y).item()] == pytest.approx([1.2, 0.6])


def test_inputs_must_be_floats() -> None:
    e = linear_energy([[1.0, 0.0], [0.0, 2.0]])
    with pytest.raises(DataError, match="x is torch.int64, which has no gradient"):
        saliency(e, torch.ones(1, 2, dtype=torch.long), torch.tensor([0]))
    with pytest.raises(ValueError, match="need steps >= 0 and lr > 0"):
        adapt_input(e, t([[1.0, 1.0]]), torch.tensor([0]), lr=0.0)
    still = adapt_input(e, t([[1.0, 1.0]]), torch.tensor([0]), steps=0)
    assert still.loss.shape == (1, 1) and math.isfinite(still.loss.item())
