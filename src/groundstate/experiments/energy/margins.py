r"""The perceptron stops when it is right; the margin pushes on."""

from __future__ import annotations

import torch

from groundstate.compute.random import Key
from groundstate.energy import LinearEnergy
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.tools import blobs, regions
from groundstate.learn import Margin, Perceptron, Rule, Stochastic, fit, sgd

CENTRES = [[0.0, 2.5], [-2.2, -1.2], [2.2, -1.2]]


@experiment("ENE-X-margins", theme="energy", title="Perceptron stops, margin pushes on")
def margins(seed: int = 0, *, quick: bool = False) -> Result:
    r"""On separable rows ``Margin`` ends with :math:`\min_{k\ne y} e_k - e_y \ge m` everywhere,
    ``Perceptron`` does not.

    The perceptron's loss :math:`e_y - \min_k e_k` is 0 as soon as the target wins, by however
    little. The hinge :math:`\max(0, m + e_y - \min_{k\ne y} e_k)` is 0 only when the target wins by m.
    """
    m = 1.0
    x, y = blobs(Key.of(seed).fold("data"), CENTRES, 0.45, 300)
    data = {"x": x, "y": y}
    rules: dict[str, Rule] = {"Perceptron": Perceptron(), "Margin": Margin(m)}
    energies, gaps, loss = {}, {}, {}
    for name, rule in rules.items():
        energy = energies[name] = LinearEnergy(2, 3).double()
        solver = Stochastic(sgd, lr=0.1, batch_size=10, max_epochs=600, tol=0.0, patience=20)
        fit(energy, data, rule, solver, random_state=seed)
        with torch.no_grad():
            loss[name] = float(rule(energy, data).loss.mean())
            e = energy.table("y", x=x)
        own = torch.nn.functional.one_hot(y, 3).bool()
        gaps[name] = e.masked_fill(own, torch.inf).min(1).values - e[own]
    low = {name: float(gap.min()) for name, gap in gaps.items()}
    short = int((gaps["Perceptron"] < m).sum())
    claims = [
        Claim.at_most("Perceptron: loss at the end", loss["Perceptron"], 0.0),
        Claim.above("Perceptron: smallest margin", low["Perceptron"], 0.0),
        Claim.at_least("Perceptron: rows with a margin below m", short, 1),
        Claim.at_least("Margin: smallest margin", low["Margin"], m - 1e-3),
    ]
    numbers = {
        "smallest margin, Perceptron": low["Perceptron"],
        "smallest margin, Margin": low["Margin"],
        "rows below m, Perceptron": short,
    }

    def draw(figure: Figure) -> None:
        axes = figure.subplots(1, 3)
        for (name, gap), colour in zip(gaps.items(), COLOURS):
            axes[0].hist(gap.numpy(), bins=30, alpha=0.6, color=colour, label=name)
        axes[0].axvline(m, color="black", linewidth=0.8, linestyle=":")
        axes[0].set(title="margin of every row", xlabel="best wrong energy less the target's")
        axes[0].legend()
        for ax, (name, energy) in zip(axes[1:], energies.items()):
            regions(ax, energy, x, y)
            ax.set_title(f"{name}: smallest margin {low[name]:.2f}")

    return Result(claims, numbers, draw, size=(10.0, 3.3))
