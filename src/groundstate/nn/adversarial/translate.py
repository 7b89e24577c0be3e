r"""Players of image translation: a U-Net paints, and patches are judged one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.nn.zoo.unet import UNet


class UNetGenerator(nn.Module):
    r"""Image a and noise to image b, :math:`b = f(\mathrm{UNet}([a, z]))`; z is spread over the image as
    constant channels.

    Parameters
    ----------
    given_shape, shape : channels, height and width of a and of b; equal heights and widths
    n_components : length of z; 0 makes b a function of a alone
    base, depth : of the U-Net
    out_activation : "identity" or "tanh"

    Examples
    --------
    >>> g = UNetGenerator((1, 8, 8), (3, 8, 8), 2, base=4, depth=2)
    >>> g(torch.zeros(5, 2), torch.zeros(5, 64)).shape
    torch.Size([5, 192])
    """

    def __init__(
        self,
        given_shape: Sequence[int],
        shape: Sequence[int],
        n_components: int = 0,
        base: int = 16,
        depth: int = 2,
        out_activation: str = "tanh",
    ) -> None:
        super().__init__()
        self.given_shape, self.shape = tuple(given_shape), tuple(shape)
        self.n_components, self.base, self.depth = n_components, base, depth
        self.out_activation = out_activation
        channels = self.given_shape[0] + n_components
        self.net = UNet(channels, self.shape[0], base, depth, up="resize", norm="group")

    def config(self) -> dict[str, Any]:
        return {
            "given_shape": list(self.given_shape), "shape": list(self.shape),
            "n_components": self.n_components, "base": self.base, "depth": self.depth,
            "out_activation": self.out_activation,
        }  # fmt: skip

    def forward(
        self, z: Tensor, y: Tensor | None = None, generator: torch.Generator | None = None
    ) -> Tensor:
        if y is None:
            raise ValueError("a translation needs the image it starts from, y")
        a = y.unflatten(1, self.given_shape)
        if self.n_components:
            a = torch.cat([a, z[:, :, None, None].expand(*z.shape, *a.shape[2:])], 1)
        b: Tensor = self.net(a)
        return (torch.tanh(b) if self.out_activation == "tanh" else b).flatten(1)


class PatchDiscriminator(nn.Module):
    r"""Logits of overlapping patches of the pair (a, b), or of b alone.

    Convolutions 4×4 of stride 2 (``depth`` of them, LeakyReLU 0.2), then one 3×3 to the logits: a map
    whose entries each see a patch of the image.

    Parameters
    ----------
    given_shape, shape : channels, height and width of a and of b
    base : maps of the first layer, doubled at every halving
    depth : halvings
    conditional : whether it sees a

    Examples
    --------
    >>> d = PatchDiscriminator((1, 8, 8), (1, 8, 8), base=4, depth=1)
    >>> d(torch.zeros(5, 64), torch.zeros(5, 64)).shape
    torch.Size([5, 16])
    """

    def __init__(
        self,
        given_shape: Sequence[int],
        shape: Sequence[int],
        base: int = 32,
        depth: int = 2,
        conditional: bool = True,
    ) -> None:
        super().__init__()
        self.given_shape, self.shape = tuple(given_shape), tuple(shape)
        self.base, self.depth, self.conditional = base, depth, conditional
        before = self.shape[0] + (self.given_shape[0] if conditional else 0)
        layers: list[nn.Module] = []
        for i in range(depth):
            layers += [nn.Conv2d(before, base * 2**i, 4, 2, 1), nn.LeakyReLU(0.2)]
            before = base * 2**i
        self.net = nn.Sequential(*layers, nn.Conv2d(before, 1, 3, padding=1))

    def config(self) -> dict[str, Any]:
        return {
            "given_shape": list(self.given_shape), "shape": list(self.shape), "base": self.base,
            "depth": self.depth, "conditional": self.conditional,
        }  # fmt: skip

    def forward(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        b = x.unflatten(1, self.shape)
        if self.conditional:
            if y is None:
                raise ValueError("this discriminator judges pairs and needs the image y too")
            b = torch.cat([y.unflatten(1, self.given_shape), b], 1)
        s: Tensor = self.net(b)
        return s.flatten(1)
