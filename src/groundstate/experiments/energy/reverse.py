r"""A gradient costs a few forward passes, however many parameters there are."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.energy import NetClassEnergy
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.learn import SoftMin

WIDTHS = (5, 25, 92, 310, 995)  # two hidden layers: about 1e2, 1e3, 1e4, 1e5, 1e6 parameters
FULL = 2  # how many of them are also differenced parameter by parameter


@experiment("ENE-X-reverse", theme="energy", title="Gradient costs a few forwards", slow=True)
def reverse(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Reverse mode: :math:`\text{cost}(\nabla_\theta L) \le 5\,\text{cost}(L)` for :math:`10^2` to
    :math:`10^6` parameters; forward differences need one loss per parameter.

    The loss is ``SoftMin`` on a network energy with two hidden layers. Differences
    :math:`(L(\theta + h e_i) - L(\theta))/h` are taken in full for the small networks, where they also
    check the gradient, and timed on a few parameters for the large ones.
    """
    key = Key.of(seed)
    repeats = 5 if quick else 15
    counts, ratios, forwards, gradients, differences = [], [], [], [], []
    error = 0.0
    evaluations: list[int] = []
    for i, width in enumerate(WIDTHS):
        rows = max(256, 4096 // width)
        energy = NetClassEnergy(10, 5, (width, width), generator=key.fold("net", i).torch())
        energy = energy.double()
        x = torch.randn(rows, 10, generator=key.fold("x", i).torch(), dtype=torch.float64)
        data = {"x": x, "y": torch.arange(rows) % 5}
        parameters = list(energy.parameters())
        rule = SoftMin()

        def loss(energy=energy, data=data, rule=rule) -> Tensor:  # type: ignore[no-untyped-def]
            mean: Tensor = rule(energy, data).loss.mean()
            return mean

        def gradient(loss=loss, parameters=parameters):  # type: ignore[no-untyped-def]
            return torch.autograd.grad(loss(), parameters)

        def value(loss=loss) -> Tensor:  # type: ignore[no-untyped-def]
            with torch.no_grad():
                result: Tensor = loss()
            return result

        forward, backward = _fastest((value, gradient), repeats)
        count = sum(p.numel() for p in parameters)
        found, times = _differences(value, parameters, count if i < FULL else 50)
        spent = (count + 1) * statistics.median(times)
        if i < FULL:
            exact = torch.cat([g.reshape(-1) for g in gradient()])
            error = max(error, float((found - exact).abs().max()))
            evaluations.append(len(times) + 1)
        counts.append(count)
        forwards.append(forward)
        gradients.append(backward)
        ratios.append(backward / forward)
        differences.append(spent)
    per_forward = [d / f / c for d, f, c in zip(differences, forwards, counts)]

    claims = [
        *(
            Claim.at_most(
                f"{count:,} parameters: time of gradient / time of loss", ratio, 5.0
            ).on_the_clock()
            for count, ratio in zip(counts, ratios)
        ),
        Claim.equal("losses evaluated by forward differences, small networks",
                    evaluations, [c + 1 for c in counts[:FULL]]),
        Claim.between("forward differences: time / (time of loss · count), smallest",
                      min(per_forward), 0.5, 3.0).on_the_clock(),
        Claim.between("forward differences: time / (time of loss · count), largest",
                      max(per_forward), 0.5, 3.0).on_the_clock(),
        Claim.at_most("largest gap of differences to the gradient", error, 1e-5),
    ]  # fmt: skip
    numbers = {"counts": counts, "evaluations": evaluations, "gap": error}
    seconds = {
        "loss": forwards, "gradient": gradients, "differences": differences, "ratio": ratios,
    }  # fmt: skip

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        curves = {"loss": forwards, "gradient": gradients, "forward differences": differences}
        for (name, times), colour in zip(curves.items(), COLOURS):
            left.loglog(counts, times, marker="o", color=colour, label=name)
        left.set(title="seconds", xlabel="parameters")
        left.legend()
        right.semilogx(counts, ratios, marker="o", color=COLOURS[1], label="gradient")
        right.axhline(5, color="black", linestyle=":", linewidth=0.8)
        right.set(title="time relative to one loss", xlabel="parameters", ylim=(0, 6))
        right.legend()

    return Result(claims, numbers, draw, seconds)


def _fastest(runs: Sequence[Callable[[], object]], repeats: int) -> list[float]:
    """Smallest computing time of each call, taken in turn so that all see the same machine."""
    times: list[list[float]] = [[] for _ in runs]
    for _ in range(repeats + 2):
        for run, own in zip(runs, times):
            start = time.process_time()
            run()
            own.append(time.process_time() - start)
    return [min(own[2:]) for own in times]


@torch.no_grad()
def _differences(
    value: Callable[[], Tensor], parameters: Sequence[Tensor], wanted: int, h: float = 1e-7
) -> tuple[Tensor, list[float]]:
    """Forward differences in the first ``wanted`` parameters, and the time of each."""
    base = float(value())
    found: list[float] = []
    times: list[float] = []
    for p in parameters:
        flat = p.view(-1)
        for i in range(min(flat.numel(), wanted - len(found))):
            start = time.process_time()
            kept = flat[i].clone()
            flat[i] += h
            found.append((float(value()) - base) / h)
            flat[i] = kept
            times.append(time.process_time() - start)
    return torch.tensor(found, dtype=torch.float64), times
