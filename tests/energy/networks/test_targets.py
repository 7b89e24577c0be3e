"""Backpropagation as stacked target energies."""

from __future__ import annotations

import pytest
import torch

from groundstate.energy import DistributionHead, SquaredEnergy, StackedEnergies, TargetEnergy
from groundstate.energy.networks.targets import SQUASH
from groundstate.errors import Unsupported

F64 = torch.float64


def layer(activation: str = "tanh") -> tuple[TargetEnergy, torch.Tensor, torch.Tensor]:
    g = torch.Generator().manual_seed(0)
    e = TargetEnergy(3, 2, activation, generator=g).double()
    return e, torch.randn(5, 3, generator=g, dtype=F64), torch.randn(5, 2, generator=g, dtype=F64)


@pytest.mark.parametrize("activation", list(SQUASH))
def test_target_gradients_by_hand(activation: str) -> None:
    e, x, target = layer(activation)
    own = e.gradients(x, target)
    x.requires_grad_()
    grads = torch.autograd.grad(e(x=x, y=target).sum(), [e.U, e.c, x])
    for ours, truth in zip((own.U, own.c, own.x), grads):
        assert torch.allclose(ours, truth, atol=1e-12)


def test_target_gradients_against_differences() -> None:
    e, x, target = layer()
    own, h = e.gradients(x, target), 1e-6
    for parameter, grad in ((e.U, own.U), (e.c, own.c)):
        for i in range(parameter.numel()):
            flat = parameter.data.view(-1)
            flat[i] += h
            up = e(x=x, y=target).sum()
            flat[i] -= 2 * h
            down = e(x=x, y=target).sum()
            flat[i] += h
            assert ((up - down) / (2 * h) - grad.view(-1)[i]).abs() < 1e-8


def test_gradient_vanishes_at_the_target() -> None:
    e, x, target = layer()
    at = e.gradients(x, e.activate(x).detach())
    assert at.U.abs().max() == 0 and at.c.abs().max() == 0
    assert e.gradients(x, target).c.abs().max() > 0.1
    target.requires_grad_()  # the target is held fixed
    assert torch.autograd.grad(e(x=x, y=target).sum(), target, allow_unused=True) == (None,)


def test_update_is_hebbian_in_the_target() -> None:
    e, x, target = layer("identity")
    own = e.gradients(x, target)
    assert torch.allclose(-own.U, x.T @ target - x.T @ e.activate(x))


def stack(top: SquaredEnergy | DistributionHead) -> StackedEnergies:
    g = torch.Generator().manual_seed(0)
    layers = [TargetEnergy(4, 5, generator=g), TargetEnergy(5, 6, generator=g)]
    return StackedEnergies(layers, top).double()


@pytest.mark.parametrize("kind", ["squared", "classes"])
def test_unit_steps_are_backpropagation(kind: str) -> None:
    g = torch.Generator().manual_seed(1)
    x = torch.randn(8, 4, generator=g, dtype=F64)
    if kind == "squared":
        net, y = stack(SquaredEnergy(6, 3)), torch.randn(8, 3, generator=g, dtype=F64)
        net.top.W.data.normal_(generator=g)  # type: ignore[operator, union-attr]
    else:
        net = stack(DistributionHead("categorical", 6, 3, generator=g))
        y = torch.randint(3, (8,), generator=g)
    batch = {"x": x, "y": y}
    ours = net.gradients(batch)
    names, parameters = zip(*net.named_parameters())
    truth = torch.autograd.grad(net(batch).sum(), parameters)
    assert set(ours) == set(names)
    for name, grad in zip(names, truth):
        assert (ours[name] - grad).abs().max() < 1e-12


def test_dropping_the_slope_is_wrong() -> None:
    """∇_z = U(∇_h ⊙ h′), not U∇_h."""
    e, x, target = layer()
    own = e.gradients(x, target)
    without = (e.activate(x) - target) @ e.U.T
    assert (without - own.x).abs().max() > 0.5


def test_unknown_activation() -> None:
    with pytest.raises(Unsupported, match="not one of tanh"):
        TargetEnergy(2, 2, "step")
