r"""Backpropagation is every layer stepping towards a target; more than one step is not."""

from __future__ import annotations

import torch
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.energy import DistributionHead, NetClassEnergy, StackedEnergies, TargetEnergy
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.tools import blobs
from groundstate.learn import AlternatingTargets, History, SoftMin, Stochastic, fit, sgd

RATE, STEP, INNER, ROUNDS = 0.7, 1.0, 20, 15


@experiment("ENE-X-targets", theme="energy", title="Unit-step targets are backprop")
def targets(seed: int = 0, *, quick: bool = False) -> Result:
    r"""With :math:`\hat h = h - \nabla_h L` and one step per layer, targets are backpropagation.

    A layer's own energy is :math:`e' = \tfrac12\|h - \hat h\|^2`; its gradient at the unit-step target
    is :math:`(\partial h/\partial U)\nabla_h L`, to the last bit that of the chain rule (a tanh network
    4-5-6-3). With 20 steps towards the same target every layer is fitted as if the others stood
    still, and the true loss rises midway for some of 10 seeds.
    """
    key = Key.of(seed)
    gap = max(_gap(key.fold("stack", i)) for i in range(3))
    same, risen, curves = 0.0, 0, []
    for i in range(10):
        x, y = blobs(key.fold("data", i), [[1, 1], [-1, -1], [1, -1], [-1, 1]], 0.4, 80)
        data = {"x": x, "y": y % 2}
        many = _learn(key.fold("net", i), data, AlternatingTargets(
            step=STEP, inner_steps=INNER, lr=RATE, batch_size=None, max_epochs=ROUNDS, record=True
        ))[1]  # fmt: skip
        inner = torch.tensor(many.extra["inner"], dtype=torch.float64)
        start = torch.tensor(many.objective[:1], dtype=torch.float64)
        trace = torch.cat([start, inner])
        risen += bool((trace.diff() > 1e-12).any())
        curves.append(trace)
        if i < 3:
            one = AlternatingTargets(lr=RATE, batch_size=None, max_epochs=ROUNDS)
            plain = Stochastic(sgd, lr=RATE, batch_size=None, max_epochs=ROUNDS, tol=None)
            theirs, history = _learn(key.fold("net", i), data, plain)
            ours, _ = _learn(key.fold("net", i), data, one)
            same = max(same, float((ours - theirs).abs().max()))
            if i == 0:
                single = torch.tensor(history.objective)

    claims = [
        Claim.below("gap of layer-by-layer gradients to autograd, 4-5-6-3", gap, 1e-12),
        Claim.below("gap of θ to gradient descent after one step per target", same, 1e-12),
        Claim.at_least("seeds of 10 whose loss rises midway with 20 steps", risen, 1),
    ]
    numbers = {"gradient gap": gap, "one-step gap": same, "seeds with a rise": risen}

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        left.plot(single.numpy(), color=COLOURS[0], label="1 step per target = gradient descent")
        outer = curves[0][::INNER].numpy()
        left.plot(outer, color=COLOURS[1], label=f"{INNER} steps per target")
        left.set(title="loss, one seed", xlabel="round of targets")
        left.legend()
        for trace in curves:
            right.plot(trace.numpy(), color=COLOURS[1], linewidth=0.7)
        right.set(title="loss after every inner step, ten seeds", xlabel="inner step")

    return Result(claims, numbers, draw)


def _gap(key: Key) -> float:
    """Largest difference between hand-made and autograd gradients of a 4-5-6-3 tanh network."""
    generator = key.torch()
    layers = [TargetEnergy(4, 5, generator=generator), TargetEnergy(5, 6, generator=generator)]
    top = DistributionHead("categorical", 6, 3, generator=generator)
    stack = StackedEnergies(layers, top).double()
    x = torch.randn(32, 4, generator=generator, dtype=torch.float64)
    batch = {"x": x, "y": torch.randint(3, (32,), generator=generator)}
    ours = stack.gradients(batch)
    stack(batch).sum().backward()
    return max(
        float((ours[name] - p.grad).abs().max())
        for name, p in stack.named_parameters()
        if p.grad is not None
    )


def _learn(
    key: Key, data: dict[str, Tensor], solver: AlternatingTargets | Stochastic
) -> tuple[Tensor, History]:
    energy = NetClassEnergy(2, 2, (8, 8), generator=key.torch()).double()
    history = fit(energy, data, SoftMin(), solver, random_state=0)
    return torch.cat([p.detach().reshape(-1) for p in energy.parameters()]), history
