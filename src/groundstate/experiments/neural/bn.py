r"""Batch norm allows larger steps and breaks at tiny batches."""

from __future__ import annotations

import numpy as np
import torch

from groundstate.compute.random import Key
from groundstate.energy import NetClassEnergy
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.neural.digits import Rows, digits, share_right
from groundstate.learn import NLL, learn_population
from groundstate.nn import MLP

RATES = (0.01, 0.1, 0.3, 1.0, 3.0)
BATCHES = (2, 4, 16, 100)
NORMS = {"plain": None, "batch norm": "batch", "layer norm": "layer"}
LAYERS, WIDTH, TRAIN, STEPS = 10, 64, 1200, 600


def accuracies(
    train: Rows,
    test: Rows,
    norm: str | None,
    rates: tuple[float, ...],
    batch: int,
    epochs: int,
    keys: tuple[Key, ...],
) -> list[float]:
    """Share of test rows that is right by rate, the mean over nets; all of them in one program."""

    def make(generator: torch.Generator) -> NetClassEnergy:
        net = MLP(64, (WIDTH,) * LAYERS, 10, norm=norm, generator=generator)
        return NetClassEnergy(64, 10, net)

    grid = [{"lr": rate, "seed": key} for rate in rates for key in keys]
    made = learn_population(
        make, grid, train, NLL(), optimizer="sgd", batch_size=batch, epochs=epochs
    )
    right = np.array([share_right(member.energy, test) for member in made])
    found: list[float] = right.reshape(len(rates), len(keys)).mean(1).tolist()
    return found


@experiment("NEU-X-bn", theme="neural", title="Batch norm: large steps, no tiny batches", slow=True)
def bn(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Batch norm, :math:`\gamma(z - \bar z)/s + \delta` over the rows of a batch, makes a layer blind to
    the scale of its weights, so that steps ten times and more as long still train. But
    :math:`\bar z` and s are estimates: of two rows they leave only the sign of their difference, and
    the running averages of evaluation do not match what the net was trained with. Layer norm uses
    one row and does not depend on the batch.

    Digits, 1,200 rows to learn from, ten layers of 64 units, plain steps: rates 0.01 to 3 with batches
    of 100 for 25 epochs; batches of 2, 4, 16 and 100 with rate 0.01 for 600 steps. Means over 2 nets.
    """
    key = Key.of(seed)
    train, test = digits(key.fold("rows"), TRAIN)
    keys = key.fold("nets").split(1 if quick else 2)
    by_rate = {
        name: accuracies(train, test, NORMS[name], RATES, 100, 25, keys)
        for name in ("plain", "batch norm")
    }
    by_batch = {
        name: [
            accuracies(train, test, kind, (0.01,), b, STEPS * b // TRAIN, keys)[0] for b in BATCHES
        ]
        for name, kind in NORMS.items()
    }
    largest = {
        name: max((r for r, a in zip(RATES, row) if a > 0.8), default=0.0)
        for name, row in by_rate.items()
    }
    longer = largest["batch norm"] / max(largest["plain"], 0.01)
    tiny = {name: row[0] for name, row in by_batch.items()}
    claims = [
        Claim.above("plain: largest rate with accuracy above 0.8", largest["plain"], 0.0),
        Claim.at_least("the same of batch norm over it", longer, 10),
        Claim.above("batches of 2: layer norm less batch norm", tiny["layer norm"] - tiny["batch norm"], 0.0),
        Claim.above("batches of 2: plain less batch norm", tiny["plain"] - tiny["batch norm"], 0.0),
    ]  # fmt: skip
    numbers = {"rates": by_rate, "batches": by_batch, "largest rate": largest}

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2, sharey=True)
        for (name, row), colour in zip(by_rate.items(), COLOURS):
            left.semilogx(RATES, row, "o-", color=colour, label=name)
        for (name, row), colour in zip(by_batch.items(), COLOURS):
            right.semilogx(BATCHES, row, "o-", color=colour, label=name)
        left.set(xlabel="learning rate", ylabel="accuracy on new digits", ylim=(0, 1))
        right.set(xlabel="rows per batch", xticks=BATCHES, xticklabels=[str(b) for b in BATCHES])
        right.minorticks_off()
        for ax in (left, right):
            ax.legend()

    return Result(claims, numbers, draw)
