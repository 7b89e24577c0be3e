r"""Convolutions of many small networks as batched products.

Under ``vmap`` a convolution with weights of its own per member becomes one convolution with as many
groups as members, which libraries run slowly when a group has few channels. Written as

.. math:: Y = W\,\mathrm{cols}(X), \qquad \mathrm{cols}(X) \in
    \mathbb{R}^{C k^2 \times B L},

with L places of the image, it is one batched product for all members.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

FEW = 16  # channels of a group up to which products are quicker than grouped convolutions


class ProductConv1d(nn.Conv1d):
    """``nn.Conv1d`` as a product."""

    def forward(self, input: Tensor) -> Tensor:
        return _convolved(self, input)


class ProductConv2d(nn.Conv2d):
    """``nn.Conv2d`` as a product."""

    def forward(self, input: Tensor) -> Tensor:
        return _convolved(self, input)


def _convolved(layer: nn.Conv1d | nn.Conv2d, x: Tensor) -> Tensor:
    """The output of a layer, ``(B, out, *places)``."""
    weight, dims = layer.weight, len(layer.kernel_size)
    if any(layer._reversed_padding_repeated_twice):
        x = nn.functional.pad(x, layer._reversed_padding_repeated_twice)
    rows = x.shape[0]
    for d in range(dims):
        spread = layer.dilation[d] * (layer.kernel_size[d] - 1) + 1
        x = x.unfold(2 + d, spread, layer.stride[d])[..., :: layer.dilation[d]]
    places = x.shape[2 : 2 + dims]  # (B, C, *places, *kernel)
    order = (1, *range(2 + dims, 2 + 2 * dims), 0, *range(2, 2 + dims))
    columns = x.permute(order).reshape(weight[0].numel(), -1)  # (C k², B L)
    out = torch.mm(weight.reshape(len(weight), -1), columns)
    if layer.bias is not None:
        out = out + layer.bias[:, None]
    return out.view(len(weight), rows, *places).transpose(0, 1)


KINDS: dict[Any, Any] = {
    nn.Conv1d: ProductConv1d,
    nn.Conv2d: ProductConv2d,
}


def as_products(net: nn.Module) -> None:
    """Let the convolutions of few channels in a network compute as products."""
    for layer in net.modules():
        kind = KINDS.get(type(layer))
        if kind is not None and isinstance(layer, nn.Conv1d | nn.Conv2d):
            plain = layer.groups == 1 and layer.padding_mode == "zeros"
            if plain and layer.in_channels <= FEW:
                layer.__class__ = kind


def as_convolutions(net: nn.Module) -> None:
    """Undo `as_products`."""
    back = {made: kind for kind, made in KINDS.items()}
    for layer in net.modules():
        if type(layer) in back:
            layer.__class__ = back[type(layer)]


__all__ = ["as_convolutions", "as_products"]
