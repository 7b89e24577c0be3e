r"""Squared error blurs where it is unsure, absolute error chooses."""

from __future__ import annotations

import torch
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.energy.networks.location import LocationHead
from groundstate.energy.networks.network import NetworkEnergy
from groundstate.experiments.base import Claim, Figure, Result, experiment
from groundstate.learn import NLL, Stochastic, fit
from groundstate.nn import MLP

BLOCKS, SIDE = 3, 9
PIXELS = BLOCKS * SIDE
LOSSES = {"L2": "squared_error", "L1": "absolute_error"}


def images(key: Key, n: int) -> dict[str, Tensor]:
    """Rows of pixels, 0 left and 1 right of an edge; x says only in which block the edge is."""
    generator = key.torch()
    edge = torch.randint(PIXELS, (n,), generator=generator)
    x = torch.nn.functional.one_hot(edge // SIDE, BLOCKS).float()
    return {"x": x, "y": (torch.arange(PIXELS) >= edge[:, None]).float()}


@experiment("NEU-X-l1l2-image", theme="neural", title="L1 is sharp, L2 blurred")
def l1l2_image(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Where several images fit an input, :math:`\sum(y - f)^2` is least at their mean and
    :math:`\sum|y - f|` at their median, pixel by pixel. The mean of edges at random places is a grey
    ramp; the median of zeros and ones is zero or one, so the answer has an edge, and of all it is
    the middle one. Blur comes from mean against median, not from the size of small errors.

    Images of 27 pixels with an edge anywhere; the input names the third it lies in. 3,000 rows, a net
    with 32 hidden units under either loss.
    A run takes about a second; quick ones are the same.
    """
    key = Key.of(seed)
    data = images(key.fold("rows"), 3000)
    block = data["x"].argmax(1)
    groups = [data["y"][block == b] for b in range(BLOCKS)]
    mean = torch.stack([g.mean(0) for g in groups])  # (blocks, pixels)
    median = torch.stack([g.median(0).values for g in groups])
    predicted = {}
    for name, loss in LOSSES.items():
        net = MLP(BLOCKS, (32,), PIXELS, generator=key.fold("net").torch())
        energy = NetworkEnergy(BLOCKS, LocationHead(loss, PIXELS), net)
        solver = Stochastic(lr=0.01, batch_size=300, max_epochs=60, tol=None, schedule="cosine")
        fit(energy, data, NLL(), solver, random_state=key.fold("order"))
        with torch.no_grad():
            predicted[name] = energy.mean(torch.eye(BLOCKS))
    grey = {n: float(((v > 0.1) & (v < 0.9)).double().sum(1).mean()) for n, v in predicted.items()}
    claims = [
        Claim.at_most("L2: largest distance from the mean image",
                      float((predicted["L2"] - mean).abs().max()), 0.05),
        Claim.at_most("L1: largest distance from the median image",
                      float((predicted["L1"] - median).abs().max()), 0.05),
        Claim.at_most("L1: largest distance from 0 or 1",
                      float((predicted["L1"] - predicted["L1"].round()).abs().max()), 0.05),
        Claim.equal("L1: number of edges per image",
                    (predicted["L1"].round().diff(dim=1).abs().sum(1)).int().tolist(), [1] * BLOCKS),
        Claim.at_least("L2: grey pixels per image", grey["L2"], 5),
        Claim.equal("L1: grey pixels per image", grey["L1"], 0.0),
    ]  # fmt: skip
    numbers = {"L2": predicted["L2"].tolist(), "L1": predicted["L1"].tolist(), "grey": grey}

    def draw(figure: Figure) -> None:
        axes = figure.subplots(1, BLOCKS + 1)
        panels = [
            ("data", data["y"][:30]),
            ("mean", mean),
            ("L2", predicted["L2"]),
            ("L1", predicted["L1"]),
        ]
        for ax, (name, rows) in zip(axes, panels):
            ax.imshow(
                rows.numpy(), cmap="gray", vmin=0, vmax=1, aspect="auto", interpolation="nearest"
            )
            ax.set(title=name, xticks=[], yticks=[], xlabel="pixel")

    return Result(claims, numbers, draw, size=(9.0, 2.6))
