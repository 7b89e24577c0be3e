r"""Pooling that torch does not name."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from groundstate.nn.blocks.contract import blocks, rows_of


@blocks.register(make=lambda: MinPool2d(2), batch=rows_of(2, 4, 6), formula=r"-\max(-x)")
class MinPool2d(nn.MaxPool2d):
    r"""The smallest value of every window, :math:`-\max(-x)`; channels are kept.

    Examples
    --------
    >>> import torch
    >>> MinPool2d(2)(torch.arange(1.0, 17.0).view(1, 1, 4, 4)).flatten().tolist()
    [1.0, 3.0, 9.0, 11.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        return -super().forward(-input)


@blocks.register(make=lambda: Subsample(2), batch=rows_of(2, 4, 6), formula=r"x[::S]")
class Subsample(nn.Module):
    r"""Every S-th value along each spatial axis, ``x[::S]``; no parameters.

    Examples
    --------
    >>> import torch
    >>> Subsample(2)(torch.arange(1.0, 17.0).view(1, 1, 4, 4)).flatten().tolist()
    [1.0, 3.0, 9.0, 11.0]
    """

    def __init__(self, stride: int = 2) -> None:
        super().__init__()
        if stride < 1:
            raise ValueError(f"stride is at least 1, got {stride}")
        self.stride = stride

    def config(self) -> dict[str, Any]:
        return {"stride": self.stride}

    def forward(self, x: Tensor) -> Tensor:
        step: Any = (slice(None), slice(None), *[slice(None, None, self.stride)] * (x.ndim - 2))
        found: Tensor = x[step]
        return found

    def extra_repr(self) -> str:
        return f"stride={self.stride}"
