r"""A classifier head for pictures of any size."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from groundstate.nn.blocks.contract import blocks, rows_of
from groundstate.nn.blocks.initialise import init_, linear


@blocks.register(
    make=lambda: PoolHead(2, 3), batch=rows_of(2, 4, 5), formula=r"W\,\mathrm{mean}(x)+b"
)
class PoolHead(nn.Module):
    r"""Mean over all positions, then a linear map: :math:`W\,\frac1{|P|}\sum_{p} x_p + b`.

    The mean (``AdaptiveAvgPool2d(1)``) has no parameters and takes any height and width.

    Parameters
    ----------
    in_channels : C
    out_features : outputs
    generator : source of the initial weights; None is a fixed seed

    Examples
    --------
    >>> head = PoolHead(8, 10)
    >>> head(torch.zeros(2, 8, 64, 64)).shape, head(torch.zeros(2, 8, 96, 80)).shape
    (torch.Size([2, 10]), torch.Size([2, 10]))
    """

    def __init__(
        self, in_channels: int, out_features: int, *, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        self.in_channels, self.out_features = in_channels, out_features
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.linear = linear(in_channels, out_features)
        init_(self, "auto", generator)

    def config(self) -> dict[str, Any]:
        return {"in_channels": self.in_channels, "out_features": self.out_features}

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.linear(self.pool(x).flatten(1))
        return result
