r"""The residual block with the activation first."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from groundstate.nn.blocks.contract import blocks, rows_of
from groundstate.nn.blocks.initialise import init_
from groundstate.nn.blocks.residual import Residual


@blocks.register(make=lambda: PreActBlock(2, 3, 2), batch=rows_of(2, 4, 6), formula=r"Ph+f(h)")
class PreActBlock(Residual):
    r"""[norm → ReLU → convolution 3×3] twice, added to the input: :math:`h + f(h)`.

    The skip carries both signs; with ReLU last the sum could only grow. Where channels or sides
    change the skip is a 1×1 convolution.

    Parameters
    ----------
    in_channels, out_channels : maps; ``out_channels=None`` keeps them
    stride : of the first convolution
    zero_init : start with the last convolution at 0, so that the block is its skip
    generator : source of the initial weights; None is a fixed seed

    Examples
    --------
    >>> x = torch.ones(1, 2, 4, 4)
    >>> torch.equal(PreActBlock(2, zero_init=True)(x), x)
    True
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int | None = None,
        stride: int = 1,
        zero_init: bool = False,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        out = in_channels if out_channels is None else out_channels
        with torch.random.fork_rng(devices=[]):  # weights are drawn below
            branch = nn.Sequential(
                nn.BatchNorm2d(in_channels), nn.ReLU(),
                nn.Conv2d(in_channels, out, 3, stride, 1, bias=False),
                nn.BatchNorm2d(out), nn.ReLU(),
                nn.Conv2d(out, out, 3, padding=1, bias=False),
            )  # fmt: skip
        init_(branch, "he", generator)
        super().__init__(branch, "auto", "zero" if zero_init else 1, generator=generator)
        self._settings = {"in_channels": in_channels, "out_channels": out, "stride": stride,
                          "zero_init": zero_init}  # fmt: skip

    def config(self) -> dict[str, Any]:
        return dict(self._settings)
