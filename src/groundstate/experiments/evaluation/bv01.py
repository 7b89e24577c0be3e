r"""Noise, variance and bias of a 0-1 loss add up."""

from __future__ import annotations

import numpy as np

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.supervised.scenes import F64
from groundstate.models.trees.decision_tree_classifier import DecisionTreeClassifier

DEPTHS = (1, 2, 3, 4, 6, 8)
GRID = np.linspace(0, 1, 101)
ROWS = 80


def chance(x: F64) -> F64:
    """P(y = 1 | x): a hill and a valley, never sure."""
    return 0.5 + 0.35 * np.sin(2 * np.pi * x)


def answers(key: Key, depth: int, refits: int) -> F64:
    """Share of trees of a depth that say 1 at every point of the grid, q(x)."""
    total = np.zeros(len(GRID))
    for own in key.split(refits):
        rng = own.numpy()
        x = rng.random(ROWS)
        y = (rng.random(ROWS) < chance(x)).astype(np.int64)
        tree = DecisionTreeClassifier(max_depth=depth, random_state=0).fit(x[:, None], y)
        total += tree.predict(GRID[:, None])
    return total / refits


@experiment(
    "EVA-X-bv01", theme="evaluation", title="Noise + variance + bias = expected 0-1 loss", slow=True
)
def bv01(seed: int = 0, *, quick: bool = False) -> Result:
    r"""For labels ±1 the 0-1 loss is :math:`(y - \hat y)^2/4`, so its expectation splits like the
    squared one: with :math:`p = P(y{=}1)` and :math:`q = P(\hat y{=}1)` over training sets,
    :math:`\tfrac14\{4p(1-p) + 4q(1-q) + 4(p-q)^2\} = p(1-q) + q(1-p)`. Deeper trees follow the data:
    less bias, more variance; the noise stays.

    Trees of depth 1 to 8 on 80 rows, the same 300 training sets for each, p(y | x) known on a grid.
    """
    refits = 100 if quick else 300
    p = chance(GRID)
    rows, worst = [], 0.0
    for depth in DEPTHS:
        q = answers(Key.of(seed).fold("sets"), depth, refits)
        a, b, c = p * (1 - p), q * (1 - q), (p - q) ** 2
        loss = p * (1 - q) + q * (1 - p)
        worst = max(worst, float(np.abs(a + b + c - loss).max()))
        rows.append([float(v.mean()) for v in (a, b, c, loss)])
    table = np.array(rows)
    hand = [4 * v / 4 for v in (0.9 * 0.1, 0.8 * 0.2, 0.1**2)]
    claims = [
        Claim.below("largest |noise + variance + bias − loss|", worst, 1e-12),
        Claim.close("p = .9, q = .8: (.36 + .64 + .04)/4", sum(hand), 0.26, tol=1e-12),
        Claim.above(
            "least rise of the variance from depth to depth", float(np.diff(table[:, 1]).min()), 0.0
        ),
        Claim.below(
            "largest rise of the bias from depth to depth", float(np.diff(table[:, 2]).max()), 0.0
        ),
        Claim.at_most("spread of the noise over depths", float(np.ptp(table[:, 0])), 1e-15),
    ]
    numbers = {
        "depths": list(DEPTHS),
        **{
            name: table[:, j].tolist()
            for j, name in enumerate(("noise", "variance", "bias", "loss"))
        },
    }

    def draw(figure: Figure) -> None:
        ax = figure.subplots()
        names = ("(a) noise", "(b) variance", "(c) bias")
        ax.stackplot(DEPTHS, table[:, :3].T, labels=names, colors=COLOURS[:3], alpha=0.7)
        ax.plot(DEPTHS, table[:, 3], "o-", color="black", label="0-1 loss")
        ax.set(xlabel="depth of the tree", ylabel="expected 0-1 loss", ylim=(0, 0.6))
        ax.legend(loc="upper right", ncols=2)

    return Result(claims, numbers, draw, size=(6.0, 3.8))
