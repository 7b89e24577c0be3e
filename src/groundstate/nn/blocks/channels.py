r"""Pictures of mean 0 and unit contrast in each channel."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from groundstate.compute.foreign.torch import functorch_wrapped
from groundstate.errors import ShapeError
from groundstate.nn.blocks.contract import blocks, rows_of


@blocks.register(
    make=lambda: StandardizeChannels(2), batch=rows_of(2, 3, 3), formula=r"(x_c-\bar x_c)/s_c"
)
class StandardizeChannels(nn.Module):
    r""":math:`(x_c - \bar x_c)/s_c` with mean and standard deviation of each channel.

    Parameters
    ----------
    channels : C
    together : on a CPU, pictures go on with the channels of a pixel side by side in memory, an order
        that the layers behind it keep and in which maxima are taken over many channels at once

    Attributes
    ----------
    mean, scale : buffers ``(C,)``; 0 and 1 until they are set

    Examples
    --------
    >>> layer = StandardizeChannels(1).set([0.5], [0.25])
    >>> layer(torch.ones(1, 1, 1, 2)).flatten().tolist()
    [2.0, 2.0]
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, channels: int, together: bool = False) -> None:
        super().__init__()
        self.channels, self.together = channels, together
        self.register_buffer("mean", torch.zeros(channels))
        self.register_buffer("scale", torch.ones(channels))

    def config(self) -> dict[str, Any]:
        return {"channels": self.channels, "together": self.together}

    @torch.no_grad()
    def set(self, mean: Any, scale: Any) -> StandardizeChannels:
        """Take mean and standard deviation, ``(C,)`` each."""
        self.mean.copy_(torch.as_tensor(mean))
        self.scale.copy_(torch.as_tensor(scale))
        return self

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim < 3 or x.shape[1] != self.channels:
            raise ShapeError(
                f"StandardizeChannels takes (N, {self.channels}, places...), got {tuple(x.shape)}"
            )
        shape = (1, -1, *[1] * (x.ndim - 2))
        out = (x - self.mean.view(shape)) / self.scale.view(shape)
        if not self.together or out.ndim != 4 or not out.is_cpu or functorch_wrapped(out):
            return out
        return out.clone(memory_format=torch.channels_last)

    def extra_repr(self) -> str:
        return f"channels={self.channels}"


def standardized(net: nn.Module, mean: Any, scale: Any) -> nn.Sequential:
    """A network behind channels of mean 0 and unit contrast. Where it pools by maxima, the channels of a
    pixel lie together; without that, convolutions of many channels are quicker as they are.
    """
    pools = any(isinstance(layer, nn.MaxPool2d) for layer in net.modules())
    return nn.Sequential(StandardizeChannels(len(mean), pools).set(mean, scale), net)
