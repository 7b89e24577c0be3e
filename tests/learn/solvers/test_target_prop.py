"""Alternating targets: unit steps are SGD, exact targets lower the loss, more steps may not."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from torch import nn

from groundstate.energy import LinearEnergy, NetClassEnergy, StackedEnergies, TargetEnergy
from groundstate.errors import Unsupported
from groundstate.learn import L2, AlternatingTargets, SoftMin, Stochastic, fit, sgd
from groundstate.learn.solvers.target_prop import hidden_layers

F64 = torch.float64


def problem(seed: int = 0, n: int = 60):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 4, generator=g, dtype=F64)
    y = (x[:, 0] * x[:, 1] > 0).long() + (x[:, 2] > 0.5).long()
    return NetClassEnergy(4, 3, (5, 6), generator=g).double(), {"x": x, "y": y}


@pytest.mark.parametrize("weighted", [False, True])
def test_unit_steps_are_stochastic_gradient_descent(weighted):
    (a, data), (b, _) = problem(), problem()
    weight = 0.5 + torch.arange(60, dtype=F64) % 3 if weighted else None
    common = {"sample_weight": weight, "random_state": 0}
    one = fit(a, data, SoftMin(), AlternatingTargets(lr=0.1, batch_size=16, max_epochs=5), **common)
    two = fit(
        b, data, SoftMin(), Stochastic(sgd, lr=0.1, batch_size=16, max_epochs=5, tol=None), **common
    )
    for p, q in zip(a.parameters(), b.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=0, atol=1e-12)
    assert one.objective == pytest.approx(two.objective, abs=1e-12)


def test_a_smaller_step_is_a_smaller_rate_for_the_hidden_layers():
    (a, data), (b, _) = problem(), problem()
    layers = hidden_layers(a)
    assert len(layers) == 2
    fit(a, data, SoftMin(), AlternatingTargets(step=0.5, lr=0.1, batch_size=None, max_epochs=1))
    fit(b, data, SoftMin(), Stochastic(sgd, lr=0.1, batch_size=None, max_epochs=1, tol=None))
    start = dict(problem()[0].named_parameters())
    hidden = {id(p) for layer in layers for p in layer.parameters()}
    for (name, p), q in zip(a.named_parameters(), b.parameters(), strict=True):
        factor = 0.5 if id(p) in hidden else 1.0
        torch.testing.assert_close(p - start[name], factor * (q - start[name]), rtol=0, atol=1e-12)


def test_many_inner_steps_can_raise_the_loss_midway():
    rises = 0
    for seed in range(10):
        energy, data = problem(seed)
        solver = AlternatingTargets(
            step=3.0, inner_steps=20, lr=0.5, batch_size=None, max_epochs=10, record=True
        )
        inner = fit(energy, data, SoftMin(), solver).extra["inner"]
        assert len(inner) == 200
        rises += any(b > a + 1e-9 for a, b in pairwise(inner))
    assert rises > 0


def test_reached_targets_lower_the_loss():
    energy, data = problem()
    solver = AlternatingTargets(step=0.05, inner_steps=50, lr=0.2, batch_size=None, max_epochs=40)
    history = fit(energy, data, SoftMin(), solver)
    assert history.objective[-1] < 0.9 * history.objective[0]
    assert all(b < a + 1e-6 for a, b in pairwise(history.objective))


def test_targets_of_a_stack_of_energies():
    # the layers of the hand-written reference, under the same top
    g = torch.Generator().manual_seed(0)
    stack = StackedEnergies([TargetEnergy(4, 5, generator=g)], LinearEnergy(5, 3)).double()
    _, data = problem()
    target = data["x"] @ torch.randn(4, 5, generator=g, dtype=F64)
    layer = stack.stack[0]
    h = layer.activate(data["x"]).detach()
    gradients = layer.gradients(data["x"], target, h)
    e = layer(x=data["x"], y=target).sum()
    by_autograd = torch.autograd.grad(e, [layer.U, layer.c])
    torch.testing.assert_close(gradients.U, by_autograd[0], rtol=0, atol=1e-12)


def test_named_layers():
    energy, data = problem()
    first = [nn.Sequential(*list(hidden_layers(energy)[0]))]
    solver = AlternatingTargets(lr=0.1, max_epochs=2, layers=lambda e: first)
    history = fit(energy, data, SoftMin(), solver)
    assert len(history.objective) == 2


def test_says_why_it_cannot_run():
    _, data = problem()
    with pytest.raises(Unsupported, match="no hidden layers"):
        fit(LinearEnergy(4, 3).double(), data, SoftMin(), AlternatingTargets())
    with pytest.raises(Unsupported, match="no penalty"):
        fit(problem()[0], data, SoftMin(), AlternatingTargets(), penalty=L2(1.0))
    with pytest.raises(ValueError, match="inner_steps must be at least 1"):
        AlternatingTargets(inner_steps=0)
