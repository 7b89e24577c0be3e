r"""With as many parameters, deep nets win on folded targets and not on smooth ones."""

from __future__ import annotations

import torch
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.energy.networks.location import LocationHead
from groundstate.energy.networks.network import NetworkEnergy
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.neural.panels import network_of
from groundstate.learn import PopulationResult, learn_population
from groundstate.nn import MLP

SHAPES = {"shallow": (85,), "2 layers": (14, 14), "4 layers": (8, 8, 8, 8)}
SEEDS, STEPS, RATE = 16, 1500, 0.01


def triangle(x: Tensor) -> Tensor:
    """The tent map four times: 8 teeth on [0, 1]."""
    for _ in range(4):
        x = 1 - (2 * x - 1).abs()
    return x


def smooth(x: Tensor) -> Tensor:
    return torch.sin(2 * torch.pi * x)


def learn_shape(
    key: Key, shape: tuple[int, ...], x: Tensor, y: Tensor, starts: int
) -> PopulationResult:
    return learn_population(
        lambda generator: NetworkEnergy(1, LocationHead("squared_error"),
                                        MLP(1, shape, 1, generator=generator)),
        starts, {"x": x, "y": y}, lr=RATE, epochs=STEPS, batch_size=None, schedule="cosine", seed=key,
    )  # fmt: skip


@experiment(
    "NEU-X-depth-width", theme="neural", title="Depth wins on folded targets only", slow=True
)
def depth_width(seed: int = 0, *, quick: bool = False) -> Result:
    r"""The triangle :math:`t(x) = 1 - |2x - 1|` applied four times has 8 teeth: each layer can fold
    once more, while a shallow net needs a unit per kink at the right place. Trained with as many
    parameters, the deeper net comes closer to it. On :math:`\sin 2\pi x`, which is not folded, depth
    buys nothing.

    1-85-1, 1-14-14-1 and 1-8-8-8-8-1 with 256, 253 and 241 parameters, 16 starts each, 1,500 full
    steps of Adam with a cosine schedule; mean squared error of the best start.
    """
    key = Key.of(seed)
    u = torch.linspace(0, 1, 256)[:, None]
    x = 2 * u - 1
    errors: dict[str, dict[str, list[float]]] = {}
    best: dict[str, dict[str, Tensor]] = {}
    for target, f in {"triangle": triangle, "sine": smooth}.items():
        errors[target], best[target] = {}, {}
        for name, shape in SHAPES.items():
            found = learn_shape(key.fold(target, name), shape, x, f(u), 8 if quick else SEEDS)
            with torch.no_grad():
                predicted = torch.stack(
                    [network_of(member.energy)(x) for member in found]
                )  # (starts, 256, 1)
            each = (predicted - f(u)).double().square().mean((1, 2))
            errors[target][name] = each.tolist()
            best[target][name] = predicted[int(each.argmin())]
    low = {target: {n: min(e) for n, e in rows.items()} for target, rows in errors.items()}
    fold, sine = low["triangle"], low["sine"]
    claims = [
        Claim.below("triangle: 4 layers, against 2", fold["4 layers"], fold["2 layers"]),
        Claim.below("triangle: 2 layers, against shallow", fold["2 layers"], fold["shallow"]),
        Claim.at_most("sine: shallow, against the better deep net", sine["shallow"],
                      min(sine["2 layers"], sine["4 layers"])),
    ]  # fmt: skip
    numbers = {"best": low, "all": {t: {n: sorted(e) for n, e in rows.items()}
                                    for t, rows in errors.items()}}  # fmt: skip

    def draw(figure: Figure) -> None:
        axes = figure.subplots(1, 4, width_ratios=(1, 1, 1, 1.1))
        for ax, (name, predicted), colour in zip(axes, best["triangle"].items(), COLOURS):
            ax.plot(u, triangle(u), color="black", linewidth=0.7)
            ax.plot(u, predicted, color=colour)
            ax.set(title=f"{name}: {fold[name]:.3f}", xlabel="x")
        for i, rows in enumerate(errors.values()):
            for j, (each, colour) in enumerate(zip(rows.values(), COLOURS)):
                axes[3].semilogy([4 * i + j] * len(each), each, ".", color=colour, markersize=4)
        axes[3].set_xticks([1, 5], list(errors))
        axes[3].set(title="squared error of every start")

    return Result(claims, numbers, draw, size=(11.5, 3.0))
