r"""The larger the penalty on weights, the smoother the function."""

from __future__ import annotations

from typing import cast

import numpy as np
import torch
from torch import Tensor, nn

from groundstate.compute.random import Key
from groundstate.energy.networks.location import LocationHead
from groundstate.energy.networks.network import NetworkEnergy
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.learn import NLL, learn_population
from groundstate.nn import MLP

ROWS, NOISE, DRAWS = 20, 0.3, 6
STRENGTHS = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)


def make(generator: torch.Generator) -> NetworkEnergy:
    """100 tanh units for 20 rows, with joints spread over the line."""
    net = MLP(1, (100,), 1, "tanh", generator=generator).double()
    first = cast("nn.Linear", net.layers[0])
    with torch.no_grad():
        first.weight.mul_(30.0)
        first.bias.uniform_(-5, 5, generator=generator)
    return NetworkEnergy(1, LocationHead("squared_error"), net).double()


def rows(key: Key) -> dict[str, Tensor]:
    generator = key.fold("rows").torch()
    x = 2 * torch.rand(ROWS, 1, generator=generator, dtype=torch.float64) - 1
    noise = torch.randn(x.shape, generator=generator, dtype=torch.float64)
    return {"x": x, "y": torch.sin(torch.pi * x) + NOISE * noise}


def sweep(key: Key, at: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Curves ``(λ, points)``, training errors and norms ``(λ,)`` of one net under every strength."""
    data = rows(key)
    made = learn_population(make, {"strength": STRENGTHS}, data, NLL(), lr=0.01, epochs=3000,
                            batch_size=None, schedule="cosine", seed=key)  # fmt: skip
    nets = [cast("NetworkEnergy", m.energy) for m in made]
    with torch.no_grad():
        curves = torch.stack([net.mean(at)[:, 0] for net in nets])
        errors = torch.stack([(net.mean(data["x"]) - data["y"]).square().mean() for net in nets])
    weights = [torch.cat([p.reshape(-1) for p in m.params.values() if p.ndim > 1]) for m in made]
    return curves, errors, torch.stack([w.norm() for w in weights])


@experiment(
    "NEU-X-l2-curve", theme="neural", title="A larger L2 penalty is a smoother function", slow=True
)
def l2_curve(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Minimise :math:`\sum(y_i - f(x_i))^2 + \lambda\|\theta\|^2` with far more weights than rows. Without
    λ the curve goes through the noise; with λ the weights are small, so is the curvature
    :math:`\int f''^2`, and the training error rises. The test error falls first and then rises when
    nothing but a constant is left: a U.

    20 rows of :math:`\sin\pi x` on [−1, 1] with noise 0.3, 100 tanh units, λ from 1e-5 to 10, full steps
    of Adam; means over 6 draws of rows and nets, all λ trained at once.
    """
    at = torch.linspace(-1, 1, 801, dtype=torch.float64)[:, None]
    truth = torch.sin(torch.pi * at)
    keys = Key.of(seed).split(2 if quick else DRAWS)
    found = [sweep(key, at) for key in keys]
    curves = torch.stack([c for c, _, _ in found])  # (draws, λ, points)
    train, size = (torch.stack(part) for part in list(zip(*found))[1:])
    step = float(at[1, 0] - at[0, 0])
    bend = (curves.diff(n=2, dim=2) / step**2).square().sum(2) * step
    table = {
        "curvature": bend,
        "norm": size,
        "training error": train,
        "test error": (curves - truth[:, 0]).square().mean(2),
    }
    by = {name: v.mean(0).numpy() for name, v in table.items()}
    test = by["test error"]
    best = int(test.argmin())
    claims = [
        Claim.equal("curvature falls with every λ", bool((np.diff(by["curvature"]) < 0).all()), True),
        Claim.equal("norm falls with every λ", bool((np.diff(by["norm"]) < 0).all()), True),
        Claim.equal("training error rises with every λ", bool((np.diff(by["training error"]) > 0).all()), True),
        Claim.above("test error at the least λ over the best", test[0] / test[best], 1.0),
        Claim.above("test error at the largest λ over the best", test[-1] / test[best], 1.0),
        Claim.equal("test error falls to the best λ and rises from it",
                    bool((np.diff(test[: best + 1]) < 0).all() and (np.diff(test[best:]) > 0).all()), True),
    ]  # fmt: skip
    numbers = {"λ": list(STRENGTHS), **{name: v.tolist() for name, v in by.items()}}

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        left.plot(at[:, 0], truth[:, 0], color="black", linewidth=0.8, label="truth")
        for k, colour in zip((0, best, len(STRENGTHS) - 1), COLOURS):
            left.plot(
                at[:, 0].numpy(), curves[0, k].numpy(), color=colour, label=f"λ = {STRENGTHS[k]:g}"
            )
        left.scatter(*rows(keys[0]).values(), s=12, color=COLOURS[5], zorder=3)
        left.set(xlabel="x", ylim=(-2.2, 2.2))
        for (name, values), colour in zip(by.items(), COLOURS):
            right.loglog(
                STRENGTHS, values / values.max(), "o-", markersize=3, color=colour, label=name
            )
        right.set(xlabel="λ", ylabel="over the largest", ylim=(1e-5, 2))
        left.legend()
        right.legend()

    return Result(claims, numbers, draw, size=(9.0, 3.6))
