r"""Three heads of a convolutional network: global mean, global maximum, everything."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from groundstate.compute.random import Key
from groundstate.experiments.architectures.pictures import built, drawn
from groundstate.experiments.base import Claim, Figure, Result, experiment
from groundstate.testing import check_invariance, shift

SIDE, CHANNELS, CLASSES, A = 12, 16, 10, 50.0


def head(kind: str) -> nn.Sequential:
    if kind == "flatten":
        return built(nn.Sequential, nn.Flatten(), built(nn.Linear, CHANNELS * SIDE**2, CLASSES))  # type: ignore[return-value]
    pool = nn.AdaptiveAvgPool2d(1) if kind == "mean" else nn.AdaptiveMaxPool2d(1)
    return built(nn.Sequential, pool, nn.Flatten(), built(nn.Linear, CHANNELS, CLASSES))  # type: ignore[return-value]


@experiment("ARC-x-heads", theme="architectures", title="A mean over places: few weights, no place")
def heads(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Behind maps :math:`A_k` of H × W places, a mean over places moves by :math:`a/HW` when one pixel of
    a map rises by a, the maximum by about a; the gradient reaches all places of the one, and
    :math:`1/HW` of the other. Both take images of any size and do not see where things are, with
    :math:`(C+1)K` weights instead of :math:`(CHW+1)K`.

    Circular 3×3 convolutions of random 12 × 12 images to 16 maps; a = 50, far above every value.
    """
    key = Key.of(seed)
    conv = drawn(
        built(nn.Sequential, built(nn.Conv2d, 1, CHANNELS, 3, padding=1, padding_mode="circular"), nn.ReLU()),
        key.fold("conv"),
    ).double()  # fmt: skip
    x = torch.rand(4, 1, SIDE, SIDE, generator=key.fold("x").torch(), dtype=torch.float64)
    nets = {kind: head(kind).double() for kind in ("mean", "max", "flatten")}
    for kind, net in nets.items():
        drawn(net, key.fold(kind))
    maps = conv(x).detach()
    pushed = maps.clone()
    pushed[:, 0, 3, 5] += A
    moved, density, drift, slopes = {}, {}, {}, {}
    for kind, net in nets.items():
        pool = net[0]
        if kind != "flatten":
            jump = (pool(pushed) - pool(maps))[:, 0].flatten()
            moved[kind] = float(jump.mean())
        leaf = maps.clone().requires_grad_()
        (slope,) = torch.autograd.grad(net(leaf)[:, 0].sum(), leaf)
        density[kind] = float((slope != 0).double().mean())
        slopes[kind] = slope[0].abs().sum(0)
        drift[kind] = _drift(nn.Sequential(conv, net), x)
    places = SIDE * SIDE
    weights = {kind: sum(p.numel() for p in net.parameters()) for kind, net in nets.items()}
    other = conv(torch.rand(1, 1, 9, 17, generator=key.fold("y").torch(), dtype=torch.float64))
    claims = [
        Claim.close("mean: moves by a/HW", moved["mean"], A / places, tol=1e-9),
        Claim.between("maximum: moves by about a, over a", moved["max"] / A, 0.9, 1.0),
        Claim.equal("mean: share of places with a gradient", density["mean"], 1.0),
        Claim.close("maximum: the same", density["max"], 1 / places, tol=1e-12),
        Claim.below("mean: change under circular shifts", drift["mean"], 1e-6),
        Claim.below("maximum: the same", drift["max"], 1e-6),
        Claim.above("flatten: the same", drift["flatten"], 1e-3),
        Claim.equal("mean: weights", weights["mean"], (CHANNELS + 1) * CLASSES),
        Claim.equal("flatten: weights", weights["flatten"], (CHANNELS * places + 1) * CLASSES),
        Claim.equal("mean: another image size", tuple(nets["mean"](other).shape), (1, CLASSES)),
    ]
    numbers = {"moved": moved, "density": density, "drift": drift, "weights": weights}

    def draw(figure: Figure) -> None:
        for ax, (kind, slope) in zip(figure.subplots(1, 3), slopes.items()):
            ax.imshow(slope.numpy(), cmap="viridis", rasterized=True)
            ax.set(title=f"{kind}: {weights[kind]:,} weights", xticks=[], yticks=[])

    return Result(claims, numbers, draw, size=(8.0, 3.0))


def _drift(net: nn.Module, x: Tensor) -> float:
    """Largest change of the scores under all shifts along the diagonal."""
    return max(
        check_invariance(net, shift(step, step), x, atol=float("inf")) for step in range(1, SIDE)
    )
