r"""Sizes of maps: :math:`\lfloor(n+2P-D(K-1)-1)/S\rfloor+1` and back."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from groundstate.errors import ShapeError
from groundstate.nn.blocks.initialise import blank


def conv_output_size(
    n: int, kernel: int, stride: int = 1, padding: int = 0, dilation: int = 1
) -> int:
    r"""Side of a map after a convolution or pooling, :math:`\lfloor(n+2P-D(K-1)-1)/S\rfloor+1`.

    >>> conv_output_size(224, 7, 2, 3), conv_output_size(32, 5, padding=2)
    (112, 32)
    """
    _positive(n=n, kernel=kernel, stride=stride, dilation=dilation)
    if padding < 0:
        raise ValueError(f"padding is at least 0, got {padding}")
    size = (n + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
    if size < 1:
        raise ShapeError(
            f"nothing is left: an input of {n} with padding {padding} is shorter than a kernel of "
            f"{kernel} with dilation {dilation}, which spans {dilation * (kernel - 1) + 1}"
        )
    return size


def conv_transpose_output_size(
    n: int,
    kernel: int,
    stride: int = 1,
    padding: int = 0,
    output_padding: int = 0,
    dilation: int = 1,
) -> int:
    r"""Side of a map after a transposed convolution, :math:`(n-1)S-2P+D(K-1)+op+1`.

    >>> conv_transpose_output_size(112, 4, 2, 1)
    224
    """
    _positive(n=n, kernel=kernel, stride=stride, dilation=dilation)
    size = (n - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding + 1
    if size < 1:
        raise ShapeError(
            f"nothing is left: n={n}, kernel={kernel}, stride={stride}, padding={padding}, "
            f"output_padding={output_padding}, dilation={dilation} give a side of {size}"
        )
    return size


def overlap_count(n: int, kernel: int, stride: int) -> Tensor:
    r"""How many inputs reach each output of a transposed convolution, ``((n−1)·stride + kernel,)``.

    Even inside exactly where the stride divides the kernel; in two dimensions the counts are the
    outer product.

    >>> overlap_count(5, 3, 2).tolist()
    [1, 1, 2, 1, 2, 1, 2, 1, 2, 1, 1]
    """
    _positive(n=n, kernel=kernel, stride=stride)
    counts = torch.zeros((n - 1) * stride + kernel, dtype=torch.int64)
    for i in range(n):
        counts[i * stride : i * stride + kernel] += 1
    return counts


def _positive(**sizes: int) -> None:
    wrong = {name: v for name, v in sizes.items() if v < 1}
    if wrong:
        raise ValueError(f"sizes are at least 1, got {wrong}")


def linear_to_conv(layer: nn.Linear, shape: tuple[int, int, int]) -> nn.Conv2d:
    r"""A linear layer on flattened ``(C, H, W)`` maps as a convolution with a kernel of H×W.

    On maps of that size both give the same; on larger ones the convolution slides, which makes a
    classifier fully convolutional.

    >>> layer = nn.Linear(2 * 3 * 3, 5)
    >>> conv = linear_to_conv(layer, (2, 3, 3))
    >>> x = torch.randn(1, 2, 3, 3, generator=torch.Generator().manual_seed(0))
    >>> torch.allclose(conv(x).flatten(1), layer(x.flatten(1)), atol=1e-6)
    True
    """
    c, h, w = shape
    if layer.in_features != c * h * w:
        raise ShapeError(
            f"a linear layer of {layer.in_features} inputs does not read maps of {shape}, "
            f"{c * h * w} numbers"
        )
    conv = blank(nn.Conv2d, c, layer.out_features, (h, w), bias=layer.bias is not None)
    with torch.no_grad():
        conv.weight.copy_(layer.weight.view(-1, c, h, w))
        if conv.bias is not None:
            conv.bias.copy_(layer.bias)
    return conv.to(layer.weight)
