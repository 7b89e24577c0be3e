r"""Nets learned with dropout survive the loss of units."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from groundstate.compute.random import Key
from groundstate.energy import Energy, NetClassEnergy
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.neural.digits import Rows, digits, share_right
from groundstate.infer import minimise
from groundstate.learn import NLL, learn_population
from groundstate.nn import MLP

SHARES = (0.0, 0.3, 0.5, 0.7, 0.9)
WIDTH, TRAIN = 256, 1000


def make(generator: torch.Generator, dropout: float) -> NetClassEnergy:
    return NetClassEnergy(64, 10, MLP(64, (WIDTH, WIDTH), 10, dropout=dropout, generator=generator))


def without(energy: Energy, share: float, key: Key, rows: Rows) -> float:
    """Share of rows that is right when a random ``share`` of every hidden layer gives 0."""
    layers = [m for m in energy.modules() if isinstance(m, nn.Linear)][1:]
    before = [layer.weight.detach().clone() for layer in layers]
    rng = key.numpy()
    with torch.no_grad():
        for layer in layers:
            lost = torch.from_numpy(rng.permutation(WIDTH)[: round(share * WIDTH)])
            layer.weight[:, lost] = 0.0  # a unit nobody listens to is gone
        right = share_right(energy, rows)
        for layer, weight in zip(layers, before):
            layer.weight.copy_(weight)
    return right


def in_training_mode(energy: Energy, rows: Rows, key: Key) -> float:
    """The same by mistake in training mode, where units drop at random."""
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(key.low)
        predicted = minimise(energy.train(), "y", {"x": rows["x"]})["y"]
    energy.eval()
    return float((predicted == rows["y"]).double().mean())


@experiment(
    "NEU-X-ablate", theme="neural", title="Dropout nets survive the loss of units", slow=True
)
def ablate(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Dropout multiplies hidden units by :math:`m/(1 - p)`, :math:`m \sim \text{Bernoulli}(1 - p)`, fresh in
    every pass, so that no unit can rely on another. Such a net still answers when units are taken
    out for good; a plain net falls apart. In evaluation mode m is left out: forgetting
    ``eval()`` answers with a thinned net.

    Digits, 1,000 rows to learn from, 64-256-256-10, p = 0.5, 60 epochs of Adam; 0 to 90 % of the hidden
    units removed, means over 3 nets and 10 draws of units.
    """
    key = Key.of(seed)
    train, test = digits(key.fold("rows"), TRAIN)
    seeds = key.fold("nets").split(1 if quick else 3)
    curves, modes = {}, {}
    for name, p in (("plain", 0.0), ("dropout 0.5", 0.5)):
        grid = [{"dropout": p, "seed": own} for own in seeds]
        nets = [
            m.energy.eval()
            for m in learn_population(make, grid, train, NLL(), epochs=60, batch_size=50)
        ]
        draws = key.fold("units").split(10)
        curves[name] = [
            float(np.mean([without(e, share, draw, test) for e in nets for draw in draws]))
            for share in SHARES
        ]
        modes[name] = float(np.mean([in_training_mode(e, test, key.fold("mode")) for e in nets]))
    gap = dict(zip(SHARES, np.subtract(curves["dropout 0.5"], curves["plain"]).tolist()))
    claims = [
        Claim.at_least("70 % removed: accuracy with dropout less without", gap[0.7], 0.1),
        Claim.above("50 % removed: the same", gap[0.5], 0.0),
        Claim.above("90 % removed: the same", gap[0.9], 0.0),
        Claim.above("dropout net: evaluation mode less training mode",
                    curves["dropout 0.5"][0] - modes["dropout 0.5"], 0.0),
        Claim.close("plain net: evaluation mode less training mode",
                    curves["plain"][0] - modes["plain"], 0, tol=1e-12),
    ]  # fmt: skip
    numbers = {"removed": list(SHARES), **curves, "training mode": modes}

    def draw(figure: Figure) -> None:
        ax = figure.subplots()
        for (name, row), colour in zip(curves.items(), COLOURS):
            ax.plot(SHARES, row, "o-", color=colour, label=name)
            ax.plot(0, modes[name], "x", color=colour, markersize=8)
        ax.set(xlabel="share of hidden units removed (x: none, training mode)",
               ylabel="accuracy on new digits", ylim=(0, 1))  # fmt: skip
        ax.legend()

    return Result(claims, numbers, draw, size=(6.0, 3.6))
