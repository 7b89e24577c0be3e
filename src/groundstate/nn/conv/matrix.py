r"""A convolution as a matrix, :math:`\operatorname{vec}(y) = W\operatorname{vec}(x) + b`."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from groundstate.errors import ShapeError, Unsupported

Conv = nn.Conv1d | nn.Conv2d | nn.Conv3d


def conv_matrix(layer: Conv, shape: Sequence[int]) -> tuple[Tensor, Tensor]:
    r"""W and b with :math:`\operatorname{vec}(y) = W\operatorname{vec}(x) + b` for inputs of a shape.

    W is banded (Toeplitz with stride 1): row for row the same :math:`K\cdot C` weights, shifted. It
    is as large as outputs × inputs, for looking at and for tests.

    Parameters
    ----------
    layer : convolution, any padding, stride, dilation and groups
    shape : of one input, ``(C, *spatial)``

    Returns
    -------
    W : ``(outputs, inputs)``
    b : ``(outputs,)``

    Examples
    --------
    >>> layer = nn.Conv1d(1, 1, 3, padding=1, bias=False)
    >>> _ = layer.weight.data.copy_(torch.tensor([[[1.0, 2.0, 4.0]]]))
    >>> conv_matrix(layer, (1, 4))[0].int().tolist()
    [[2, 4, 0, 0], [1, 2, 4, 0], [0, 1, 2, 4], [0, 0, 1, 2]]
    """
    if len(shape) != len(layer.kernel_size) + 1 or shape[0] != layer.in_channels:
        raise ShapeError(
            f"{type(layer).__name__} takes ({layer.in_channels}, {len(layer.kernel_size)} spatial "
            f"axes), got {tuple(shape)}"
        )
    n = int(torch.Size(shape).numel())
    like = layer.weight.detach()
    with torch.no_grad():
        zero = layer(like.new_zeros(1, *shape)).flatten()
        units = torch.eye(n, dtype=like.dtype, device=like.device).reshape(n, *shape)
        W = (layer(units).flatten(1) - zero).T  # (outputs, inputs)
    return W, zero


def im2col(x: Tensor, layer: nn.Conv2d) -> Tensor:
    r"""The windows that a convolution sees, ``(N, C·Πk, places)``: ``torch.nn.Unfold`` of the layer.

    ``weight.flatten(1) @ im2col(x, layer)`` is the convolution without its bias.

    >>> layer = nn.Conv2d(4, 1, 3, bias=False)
    >>> im2col(torch.zeros(2, 4, 5, 5), layer).shape
    torch.Size([2, 36, 9])
    """
    if layer.groups != 1 or isinstance(layer.padding, str) or layer.padding_mode != "zeros":
        raise Unsupported("im2col is of ungrouped convolutions with padding by a number of zeros")
    return F.unfold(x, layer.kernel_size, layer.dilation, layer.padding, layer.stride)


def true_convolve(x: Tensor, k: Tensor, mode: str = "same") -> Tensor:
    r"""Convolution of signal processing, :math:`y_i = \sum_u k_u x_{i-u}`: the kernel is flipped.

    ``torch.nn.Conv`` correlates, :math:`\sum_u k_u x_{i+u}`; flipping the spatial axes of the kernel
    (not its channels) turns one into the other, and corr(flip x, k) = flip(conv(x, k)).

    Parameters
    ----------
    x : ``(L,)``, ``(H, W)``, or ``(N, C_in, *spatial)``
    k : ``(K,)``, ``(h, w)``, or ``(C_out, C_in, *kernel)``
    mode : "same" (the middle, as ``scipy.signal.convolve``), "full" or "valid"

    Examples
    --------
    >>> true_convolve(torch.arange(1.0, 6.0), torch.tensor([1.0, 2.0, 4.0])).tolist()
    [4.0, 11.0, 18.0, 25.0, 26.0]
    """
    if mode not in ("same", "full", "valid"):
        raise ValueError(f"mode is 'same', 'full' or 'valid', got {mode!r}")
    plain = x.ndim == k.ndim and x.ndim <= 2
    if plain:
        x, k = x[None, None], k[None, None]
    n = x.ndim - 2
    if n not in (1, 2, 3) or k.ndim != x.ndim or k.shape[1] != x.shape[1]:
        raise ShapeError(
            f"signals (N, C_in, *spatial) need kernels (C_out, C_in, *kernel), got {tuple(x.shape)} "
            f"and {tuple(k.shape)}"
        )
    sizes = k.shape[2:]
    if mode != "valid":
        x = F.pad(x, [v for s in reversed(sizes) for v in (s - 1, s - 1)])
    y: Tensor = (F.conv1d, F.conv2d, F.conv3d)[n - 1](x, k.flip(tuple(range(2, 2 + n))))
    if mode == "same":
        for axis, s in enumerate(sizes, start=2):
            y = y.narrow(axis, (s - 1) // 2, y.shape[axis] - (s - 1))
    return y[0, 0] if plain else y
