"""Block diagrams of two players: noise, generator, data, discriminator."""

from __future__ import annotations

from typing import Any

from torch import nn

from groundstate.nn.blocks.mlp import MLP
from groundstate.nn.inspect.detectors import Blocks
from groundstate.nn.inspect.draw import Drawing


def draw_game(
    generator: nn.Module, discriminator: nn.Module, d: int | None = None, q: int = 0
) -> Drawing:
    """Noise through the generator, beside the data, to the discriminator; with what both are given.

    Parameters
    ----------
    generator : module with ``n_components``
    discriminator : module
    d : numbers of a row
    q : numbers of the condition, 0 without

    Examples
    --------
    >>> from groundstate.nn.adversarial import DenseDiscriminator, DenseGenerator
    >>> draw_game(DenseGenerator(2, (8,), [1, 1]), DenseDiscriminator(2, (8,)), 2).nodes
    6
    """
    blocks = Blocks()
    n = getattr(generator, "n_components", "?")
    row = "rows" if d is None else f"{d} numbers"
    noise = blocks.box(0, 1, ["noise z", f"{n} of N(0, 1)"], "data")
    made = blocks.box(1, 1, ["generator G", _sizes(generator)])
    fake = blocks.box(2, 1, ["generated", row], "data")
    real = blocks.box(2, 0, ["data", row], "data")
    judge = blocks.box(3, 0.5, ["discriminator D", _sizes(discriminator)])
    verdict = blocks.box(4, 0.5, ["logit: real?", "energy is minus it"], "choice")
    blocks.chain(noise, made, fake, judge, verdict)
    blocks.arrow(real, judge)
    if q:
        given = blocks.box(0, 0, ["condition y", f"{q} numbers, seen by both"], "data")
        blocks.arrow(given, made)
    return blocks.drawing()


def _sizes(module: nn.Module) -> str:
    """Widths of a dense player, else the number of its parameters."""
    dense: Any = next((m for m in module.modules() if isinstance(m, MLP)), None)
    count = sum(p.numel() for p in module.parameters())
    if dense is None or sum(isinstance(m, MLP) for m in module.modules()) > 1:
        return f"{count:,} parameters"
    return "-".join(str(s) for s in dense.sizes)
