r"""Networks written down reach any accuracy; trained ones need fewer units and store no values."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from groundstate.compute.random import Key
from groundstate.energy.networks.location import LocationHead
from groundstate.energy.networks.network import NetworkEnergy
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.neural.panels import network_of
from groundstate.learn import learn_population
from groundstate.nn import MLP
from groundstate.nn.piecewise import construct

A, B = -math.pi, math.pi
FREQUENCIES = (1, 5)
UNITS = (20, 40, 80, 160, 320)
WIDTH = 20  # of the trained nets


def wave(frequency: int, x: Tensor) -> Tensor:
    return torch.sin(frequency * x)


@torch.no_grad()
def worst(net: nn.Module, frequency: int) -> float:
    """Largest error on 20,001 points of the interval."""
    like = next(net.parameters())
    x = torch.linspace(A, B, 20_001, dtype=like.dtype)[:, None]
    return float((net(x) - wave(frequency, x)).abs().max())


def slope(errors: list[float]) -> float:
    return float(np.polyfit(np.log(UNITS), np.log(errors), 1)[0])


@torch.no_grad()
def stored(net: nn.Module, frequency: int, rise: float) -> float:
    r"""Distance between f and what the output weights add up to on the way along x.

    A unit :math:`v\,a(wx + b)` rises by ``rise`` · v around :math:`-b/w`; where the weights store
    the function, the sum of all rises so far is f there, up to a constant.
    """
    first, last = (m for m in net.modules() if isinstance(m, nn.Linear))
    w = first.weight[:, 0].double()
    place, order = (-first.bias.double() / w).sort()
    jump = rise * (last.weight[0].double() * w.sign())[order]
    inside = (place > A) & (place < B)
    gap = ((jump.cumsum(0) - 0.5 * jump) - wave(frequency, place))[inside]
    return float((gap - gap.mean()).square().mean().sqrt())


@experiment(
    "NEU-X-uat", theme="neural", title="Approximation: construction against training", slow=True
)
def uat(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Cut [a, b] into N parts and answer each with the value in its middle: N step units reach
    :math:`\sup|f - \hat f| \le L(b-a)/2N`; N pieces of lines reach :math:`O(N^{-2})`. Their output
    weights are the values of f, one after the other. A trained net gets as close with fewer units,
    and its output weights are nothing of the kind.

    sin x and sin 5x on [−π, π], 20 to 320 units; eight nets of 20 tanh units, 3,000 steps of Adam on
    256 points, the best of them. Distance of the weights' running sum from f: root mean square.
    Quick runs train three nets.
    """
    key = Key.of(seed)
    x = torch.linspace(A, B, 256)[:, None]
    errors: dict[str, list[float]] = {}
    claims, best, need, distance = [], {}, {}, {}
    for k in FREQUENCIES:
        name = "sin x" if k == 1 else f"sin {k}x"
        f = partial(wave, k)
        steps = [construct.step(f, A, B, n=n) for n in UNITS]
        lines = [construct.relu_interpolant(np.linspace(A, B, n + 1), f) for n in UNITS]
        errors[f"{name}, steps"] = [worst(net, k) for net in steps]
        errors[f"{name}, ReLU"] = [worst(net, k) for net in lines]
        over = max(e / (k * (B - A) / (2 * n)) for e, n in zip(errors[f"{name}, steps"], UNITS))
        learned = learn_population(
            lambda generator: NetworkEnergy(1, LocationHead("squared_error"),
                                            MLP(1, (WIDTH,), 1, "tanh", init="torch",
                                                generator=generator)),
            3 if quick else 8, {"x": x, "y": f(x)}, lr=0.03, epochs=3000, batch_size=None, schedule="cosine",
            seed=key.fold("train", k),
        )  # fmt: skip
        nets = sorted(
            (network_of(member.energy) for member in learned), key=lambda net: worst(net, k)
        )
        best[name] = nets[0]
        reached = worst(nets[0], k)
        errors[f"{name}, trained"] = [worst(net, k) for net in nets]
        need[name] = k * (B - A) / (2 * reached)
        distance[name] = [stored(steps[2], k, 1.0), stored(nets[0], k, 2.0)]
        claims += [
            Claim.at_most(f"{name}: error of steps over L(b − a)/2N, largest", over, 1.05),
            Claim.close(f"{name}: slope of the error, steps", slope(errors[f"{name}, steps"]), -1,
                        tol=0.15),
            Claim.close(f"{name}: slope of the error, ReLU", slope(errors[f"{name}, ReLU"]), -2,
                        tol=0.15),
            Claim.below(f"{name}: error of {WIDTH} trained units, against {WIDTH} steps", reached,
                        errors[f"{name}, steps"][0]),
            Claim.above(f"{name}: steps that reach the error of {WIDTH} trained units", need[name],
                        WIDTH),
            Claim.at_most(f"{name}: running sum of 80 step weights, distance from f",
                          distance[name][0], 0.05),
            Claim.above(f"{name}: the same of the trained weights", distance[name][1], 0.5),
        ]  # fmt: skip
    numbers = {"units": list(UNITS), "errors": errors, "steps needed": need, "distance": distance}

    def draw(figure: Figure) -> None:
        left, middle, right = figure.subplots(1, 3, width_ratios=(1.2, 1, 1))
        for (name, values), colour in zip(
            ((n, v) for n, v in errors.items() if "trained" not in n), COLOURS
        ):
            left.loglog(UNITS, values, "o-", color=colour, markersize=3, label=name)
        for name, colour in zip(best, (COLOURS[4], COLOURS[5])):
            left.loglog(WIDTH, errors[f"{name}, trained"][0], "*", color=colour, markersize=9,
                        label=f"{name}, trained")  # fmt: skip
        left.set(title="largest error", xlabel="units")
        left.legend()
        at = torch.linspace(A, B, 1000, dtype=torch.float64)[:, None]
        with torch.no_grad():
            middle.plot(at, wave(5, at), color="black", linewidth=0.8)
            middle.plot(at, construct.step(partial(wave, 5), A, B, n=40)(at), color=COLOURS[0],
                        linewidth=0.8, label="40 steps")  # fmt: skip
            middle.plot(
                at, best["sin 5x"](at.float()), "--", color=COLOURS[4], label="20 trained units"
            )
        middle.set(title="sin 5x", ylim=(-1.2, 1.7))
        middle.legend(ncols=2)
        for net, label, colour in ((construct.step(partial(wave, 1), A, B, n=80), "steps", COLOURS[0]),
                                   (best["sin x"], "trained", COLOURS[4])):  # fmt: skip
            first, last = (m for m in net.modules() if isinstance(m, nn.Linear))
            place = (-first.bias / first.weight[:, 0]).detach()
            right.plot(place, last.weight[0].detach(), ".", color=colour, label=label)
        right.set(title="sin x: output weights by place", xlabel="−b/w", xlim=(-8, 8))
        right.legend()

    return Result(claims, numbers, draw, size=(11.5, 3.5))
