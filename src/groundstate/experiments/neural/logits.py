r"""Losses fused with their sigmoid stay right where the two in turn saturate."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.learn.losses import bce, bce_from_probability

SIZES = (50.0, 88.0, 100.0, 120.0, 200.0, 500.0, 1000.0)
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def both(s: Tensor, y: Tensor, fused: bool) -> tuple[Tensor, Tensor]:
    """Loss of every logit and its slope."""
    leaf = s.clone().requires_grad_()
    if fused:
        loss = bce(leaf, y, reduction="none")
    else:
        loss = bce_from_probability(torch.sigmoid(leaf), y, reduction="none")
    (slope,) = torch.autograd.grad(loss.sum(), leaf)
    return loss.detach().double(), slope.double()


@experiment("NEU-X-logits", theme="neural", title="Fused losses are stable")
def logits(seed: int = 0, *, quick: bool = False) -> Result:
    r"""A wrong logit of size s costs :math:`\log(1 + e^{s}) \approx s`, with the gradient
    :math:`\sigma(s) - y = \pm1`. Computed in one piece,
    :math:`\max(s, 0) - sy + \log(1 + e^{-|s|})`, that is what comes out at any size. A sigmoid first
    and the logarithm after it rounds the probability to 0 or 1: the loss stops at 100, where the
    logarithm is cut, and the gradient is 0.

    Wrong logits ±50 to ±1000, in float32 and bfloat16. Nothing is drawn at random.
    A run takes about a second; quick ones are the same.
    """
    sizes = torch.tensor(SIZES, dtype=torch.float64)
    s = torch.cat([sizes, -sizes])
    y = torch.cat([torch.zeros_like(sizes), torch.ones_like(sizes)])  # always the wrong side
    claims: list[Claim] = []
    numbers: dict[str, Any] = {}
    for name, dtype in DTYPES.items():
        given = s.to(dtype)
        loss, slope = both(given, y.to(dtype), True)
        off = float((loss / given.double().abs() - 1).abs().max())
        wrong = float((slope - (1 - 2 * y)).abs().max())
        apart, flat = both(given, y.to(dtype), False)
        beyond = s.abs() > 105  # e^-105 is below the least number of both types
        stuck = float((apart[beyond] - 100).abs().max())
        still = float(flat[beyond].abs().max())
        claims += [
            Claim.at_most(f"{name}, fused: loss against |s|, relative", off, 1e-6),
            Claim.at_most(f"{name}, fused: slope against ±1", wrong, 1e-6),
            Claim.at_most(f"{name}, in turn: loss against 100, |s| > 105", stuck, 0.0),
            Claim.at_most(f"{name}, in turn: largest slope there, where ±1 is right", still, 0.0),
        ]
        numbers[name] = {"fused": loss.tolist(), "fused slope": slope.tolist(),
                         "in turn": apart.tolist(), "slope in turn": flat.tolist()}  # fmt: skip
    numbers["logits"] = s.tolist()

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        at = torch.linspace(0, 200, 401)
        for name, fused, colour in (("fused", True, COLOURS[0]), ("in turn", False, COLOURS[1])):
            loss, slope = both(at, torch.zeros_like(at), fused)
            left.plot(at, loss, color=colour, label=name)
            right.plot(at, slope, color=colour, label=name)
        left.set(title="loss of a wrong logit", xlabel="s, the label is 0")
        right.set(title="its slope", xlabel="s, the label is 0")
        for ax in (left, right):
            ax.legend()

    return Result(claims, numbers, draw, size=(8.0, 3.2))
