r"""Convolutional encoders and decoders of flat rows that are pictures."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Literal

import torch
from torch import Tensor, nn

from groundstate.errors import ShapeError
from groundstate.nn.blocks.activations import activation as make_activation
from groundstate.nn.blocks.contract import blocks, rows_of
from groundstate.nn.blocks.initialise import init_
from groundstate.nn.conv.upsample import ResizeConv2d

Up = Literal["resize", "transpose"]


@blocks.register(
    make=lambda: ConvEncoder((1, 6, 4), (3,), 2, activation="tanh"),
    batch=rows_of(24),
    formula=r"W\,\mathrm{vec}(\sigma(K_m * \cdots \sigma(K_1 * x)))",
)
class ConvEncoder(nn.Module):
    r"""Convolutions of stride 2, then a linear layer: flat pictures ``(B, C·H·W)`` to ``(B, n_outputs)``.

    Parameters
    ----------
    shape : of a picture, (C, H, W) or (H, W)
    channels : maps after each convolution, which halves the sides
    n_outputs : length of the code
    kernel_size : odd
    activation : after each convolution
    context : further numbers behind the pixels of a row, which join before the last layer
    generator : source of the initial weights; None is a fixed seed

    Examples
    --------
    >>> ConvEncoder((1, 28, 28), (16, 32), 8)(torch.zeros(5, 784)).shape
    torch.Size([5, 8])
    """

    def __init__(
        self,
        shape: Sequence[int],
        channels: Sequence[int] = (32, 64),
        n_outputs: int = 2,
        kernel_size: int = 3,
        activation: str = "relu",
        context: int = 0,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.shape, sizes = _shapes(shape, channels, kernel_size)
        self.channels, self.n_outputs, self.kernel_size = tuple(channels), n_outputs, kernel_size
        self.kind, self.context = activation, context
        before = self.shape[0]
        layers: list[nn.Module] = []
        with torch.random.fork_rng(devices=[]):  # weights are drawn below
            for width in self.channels:
                layers += [nn.Conv2d(before, width, kernel_size, 2, kernel_size // 2)]
                layers += [make_activation(activation)]
                before = width
            self.layers = nn.Sequential(*layers, nn.Flatten())
            h, w = sizes[-1]
            self.last = nn.Linear(before * h * w + context, n_outputs)
        init_(self, "auto", generator)

    def config(self) -> dict[str, Any]:
        return {
            "shape": list(self.shape), "channels": list(self.channels), "n_outputs": self.n_outputs,
            "kernel_size": self.kernel_size, "activation": self.kind, "context": self.context,
        }  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        c, h, w = self.shape
        size = c * h * w
        if x.ndim != 2 or x.shape[1] != size + self.context:
            raise ShapeError(
                f"this encoder reads flat pictures {self.shape}, (B, {size + self.context}), "
                f"got {tuple(x.shape)}"
            )
        features = self.layers(x[:, :size].reshape(-1, c, h, w))
        if self.context:
            features = torch.cat([features, x[:, size:]], 1)
        out: Tensor = self.last(features)
        return out


@blocks.register(
    make=lambda: ConvDecoder((1, 6, 4), (3,), 2, activation="tanh"),
    batch=rows_of(2),
    formula=r"K_m * \mathrm{up}(\cdots\sigma(K_1 * \mathrm{up}(Wz)))",
)
class ConvDecoder(nn.Module):
    r"""A linear layer, then layers that double the sides: codes ``(B, n_inputs)`` to flat pictures.

    With ``up="resize"`` a layer repeats pixels and convolves, so that every pixel is made of as many
    products as its neighbours. A transposed convolution whose stride 2 does not divide its kernel
    draws a checkerboard of period 2, and the constructor warns.

    Parameters
    ----------
    shape : of a picture, (C, H, W) or (H, W)
    channels : maps before each layer that doubles the sides, from the code on
    n_inputs : length of the code, and of what joins it
    up : "resize" or "transpose"
    kernel_size : None is 3 for "resize" and 4 for "transpose"
    activation : between the layers; none after the last
    outputs : numbers per pixel and channel, for likelihoods that need more than a mean
    generator : source of the initial weights; None is a fixed seed

    Examples
    --------
    >>> ConvDecoder((1, 28, 28), (32, 16), 8)(torch.zeros(5, 8)).shape
    torch.Size([5, 784])
    """

    def __init__(
        self,
        shape: Sequence[int],
        channels: Sequence[int] = (64, 32),
        n_inputs: int = 2,
        up: Up = "resize",
        kernel_size: int | None = None,
        activation: str = "relu",
        outputs: int = 1,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if up not in ("resize", "transpose"):
            raise ValueError(f"up must be 'resize' or 'transpose', got {up!r}")
        k = (3 if up == "resize" else 4) if kernel_size is None else kernel_size
        if up == "transpose" and k % 2:
            warnings.warn(
                f"a transposed convolution with kernel_size={k} and stride 2 overlaps unevenly and draws "
                "a checkerboard; use kernel_size=4 or up='resize'",
                stacklevel=2,
            )
        self.shape, self.sizes = _shapes(shape, channels, 3 if up == "transpose" else k)
        self.channels, self.n_inputs, self.up, self.kernel_size = tuple(channels), n_inputs, up, k
        self.kind, self.outputs = activation, outputs
        h, w = self.sizes[-1]
        with torch.random.fork_rng(devices=[]):  # weights are drawn below
            self.first = nn.Linear(n_inputs, self.channels[0] * h * w)
            widths = [*self.channels, self.shape[0] * outputs]
            self.layers = nn.ModuleList(_doubling(up, a, b, k) for a, b in pairwise(widths))
            self.activation = make_activation(activation)
        init_(self, "auto", generator)

    def config(self) -> dict[str, Any]:
        return {
            "shape": list(self.shape), "channels": list(self.channels), "n_inputs": self.n_inputs,
            "up": self.up, "kernel_size": self.kernel_size, "activation": self.kind,
            "outputs": self.outputs,
        }  # fmt: skip

    def forward(self, z: Tensor) -> Tensor:
        if z.ndim != 2 or z.shape[1] != self.n_inputs:
            raise ShapeError(f"this decoder reads codes (B, {self.n_inputs}), got {tuple(z.shape)}")
        x = self.first(z).reshape(-1, self.channels[0], *self.sizes[-1])
        for layer, (h, w) in zip(self.layers, self.sizes[-2::-1], strict=True):
            x = layer(self.activation(x))[:, :, :h, :w]  # an odd side was rounded up by the encoder
        if self.outputs == 1:
            return x.flatten(1)
        rows = x.reshape(len(x), self.shape[0], self.outputs, *self.sizes[0])
        return rows.transpose(1, 2).flatten(1)  # all means, then all second numbers, ...


def conv_encoder(
    shape: Sequence[int], channels: Sequence[int] = (32, 64), n_outputs: int = 2, **options: Any
) -> ConvEncoder:
    """A ``ConvEncoder`` for pictures of this shape.

    >>> conv_encoder((8, 8), (4,), 3)(torch.zeros(1, 64)).shape
    torch.Size([1, 3])
    """
    return ConvEncoder(shape, channels, n_outputs, **options)


def conv_decoder(
    shape: Sequence[int],
    channels: Sequence[int] = (64, 32),
    n_inputs: int = 2,
    up: Up = "resize",
    **options: Any,
) -> ConvDecoder:
    """A ``ConvDecoder`` for pictures of this shape.

    >>> conv_decoder((8, 8), (4,), 3)(torch.zeros(1, 3)).shape
    torch.Size([1, 64])
    """
    return ConvDecoder(shape, channels, n_inputs, up, **options)


def _shapes(
    shape: Sequence[int], channels: Sequence[int], kernel_size: int
) -> tuple[tuple[int, int, int], list[tuple[int, int]]]:
    """(C, H, W), and the sides of the maps from the picture to the smallest."""
    if len(shape) not in (2, 3) or min(shape) < 1:
        raise ShapeError(
            f"a picture has a shape (H, W) or (C, H, W), got {tuple(shape)}; pass images, or use dense "
            "layers for tables"
        )
    if not channels or min(channels) < 1:
        raise ValueError(f"channels lists the maps of at least one layer, got {tuple(channels)}")
    if kernel_size % 2 == 0 or kernel_size < 1:
        raise ValueError(f"an odd kernel_size keeps maps centred, got {kernel_size}")
    c, h, w = (1, *shape) if len(shape) == 2 else tuple(shape)
    sizes = [(h, w)]
    for _ in channels:
        h, w = (h + 1) // 2, (w + 1) // 2
        sizes.append((h, w))
    return (int(c), *map(int, sizes[0])), sizes  # type: ignore[return-value]


def _doubling(up: Up, before: int, after: int, k: int) -> nn.Module:
    if up == "resize":
        return ResizeConv2d(before, after, k)
    even = k - k % 2
    return nn.ConvTranspose2d(before, after, k, 2, (even - 2) // 2 + k % 2, output_padding=k % 2)
