r"""Convolutions that see the pixels before one's own alone, and a network of them (PixelCNN)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from groundstate.nn.blocks.contract import blocks, rows_of
from groundstate.nn.blocks.initialise import blank, init_, linear


@blocks.register(
    make=lambda: MaskedConv2d(2, 4, 3, "A", groups=2),
    batch=rows_of(2, 4, 4),
    formula=r"(W \odot M) * x",
)
class MaskedConv2d(nn.Module):
    r"""A convolution :math:`(W \odot M) * x` whose output at a pixel sees the rows above and the pixels to
    the left; of the pixel itself, only the channel groups before its own ("A") or up to its own ("B").

    Parameters
    ----------
    in_channels, out_channels : both are cut into ``groups`` equal parts, in order
    kernel : odd side of the window
    kind : "A" for the first layer, "B" for all others
    groups : channels of the picture: red, green, blue
    halves : parts of the outputs, each cut into groups by itself
    """

    mask: Tensor

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel: int = 3,
        kind: str = "B",
        groups: int = 1,
        halves: int = 1,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if kernel % 2 == 0 or kind not in ("A", "B"):
            raise ValueError(
                f"an odd kernel and the kind 'A' or 'B' are needed, got {kernel}, {kind!r}"
            )
        if in_channels % groups or out_channels % (groups * halves):
            raise ValueError(
                f"{in_channels} and {out_channels} channels cannot be cut into {groups} groups"
            )
        self.kernel, self.kind, self.groups, self.halves = kernel, kind, groups, halves
        self.conv = blank(nn.Conv2d, in_channels, out_channels, kernel, padding=kernel // 2)
        init_(self.conv, "torch", generator or torch.Generator().manual_seed(0))
        mask = torch.zeros(out_channels, in_channels, kernel, kernel)
        middle = kernel // 2
        mask[:, :, :middle] = 1
        mask[:, :, middle, :middle] = 1
        source = torch.arange(in_channels) * groups // in_channels
        part = out_channels // halves
        target = (torch.arange(out_channels) % part) * groups // part
        allowed = target[:, None] > source if kind == "A" else target[:, None] >= source
        mask[:, :, middle, middle] = allowed.to(mask.dtype)
        self.register_buffer("mask", mask, persistent=False)

    def config(self) -> dict[str, Any]:
        return {
            "in_channels": self.conv.in_channels, "out_channels": self.conv.out_channels,
            "kernel": self.kernel, "kind": self.kind, "groups": self.groups, "halves": self.halves,
        }  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        return functional.conv2d(
            x, self.conv.weight * self.mask, self.conv.bias, padding=self.kernel // 2
        )

    def seen(self) -> Tensor:
        """Weights of the rows up to the middle one, ``(window, out)``, windows by row, column, channel."""
        W = (self.conv.weight * self.mask)[:, :, : self.kernel // 2 + 1]
        return W.permute(2, 3, 1, 0).flatten(0, 2)

    def extra_repr(self) -> str:
        return f"kernel={self.kernel}, kind={self.kind!r}, groups={self.groups}"


class _Gated(nn.Module):
    r""":math:`h + W_1\,(\tanh(a)\odot\sigma(b))` with :math:`(a, b) = (W_3\odot M) * h + Vy`."""

    def __init__(
        self, features: int, kernel: int, groups: int, context: int, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.look = MaskedConv2d(
            features, 2 * features, kernel, "B", groups, 2, generator=generator
        )
        self.mix = MaskedConv2d(features, features, 1, "B", groups, generator=generator)
        self.given = linear(context, 2 * features, bias=False) if context else None
        if self.given is not None:
            init_(self.given, "torch", generator)

    def forward(self, h: Tensor, context: Tensor | None) -> Tensor:
        out = self.look(h)
        if self.given is not None and context is not None:
            out = out + self.given(context)[:, :, None, None]
        a, b = out.chunk(2, 1)
        mixed: Tensor = self.mix(torch.tanh(a) * torch.sigmoid(b))
        return h + mixed


class PixelNet(nn.Module):
    r"""Outputs of every pixel and channel from those before it in raster order: a masked convolution A,
    gated residual blocks of masked convolutions B, and two pointwise layers.

    Parameters
    ----------
    shape : (C, H, W) of a picture
    size : outputs of each pixel and channel
    features : channels of hidden layers, made a multiple of C
    layers : gated blocks
    kernel, first : windows of the blocks and of the first layer
    context : numbers that every output may depend on
    generator : source of the initial weights

    Examples
    --------
    >>> net = PixelNet((1, 4, 4), 3, 8, 2)
    >>> net(torch.zeros(2, 1, 4, 4)).shape
    torch.Size([2, 3, 1, 4, 4])
    """

    def __init__(
        self,
        shape: Sequence[int],
        size: int,
        features: int = 32,
        layers: int = 4,
        kernel: int = 3,
        first: int = 5,
        context: int = 0,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        generator = generator or torch.Generator().manual_seed(0)
        self.shape, self.size = tuple(shape), size
        c = self.shape[0]
        features = c * math.ceil(features / c)
        self.features, self.layers = features, layers
        self.kernel, self.first, self.context = kernel, first, context
        self.enter = MaskedConv2d(c, features, first, "A", c, generator=generator)
        self.blocks = nn.ModuleList(
            [_Gated(features, kernel, c, context, generator) for _ in range(layers)]
        )
        self.given = linear(context, features, bias=False) if context else None
        if self.given is not None:
            init_(self.given, "torch", generator)
        self.thin = MaskedConv2d(features, features, 1, "B", c, generator=generator)
        self.leave = MaskedConv2d(features, c * size, 1, "B", c, generator=generator)

    def config(self) -> dict[str, Any]:
        return {
            "shape": list(self.shape), "size": self.size, "features": self.features,
            "layers": self.layers, "kernel": self.kernel, "first": self.first,
            "context": self.context,
        }  # fmt: skip

    def forward(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        """``(B, size, C, H, W)`` of pictures ``(B, C, H, W)``."""
        h = self.enter(x)
        if self.given is not None and context is not None:
            h = h + self.given(context)[:, :, None, None]
        for block in self.blocks:
            h = block(h, context)
        out: Tensor = self.leave(functional.relu(self.thin(functional.relu(h))))
        c, height, width = self.shape
        return out.reshape(len(x), c, self.size, height, width).transpose(1, 2)

    @torch.no_grad()
    def start_at(self, outputs: Tensor) -> None:
        """Give these outputs ``(size,)`` for every pixel at first."""
        self.leave.conv.weight.zero_()
        bias = self.leave.conv.bias
        assert bias is not None
        bias.copy_(outputs.repeat(self.shape[0]))

    def stepper(self, rows: int, context: Tensor | None = None) -> PixelSteps:
        """Outputs pixel by pixel; what lies behind is kept."""
        return PixelSteps(self, rows, context)


class PixelSteps:
    """The outputs of a `PixelNet` at one pixel after the other, for the work of one pass.

    Every layer is computed at the new pixel alone, from what is kept of the layer below.

    Examples
    --------
    >>> net = PixelNet((1, 2, 2), 3, 4, 1)
    >>> x = torch.tensor([[[[0.1, 0.2], [0.3, 0.4]]]])
    >>> steps = net.stepper(1)
    >>> out = []
    >>> for i in range(2):
    ...     for j in range(2):
    ...         out.append(steps.at(i, j))  # (1, size, C)
    ...         steps.put(i, j, x[:, :, i, j])
    >>> torch.allclose(torch.stack(out, -1).reshape(1, 3, 1, 2, 2), net(x), atol=1e-6)
    True
    """

    @torch.no_grad()
    def __init__(self, net: PixelNet, rows: int, context: Tensor | None = None) -> None:
        self.net, self.rows = net, rows
        c, height, width = net.shape
        like = net.enter.conv.weight
        self.first, p = net.first // 2, net.kernel // 2

        def room(pad: int, channels: int) -> Tensor:
            return like.new_zeros(rows, height + pad, width + 2 * pad, channels)

        self.picture = room(self.first, c)
        self.kept = [room(p, net.features) for _ in net.blocks]
        blocks: list[Any] = list(net.blocks)
        self.enter: Any = (net.enter.seen(), net.enter.conv.bias)
        self.look = [(b.look.seen(), b.look.conv.bias) for b in blocks]
        self.mix = [(b.mix.seen(), b.mix.conv.bias) for b in blocks]
        self.ends: list[Any] = [(m.seen(), m.conv.bias) for m in (net.thin, net.leave)]
        nothing = context is None or net.given is None
        self.given = None if nothing else net.given(context)  # type: ignore[misc]
        self.gates = [None if nothing else b.given(context) for b in blocks]

    def put(self, i: int, j: int, values: Tensor) -> None:
        """The values ``(B, C)`` of a pixel, as the network takes them."""
        self.picture[:, i + self.first, j + self.first] = values

    @torch.no_grad()
    def at(self, i: int, j: int) -> Tensor:
        """Outputs ``(B, size, C)`` of a pixel; those of a channel know the channels before it."""
        h = _window(self.picture, i, j, self.net.first) @ self.enter[0] + self.enter[1]
        if self.given is not None:
            h = h + self.given
        p, k = self.net.kernel // 2, self.net.kernel
        for kept, look, mix, gate in zip(self.kept, self.look, self.mix, self.gates, strict=True):
            kept[:, i + p, j + p] = h
            out = _window(kept, i, j, k) @ look[0] + look[1]
            a, b = (out if gate is None else out + gate).chunk(2, 1)
            h = h + (torch.tanh(a) * torch.sigmoid(b)) @ mix[0] + mix[1]
        for W, bias in self.ends:
            h = torch.relu(h) @ W + bias
        return h.reshape(self.rows, self.net.shape[0], self.net.size).transpose(1, 2)


def _window(kept: Tensor, i: int, j: int, kernel: int) -> Tensor:
    return kept[:, i : i + kernel // 2 + 1, j : j + kernel].reshape(len(kept), -1)
