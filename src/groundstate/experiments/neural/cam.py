r"""Class activation maps point at the object."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import torch
from torch import Tensor, nn

from groundstate.compute.random import Key
from groundstate.energy.networks.network import NetworkClassEnergy
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.neural.panels import network_of
from groundstate.learn import learn
from groundstate.models.networks.cam import cam as activation_map
from groundstate.models.networks.cam import grad_cam
from groundstate.nn import init_

SIDE, NOISE, NEAR = 16, 0.1, 2
SHAPES = torch.tensor([
    [[0, 0, 1, 0, 0], [0, 0, 1, 0, 0], [1, 1, 1, 1, 1], [0, 0, 1, 0, 0], [0, 0, 1, 0, 0]],
    [[1, 1, 1, 1, 1], [1, 0, 0, 0, 1], [1, 0, 0, 0, 1], [1, 0, 0, 0, 1], [1, 1, 1, 1, 1]],
    [[1, 0, 0, 0, 1], [0, 1, 0, 1, 0], [0, 0, 1, 0, 0], [0, 1, 0, 1, 0], [1, 0, 0, 0, 1]],
], dtype=torch.float32)  # fmt: skip


def images(key: Key, n: int) -> tuple[Tensor, Tensor, Tensor]:
    """Noisy pictures ``(n, 1, 16, 16)`` of a plus, a box or a cross, labels and corners ``(n, 2)``."""
    g = key.torch()
    y = torch.arange(n) % len(SHAPES)
    at = torch.randint(0, SIDE - 4, (n, 2), generator=g)
    x = NOISE * torch.randn(n, 1, SIDE, SIDE, generator=g)
    for i in range(n):
        r, c = at[i].tolist()
        x[i, 0, r : r + 5, c : c + 5] += SHAPES[y[i]]
    return x, y, at


def network(generator: torch.Generator) -> nn.Sequential:
    with torch.random.fork_rng(devices=[]):  # weights of torch's own are drawn over, draws undone
        net = nn.Sequential(
            nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Conv2d(8, 16, 3), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, len(SHAPES)),
        )  # fmt: skip
    init_(net, generator=generator)
    return net


def hits(maps: Tensor, at: Tensor, near: int = NEAR) -> float:
    """Share of maps whose largest entry lies within so many pixels of the object's square."""
    wide = maps.shape[-1]
    flat = maps.flatten(1).argmax(1)
    top = torch.stack([flat // wide, flat % wide], 1) + (SIDE - wide) // 2  # middle of what it sees
    outside = torch.maximum(at - top, top - (at + 4)).clamp_min(0)
    return float((outside.amax(1) <= near).double().mean())


@experiment("NEU-X-cam", theme="neural", title="CAM points at the object", slow=True)
def cam(seed: int = 0, *, quick: bool = False) -> Result:
    r"""A network that ends in an average over places and a linear layer has the score
    :math:`s_c = \tfrac1z\sum_{ij}\sum_kW_{ck}A_{kij} + b_c`: the map :math:`\sum_kW_{ck}A_k` says how much
    each place adds. Its largest entry lies on or near the object. Grad-CAM needs no such ending; where
    there is one it is the positive part of the map, divided by the number z of places.

    Pictures of 16 × 16 with one of three shapes of 5 × 5 anywhere and noise 0.1; two convolutions of
    3 × 3, four starts, 600 pictures to learn from and 300 to judge. Near is within 2 pixels, which a
    random place is about three times in ten.
    """
    key = Key.of(seed)
    x, y, _ = images(key.fold("train"), 600)
    shown, truth, at = images(key.fold("test"), 300)
    share, inside, right, apart, best = [], [], [], [], torch.zeros(0)
    for i in range(2 if quick else 4):
        energy = NetworkClassEnergy((1, SIDE, SIDE), 3, network(key.fold("net", i).torch()))
        learn(
            energy, {"x": x, "y": y}, lr=0.01, epochs=30, batch_size=64, seed=key.fold("order", i)
        )
        net = network_of(energy)
        with torch.no_grad():
            right.append(float((net(shown).argmax(1) == truth).double().mean()))
        exact, x64 = deepcopy(net).double(), shown.double()
        maps = torch.stack([activation_map(exact, x64, c) for c in range(3)], 1)  # (300, 3, 12, 12)
        heat = torch.stack([grad_cam(exact, x64, c, "3") for c in range(3)], 1)
        apart.append(
            float((heat * maps[0, 0].numel() - maps.clamp_min(0)).abs().max() / maps.abs().max())
        )
        own = maps[torch.arange(len(truth)), truth]
        share.append(hits(own, at))
        inside.append(hits(own, at, 0))
        best = own if share[-1] == max(share) else best
    g = key.fold("chance").torch()
    chance = hits(torch.rand(300, SIDE, SIDE, generator=g), at)
    claims = [
        Claim.above("least accuracy of a net", min(right), 0.95),
        Claim.above("median share of maxima near the object", float(np.median(share)), 0.9),
        Claim.at_least("median share of maxima in the object", float(np.median(inside)), 0.6),
        Claim.between("near, of a random place", chance, 0.2, 0.4),
        Claim.at_most(
            "Grad-CAM times z against the positive part of CAM, relative", max(apart), 1e-6
        ),
    ]
    numbers = {
        "share near": share,
        "share inside": inside,
        "accuracy": right,
        "chance": chance,
        "difference": apart,
    }

    def draw(figure: Figure) -> None:
        for ax, i in zip(figure.subplots(2, 6).flat, range(12)):
            ax.imshow(shown[i, 0].numpy(), cmap="gray_r", vmin=-0.3, vmax=1.3, rasterized=True)
            ax.imshow(best[i].clamp_min(0).numpy(), cmap="Reds", alpha=0.5, rasterized=True,
                      extent=(1.5, SIDE - 2.5, SIDE - 2.5, 1.5))  # fmt: skip
            row, column = divmod(int(best[i].argmax()), best.shape[-1])
            ax.plot(column + 2, row + 2, "x", color=COLOURS[0], markersize=6)
            ax.set(xticks=[], yticks=[], xlim=(-0.5, 15.5), ylim=(15.5, -0.5))

    return Result(claims, numbers, draw, size=(9.0, 3.3))
