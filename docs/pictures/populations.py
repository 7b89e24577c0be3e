"""Pictures of populations: a grid of networks learned at once."""

from __future__ import annotations

import numpy as np
import torch
from common import COLOURS, figure
from matplotlib.figure import Figure

from groundstate.energy import NetClassEnergy
from groundstate.learn import learn_population


def population_grid() -> Figure:
    """Learning curves of 24 networks, and the held-out loss that chooses the step size."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(240, 2, generator=generator)
    noise = 0.4 * torch.randn(240, generator=generator)
    data = {"x": x, "y": (x[:, 0] * x[:, 1] + noise > 0).long()}
    rates = [0.001, 0.01, 0.1, 1.0]
    result = learn_population(
        lambda generator: NetClassEnergy(2, 2, (16,), generator=generator),
        {"lr": rates, "seed": [0, 1]},
        data,
        folds=3,
        epochs=40,
        batch_size=32,
    )
    fig, (left, right) = figure(2)
    for colour, rate in zip(COLOURS, rates, strict=False):
        own = [m for m in result if m.settings["lr"] == rate]
        for i, member in enumerate(own):
            label = f"step size {rate:g}" if i == 0 else None
            left.plot(member.history.objective, color=colour, linewidth=0.8, label=label)
    left.set(title="24 members, one program", xlabel="epoch", ylabel="objective", yscale="log")
    left.legend(frameon=False, fontsize=8)
    curve = sorted(result.mean_by("lr"), key=lambda row: row["lr"])
    right.errorbar(
        [row["lr"] for row in curve],
        [row["score"] for row in curve],
        [row["se"] for row in curve],
        fmt="o-",
        color=COLOURS[0],
        capsize=3,
    )
    right.set(title="held-out loss", xlabel="step size", xscale="log")
    right.set_ylim(0, float(np.max([row["score"] + row["se"] for row in curve])) * 1.1)
    return fig


PICTURES = {"population-grid": population_grid}
