"""Pictures of training: schedules, the search for a rate, signals over depth, balanced terms."""

from __future__ import annotations

import numpy as np
import torch
from common import COLOURS, figure
from matplotlib.figure import Figure
from torch import Tensor, nn

from groundstate.energy import Energy, NetClassEnergy, Real
from groundstate.learn import LossTerms, SoftMin, Stochastic, find_lr, fit, probe
from groundstate.learn.train import schedules


def schedule_factors() -> Figure:
    """Factors on the learning rate over a run of a thousand steps."""
    fig, (left, right) = figure(2)
    n = 1000
    falling = {
        "step": schedules.Step(gamma=0.3),
        "exponential": schedules.Exponential(),
        "inverse_time": schedules.InverseTime(100),
        "inverse_sqrt": schedules.InverseSqrt(100),
    }
    rising = {
        "cosine": schedules.Cosine(),
        "onecycle": schedules.OneCycle(),
        "warmup+linear": schedules.Warmup(then="linear"),
        "cosine, 3 restarts": schedules.Cosine(restarts=3),
    }
    for ax, group in ((left, falling), (right, rising)):
        for colour, (name, schedule) in zip(COLOURS, group.items(), strict=True):
            plan = schedule.at(n)
            ax.plot([plan(t) for t in range(n)], color=colour, label=name)
        ax.set(xlabel="step", ylabel="factor")
        ax.legend(frameon=False, fontsize=8)
    return fig


def learning_rate_finder() -> Figure:
    """One short run in which the rate grows."""
    x = torch.randn(512, 8, generator=torch.Generator().manual_seed(0))
    data = {"x": x, "y": (x[:, 0] * x[:, 1] > 0).long()}
    energy = NetClassEnergy(8, 2, (64,), generator=torch.Generator().manual_seed(0))
    curve = find_lr(energy, data, SoftMin(), Stochastic(batch_size=64), random_state=0)
    return curve.plot()


def signals_over_depth() -> Figure:
    """Three ways to start a deep rectifier network."""
    fig, (left, right) = figure(2)
    x = torch.randn(256, 100, generator=torch.Generator().manual_seed(0))
    for colour, (word, variance) in zip(
        COLOURS, (("0.01", 0.01), ("0.02 = 2/D", 0.02), ("0.04", 0.04)), strict=False
    ):
        g = torch.Generator().manual_seed(1)
        layers: list[nn.Module] = []
        for _ in range(20):
            layer = nn.Linear(100, 100, bias=False)
            with torch.no_grad():
                layer.weight.copy_(variance**0.5 * torch.randn(100, 100, generator=g))
            layers += [layer, nn.ReLU()]
        rows = [r for r in probe(nn.Sequential(*layers), x).layers if r.kind == "Linear"]
        depth = np.arange(1, len(rows) + 1)
        left.semilogy(depth, [r.variance for r in rows], "o-", markersize=3, color=colour)
        right.semilogy(
            depth, [r.gradient for r in rows], "o-", markersize=3, color=colour, label=word
        )
    left.set(title="variance of activations", xlabel="layer")
    right.set(title="size of gradients", xlabel="layer")
    right.legend(frameon=False, fontsize=8, title="weight variance")
    return fig


class _Point(Energy):
    """Two parameters without data."""

    normalised = frozenset({"x"})

    def __init__(self) -> None:
        super().__init__(x=Real(1))
        self.a, self.b = nn.Parameter(torch.zeros(())), nn.Parameter(torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        return 0 * x[:, 0] * self.a


def balanced_terms() -> Figure:
    """Two terms whose sizes differ ten thousandfold, and the weights they get."""
    fig, axes = figure(2)
    terms = {
        "large": lambda energy, batch, generator=None: 100 * (energy.a + energy.b - 2).square(),
        "small": lambda energy, batch, generator=None: 0.01 * (energy.a - 3 * energy.b).square(),
    }
    ways = ("fixed", "uncertainty", "norms", "relative")
    for colour, way in zip(COLOURS, ways, strict=True):
        solver = Stochastic(lr=0.02, batch_size=None, max_epochs=500, tol=None)
        rule = LossTerms(terms, weights=way)
        history = fit(_Point(), {"x": torch.zeros(1, 1)}, rule, solver, random_state=0)
        for ax, name in zip(axes, terms, strict=True):
            ax.semilogy(history.extra[f"loss.{name}"], color=colour, label=way)
            ax.set(title=f"the {name} term", xlabel="step")
    axes[1].legend(frameon=False, fontsize=8)
    for ax in axes:
        ax.set_ylim(bottom=1e-10)
    return fig


PICTURES = {
    "schedules": schedule_factors,
    "learning-rate-finder": learning_rate_finder,
    "signals-over-depth": signals_over_depth,
    "balanced-terms": balanced_terms,
}
