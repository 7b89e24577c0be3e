r"""Reverse mode gives all derivatives for the price of a few forward passes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from groundstate.compute.device import threads
from groundstate.compute.random import Key
from groundstate.energy.networks.network import NetworkClassEnergy
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.tools import blobs
from groundstate.learn import AlternatingTargets, SoftMin, fit
from groundstate.learn.gradients import gradcheck, jacobian
from groundstate.learn.gradients.backprop import backprop as by_hand
from groundstate.nn import MLP

WIDTHS = (8, 16, 32, 64, 128, 256)
DIFFERENCED = 3  # the widths for which every parameter is moved
NARROW, WIDE = 50, 500


def seconds(f: Callable[[], Any], repeats: int = 15) -> float:
    """The least time of several calls."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        f()
        best = min(best, time.perf_counter() - start)
    return best


def differences(net: nn.Module, loss: Callable[[], Tensor], h: float = 1e-6) -> Tensor:
    """Central differences, two forward passes for every parameter."""
    slopes = []
    with torch.no_grad():
        for p in net.parameters():
            flat = p.view(-1)
            for i in range(flat.numel()):
                kept = float(flat[i])
                flat[i] = kept + h
                up = float(loss())
                flat[i] = kept - h
                slopes.append((up - float(loss())) / (2 * h))
                flat[i] = kept
    return torch.tensor(slopes, dtype=torch.float64)


@experiment(
    "NEU-X-backprop",
    theme="neural",
    title="Right gradients at the price of a few passes",
    slow=True,
)
def backprop(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Backward, :math:`\delta_j = \sigma_j'(z_j)\odot(\delta_{j+1}W_{j+1})` gives every
    :math:`\partial L/\partial\theta` at once, for about the price of two more forward passes whatever
    the number of parameters; differences :math:`(L(\theta+h) - L(\theta-h))/2h` need two passes each.
    A Jacobian of m outputs in n inputs takes n forward or m reverse sweeps. Targets for every layer,
    :math:`\hat h = h - \eta\nabla_hL`, are the same step when each layer moves once; when it moves on
    alone, the loss may rise on the way.

    tanh nets d-d-d-1 for d = 8 to 256, 64 rows, float64, one thread; Jacobians of 50 → 500 and
    500 → 50; targets on three clouds with 10 steps of each layer.
    Quick runs stop at d = 64 and take the least of 5 instead of 15 times.
    """
    key, widths, repeats = Key.of(seed), WIDTHS[:4] if quick else WIDTHS, 5 if quick else 15
    errors, hand = [], []
    spent: dict[str, list[float]] = {"forward": [], "reverse": [], "differences": []}
    sizes = []
    with threads(1):
        for d in widths:
            net = MLP(d, (d, d), 1, "tanh", generator=key.fold("net", d).torch()).double()
            g = key.fold("rows", d).torch()
            x = torch.randn(64, d, generator=g, dtype=torch.float64)
            y = torch.randn(64, 1, generator=g, dtype=torch.float64)

            def loss(net: MLP = net, x: Tensor = x, y: Tensor = y) -> Tensor:
                return 0.5 * (net(x) - y).square().sum()

            def reverse(net: MLP = net, loss: Callable[[], Tensor] = loss) -> Tensor:
                grads = torch.autograd.grad(loss(), list(net.parameters()))
                return torch.cat([v.reshape(-1) for v in grads])

            passed = by_hand(net, x, y)
            own = torch.cat([v.reshape(-1) for pair in zip(passed.dW, passed.db) for v in pair])
            there = reverse()
            hand.append(float((own - there).abs().max() / there.abs().max()))
            errors.append(gradcheck(net, {"x": x}, ("x", "theta"), seed=seed).worst)
            sizes.append(net.n_parameters)
            spent["forward"].append(seconds(loss, repeats))
            spent["reverse"].append(seconds(reverse, repeats))
            if len(sizes) <= DIFFERENCED:
                spent["differences"].append(seconds(lambda: differences(net, loss), 1))  # noqa: B023
        modes: dict[str, dict[str, float]] = {}
        for n, m in ((NARROW, WIDE), (WIDE, NARROW)):
            f = MLP(n, (256, 256), m, "tanh", generator=key.fold("map", n).torch()).double()
            at = torch.randn(n, generator=key.fold("at", n).torch(), dtype=torch.float64)
            with torch.no_grad():
                agree = float((jacobian(f, at, "forward") - jacobian(f, at, "reverse")).abs().max())
                modes[f"{n} → {m}"] = {
                    "forward": seconds(lambda: jacobian(f, at, "forward"), repeats),  # noqa: B023
                    "reverse": seconds(lambda: jacobian(f, at, "reverse"), repeats),  # noqa: B023
                    "differ": agree,
                }

    rows, labels = blobs(key.fold("clouds"), ((0.0, 1.5), (-1.5, -0.8), (1.5, -0.8)), 0.6, 150)
    trace = {}
    for inner in (1, 10):
        energy = NetworkClassEnergy(
            2, 3, MLP(2, (8, 8), 3, "tanh", generator=key.fold("targets").torch())
        )
        solver = AlternatingTargets(step=20.0, inner_steps=inner, lr=0.5, batch_size=None,
                                    max_epochs=100 // inner, record=True)  # fmt: skip
        history = fit(energy, {"x": rows.float(), "y": labels}, SoftMin(), solver,
                      random_state=key.fold("fit"))  # fmt: skip
        trace[inner] = [history.objective[0], *history.extra["inner"]]
    rises = int((np.diff(trace[10]) > 0).sum())
    ratio = [r / f for r, f in zip(spent["reverse"], spent["forward"])]
    growth = np.polyfit(np.log(sizes[:DIFFERENCED]), np.log(spent["differences"]), 1)[0]
    few, many = modes[f"{NARROW} → {WIDE}"], modes[f"{WIDE} → {NARROW}"]
    claims = [
        Claim.at_most("backprop by hand against autograd, relative", max(hand), 1e-12),
        Claim.at_most("autograd against differences, largest relative error", max(errors), 1e-6),
        Claim.at_most("Jacobians by both modes, largest difference",
                      max(m["differ"] for m in modes.values()), 1e-12),
        Claim.at_least("targets, 10 steps a layer: times the loss rose", rises, 1),
        Claim.below("targets: loss at the end, against the start", trace[10][-1], trace[10][0]),
        Claim.at_most("time of gradient over forward pass, largest", max(ratio), 5).on_the_clock(),
        Claim.between("time of differences as a power of the parameters", float(growth), 0.8, 1.3)
        .on_the_clock(),
        Claim.below("50 → 500: time of forward mode over reverse", few["forward"] / few["reverse"], 1)
        .on_the_clock(),
        Claim.below("500 → 50: time of reverse mode over forward", many["reverse"] / many["forward"],
                    1).on_the_clock(),
    ]  # fmt: skip
    numbers = {"parameters": sizes, "errors": errors, "by hand": hand, "rises": rises,
               "loss with targets": [round(v, 6) for v in trace[10]]}  # fmt: skip
    times = {**spent, "ratio": ratio, "modes": modes}

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        for (name, values), colour in zip(spent.items(), COLOURS):
            left.loglog(sizes[: len(values)], values, "o-", color=colour, label=name)
        left.set(title="seconds", xlabel="parameters")
        right.plot(trace[10], color=COLOURS[1], label="10 steps of each layer")
        right.plot(
            range(0, len(trace[10]), 10), trace[10][::10], "o", color=COLOURS[1], markersize=3
        )
        right.plot(trace[1], color=COLOURS[0], label="1 step: gradient descent")
        right.set(title="loss with targets for the layers (dots: new targets)", xlabel="inner step")
        for ax in (left, right):
            ax.legend()

    return Result(claims, numbers, draw, seconds=times, size=(9.5, 3.5))
