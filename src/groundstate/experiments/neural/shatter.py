r"""Gradients of deep plain nets decorrelate along a line; skips slow it down."""

from __future__ import annotations

import torch
from torch import nn

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.learn import gradient_autocorrelation
from groundstate.nn import MLP, Residual

WIDTH, LAG, FAR = 200, 8, 16
NETS = {
    "1 layer": (1, False, None),
    "24 layers": (24, False, None),
    "50 layers": (50, False, None),
    "24 residual": (24, True, None),
    "24 residual, / √24": (24, True, None),
    "50 residual": (50, True, None),
    "50 residual, batch norm": (50, True, "batch"),
}


SCALED = "24 residual, / √24"


def network(key: Key, depth: int, residual: bool, norm: str | None, branch: float = 1.0) -> MLP:
    """He's weights, and standard normal biases that put joints all along the line; the branches of
    residual blocks are multiplied by ``branch``."""
    generator = key.fold("weights").torch()
    net = MLP(1, (WIDTH,) * depth, residual=residual, norm=norm, init="he", generator=generator)
    for layer in net.modules():
        if isinstance(layer, nn.Linear) and layer.bias is not None:
            layer.bias.data.normal_(generator=generator)
    for block in net.modules():
        if isinstance(block, Residual):
            block.factor = branch
    return net


@experiment("NEU-X-shatter", theme="neural", title="Gradients shatter with depth", slow=True)
def shatter(seed: int = 0, *, quick: bool = False) -> Result:
    r"""The slope :math:`g = dy/dx` of a random ReLU network of one input is a step function with more
    and more steps as layers are added. Its autocorrelation
    :math:`c_k = \sum_ig_ig_{i+k}/\sum_ig_i^2` falls towards white noise, where a gradient says
    nothing about its neighbourhood. Skips keep part of the shallow function, the more of it the less
    their branches add: :math:`h + f(h)/\sqrt L` in L layers.

    Width 200, 256 points on [−2, 2], lags 8 and 16, means over 64 nets, since that of 8 varies by 0.07
    from draw to draw. Batch norm with the statistics of the line itself decorrelates faster; that is
    reported, not claimed.
    """
    line = torch.linspace(-2, 2, 256)
    keys = Key.of(seed).split(16 if quick else 64)
    curves = {}
    for name, form in NETS.items():
        own = keys if form[2] is None else keys[:8]
        branch = form[0] ** -0.5 if name == SCALED else 1.0
        nets = [network(key.fold(name), *form, branch) for key in own]
        curves[name] = gradient_autocorrelation(nets, line)
    c = {name: float(curve[LAG]) for name, curve in curves.items()}
    far = {name: float(curve[FAR]) for name, curve in curves.items()}
    claims = [
        Claim.above("plain: 1 layer less 24 layers", c["1 layer"] - c["24 layers"], 0.0),
        Claim.above("plain: 24 layers less 50 layers", c["24 layers"] - c["50 layers"], 0.0),
        Claim.above("24 layers: residual less plain", c["24 residual"] - c["24 layers"], 0.0),
        Claim.above("50 layers: residual less plain", c["50 residual"] - c["50 layers"], 0.0),
        Claim.above("lag 16: 1 layer", far["1 layer"], 0.6),
        Claim.below("lag 16: 24 layers", far["24 layers"], 0.35),
        Claim.above("lag 16: 24 residual layers with branches over √24", far[SCALED], 0.45),
    ]
    slopes = {}
    for name in ("1 layer", "50 layers", "50 residual"):
        x = line.reshape(-1, 1).clone().requires_grad_(True)
        y = network(keys[0].fold(name), *NETS[name])(x)
        slopes[name] = torch.autograd.grad(y.sum(), x)[0][:, 0]

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        for i, (name, g) in enumerate(slopes.items()):
            scaled = (g - g.mean()) / g.std()
            left.step(
                line.numpy(), scaled.numpy() + 5 * i, color=COLOURS[i], linewidth=0.9, label=name
            )
        left.set(xlabel="x", title="dy/dx, scaled", yticks=[], ylim=(-4, 19))
        for i, (name, curve) in enumerate(curves.items()):
            right.plot(curve[:60].numpy(), color=(*COLOURS, "black")[i], label=name)
        right.axvline(LAG, color="black", linestyle=":", linewidth=0.8)
        right.set(xlabel="lag", title="autocorrelation of dy/dx")
        left.legend(loc="upper right")
        right.legend()

    return Result(claims, {"lag 8": c, "lag 16": far}, draw, size=(9.0, 3.8))
