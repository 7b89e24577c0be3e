r"""Transposed convolutions leave a checkerboard; resizing before a convolution does not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from groundstate.compute.random import Key
from groundstate.experiments.architectures.pictures import built
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.nn import ResizeConv2d, init_, overlap_count

CHANNELS, START, NETS = 8, 16, 16


def generator(kind: tuple[int, int] | None, key: Key) -> nn.Sequential:
    """Three layers that double the side, with random weights; None is nearest resize-convolution."""
    layers: list[nn.Module] = []
    for i in range(3):
        out = CHANNELS if i < 2 else 1
        if kind is None:
            layers.append(built(ResizeConv2d, CHANNELS, out, 3))
        else:
            layers.append(built(nn.ConvTranspose2d, CHANNELS, out, *kind, padding=1))
        layers += [nn.ReLU()] if i < 2 else []
    net = nn.Sequential(*layers)
    init_(net, "he", key.torch())
    return net


@torch.no_grad()
def spectrum(kind: tuple[int, int] | None, keys: Sequence[Key]) -> tuple[Tensor, Tensor]:
    """Mean power along rows of the outputs, and one output."""
    total, picture = torch.zeros(33, dtype=torch.float64), torch.zeros(0)
    for key in keys:
        g = key.fold("z").torch()
        z = torch.rand(8, CHANNELS, 1, 1, generator=g)  # a flat picture, a little uneven
        z = z + 0.1 * torch.randn(8, CHANNELS, START, START, generator=g)
        out = generator(kind, key)(z)[:, 0]
        middle = (out.shape[-1] - 64) // 2
        out = out[:, middle : middle + 64, middle : middle + 64]  # away from the border
        out = (out - out.mean()) / out.std()
        power = torch.fft.rfft(out, dim=-1).abs().double().square().mean((0, 1))
        total += power / len(keys)
        picture = out[0]
    return total, picture


@experiment(
    "ARC-x-checker", theme="architectures", title="Uneven overlap draws a checkerboard", slow=True
)
def checker(seed: int = 0, *, quick: bool = False) -> Result:
    r"""A transposed convolution pastes kernels of side k every s pixels. The number of kernels that
    meet at a pixel is even inside exactly where :math:`k \bmod s = 0`; but even then the taps that meet
    at neighbouring pixels are different ones, and random weights draw the pattern of period s. An
    image that is resized first and convolved afterwards sees the same kernel at every pixel.

    Counts for k up to 8 and s up to 4. Random three-layer generators of nearly flat maps: power of their
    rows at the frequency 1/2, over that of the seven frequencies below it (the periods 2, 4 and 8 meet
    at multiples of 1/8), means over 16 nets.
    """
    flat = {
        (k, s): len(set(overlap_count(16, k, s)[k:-k].tolist())) == 1
        for k in range(1, 9)
        for s in range(1, 5)
    }
    as_claimed = all(even == (k % s == 0) for (k, s), even in flat.items())
    keys = Key.of(seed).split(6 if quick else NETS)
    kinds: dict[str, tuple[int, int] | None] = {
        "transposed (3, 2)": (3, 2), "transposed (4, 2)": (4, 2), "resize": None,
    }  # fmt: skip
    found = {name: spectrum(kind, keys) for name, kind in kinds.items()}
    peak = {name: float(p[-1] / p[-8:-1].mean()) for name, (p, _) in found.items()}
    claims = [
        Claim.equal("counts are even inside exactly where s divides k", as_claimed, True),
        Claim.above("transposed (3, 2): power at 1/2 over its neighbours", peak["transposed (3, 2)"], 50),
        Claim.above("transposed (4, 2): the same", peak["transposed (4, 2)"], 50),
        Claim.below("resize, then convolve: the same", peak["resize"], 3),
    ]  # fmt: skip

    def draw(figure: Figure) -> None:
        axes = figure.subplots(2, 4)
        for ax, (k, s) in zip(axes[:, 0], ((3, 2), (4, 2))):
            counts = overlap_count(6, k, s)
            ax.bar(range(len(counts)), counts.numpy(), color=COLOURS[0])
            ax.set(title=f"kernel {k}, stride {s}", yticks=[0, 1, 2])
        for j, (name, (power, picture)) in enumerate(found.items(), start=1):
            axes[0, j].imshow(picture.numpy(), cmap="gray", rasterized=True)
            axes[0, j].set(title=name, xticks=[], yticks=[])
            axes[1, j].semilogy(np.arange(33) / 64, power.numpy(), color=COLOURS[j])
            axes[1, j].set(xlabel="cycles per pixel")

    return Result(claims, {"peak": peak}, draw, size=(10.0, 4.4))
