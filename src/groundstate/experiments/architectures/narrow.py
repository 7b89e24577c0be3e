r"""Stacks of 3×3 kernels against one wide kernel with the same receptive field."""

from __future__ import annotations

import numpy as np
from torch import nn

from groundstate.compute.random import Key
from groundstate.experiments.architectures.pictures import (
    built,
    digit_images,
    drawn,
    right,
    trained,
)
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.nn import receptive_field

C = 64
FORMS = {"two 3×3": (3, 3), "one 5×5": (5,), "three 3×3": (3, 3, 3), "one 7×7": (7,)}


def stack(kernels: tuple[int, ...]) -> nn.Sequential:
    layers: list[nn.Module] = []
    for k in kernels:
        layers += [built(nn.Conv2d, C, C, k, padding=k // 2), nn.ReLU()]
    return nn.Sequential(*layers)


@experiment("ARC-x-narrow", theme="architectures", title="Deep and narrow beats wide", slow=True)
def narrow(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Two 3×3 kernels see 5×5 pixels with :math:`2\cdot9C^2` weights instead of :math:`25C^2`, three see 7×7
    with :math:`27C^2` instead of :math:`49C^2`, and bend the signal more often. With fewer parameters
    they are no worse.

    64 channels between a 1×1 convolution and a global mean, digits of 8 × 8 pixels, 400 to learn from,
    8 epochs of Adam with rate 0.003; means over 3 nets.
    """
    key = Key.of(seed)
    train, test = digit_images(key.fold("rows"), 400)
    keys = key.fold("nets").split(1 if quick else 3)
    parameters, sees, accuracy = {}, {}, {}
    for name, kernels in FORMS.items():
        body = stack(kernels)
        parameters[name] = sum(p.numel() for p in body.parameters())
        sees[name] = receptive_field(body, body[-1], (C, 16, 16)).size
        each = []
        for own in keys:
            net = nn.Sequential(
                built(nn.Conv2d, 1, C, 1), nn.ReLU(), stack(kernels),
                nn.AdaptiveAvgPool2d(1), nn.Flatten(), built(nn.Linear, C, 10),
            )  # fmt: skip
            energy = trained(drawn(net, own), train, 10, 8, own, lr=0.003, batch_size=32)
            each.append(right(energy, test))
        accuracy[name] = each
    mean = {name: float(np.mean(each)) for name, each in accuracy.items()}
    claims = [
        Claim.equal("receptive fields", [sees[n] for n in FORMS], [5, 5, 7, 7]),
        Claim.equal("parameters", [parameters[n] for n in FORMS], [73_856, 102_464, 110_784, 200_768]),
        Claim.at_least("two 3×3 less one 5×5: accuracy", mean["two 3×3"] - mean["one 5×5"], 0.0),
        Claim.at_least("three 3×3 less one 7×7: accuracy", mean["three 3×3"] - mean["one 7×7"], 0.0),
    ]  # fmt: skip

    def draw(figure: Figure) -> None:
        left, other = figure.subplots(1, 2)
        left.bar(list(FORMS), [parameters[n] for n in FORMS], color=COLOURS[5])
        left.set(ylabel="parameters")
        for i, name in enumerate(FORMS):
            other.bar(i, mean[name], color=COLOURS[0])
            other.plot([i] * len(accuracy[name]), accuracy[name], "o", color=COLOURS[1])
        other.set(ylabel="accuracy on new digits", xticks=range(4), xticklabels=list(FORMS),
                  ylim=(0.5, 1))  # fmt: skip

    return Result(claims, {"accuracy": accuracy, "parameters": parameters}, draw, size=(9.0, 3.4))
