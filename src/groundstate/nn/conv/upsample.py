r"""Up-sampling: interpolate, then convolve, so that every output sees as many inputs as its
neighbours.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.nn.functional import interpolate

from groundstate.nn.blocks.contract import blocks, rows_of

MODES = ("nearest", "bilinear")
_LINEAR = {1: "linear", 2: "bilinear", 3: "trilinear"}


class _ResizeConv(nn.Module):
    n_dim = 2

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int = 3,
        scale: int = 2,
        mode: str = "nearest",
        *,
        padding_mode: str = "replicate",
        bias: bool = True,
    ) -> None:
        super().__init__()
        if mode not in MODES:
            raise ValueError(f"mode is one of {', '.join(MODES)}, got {mode!r}")
        if kernel_size % 2 == 0 or scale < 1:
            raise ValueError(
                f"an odd kernel_size keeps the size and scale is at least 1, got kernel_size="
                f"{kernel_size}, scale={scale}"
            )
        self.scale, self.mode = scale, mode
        self.conv: nn.Module = getattr(nn, f"Conv{self.n_dim}d")(
            in_channels, out_channels, kernel_size, padding=kernel_size // 2,
            padding_mode=padding_mode, bias=bias,
        )  # fmt: skip
        self._settings = {"in_channels": in_channels, "out_channels": out_channels,
                          "kernel_size": kernel_size, "scale": scale, "mode": mode,
                          "padding_mode": padding_mode, "bias": bias}  # fmt: skip

    def config(self) -> dict[str, Any]:
        return dict(self._settings)

    def forward(self, x: Tensor) -> Tensor:
        if self.mode == "nearest":
            wide = interpolate(x, scale_factor=self.scale, mode="nearest")
        else:
            kind = _LINEAR[self.n_dim]
            wide = interpolate(x, scale_factor=self.scale, mode=kind, align_corners=False)
        out: Tensor = self.conv(wide)
        return out


@blocks.register(
    make=lambda: ResizeConv2d(2, 3), batch=rows_of(2, 3, 4), formula=r"K*\mathrm{resize}(x)"
)
class ResizeConv2d(_ResizeConv):
    r"""Resize an image by a whole factor, then convolve: ``(N, C, H, W)`` to ``(N, C', sH, sW)``.

    Unlike a transposed convolution whose stride does not divide its kernel, every output is made of
    as many products as its neighbours: no checkerboard. A constant stays constant up to the border
    with the default padding.

    Parameters
    ----------
    in_channels, out_channels : maps
    kernel_size : odd
    scale : factor of the sides
    mode : "nearest" or "bilinear"
    padding_mode, bias : of the convolution

    Examples
    --------
    >>> import torch
    >>> ResizeConv2d(2, 3, scale=2)(torch.zeros(1, 2, 5, 4)).shape
    torch.Size([1, 3, 10, 8])
    """


class ResizeConv1d(_ResizeConv):
    """``ResizeConv2d`` of signals ``(N, C, L)``."""

    n_dim = 1


class ResizeConv3d(_ResizeConv):
    """``ResizeConv2d`` of volumes ``(N, C, D, H, W)``."""

    n_dim = 3


def resize_conv(in_channels: int, out_channels: int, *, n_dim: int = 2) -> nn.Module:
    """Twice the side, nearest, then a convolution of 3, in 1, 2 or 3 dimensions."""
    kinds: dict[int, type[_ResizeConv]] = {1: ResizeConv1d, 2: ResizeConv2d, 3: ResizeConv3d}
    return kinds[n_dim](in_channels, out_channels)
