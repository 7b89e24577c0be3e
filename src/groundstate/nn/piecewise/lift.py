r"""The disc problem solved by hand: one feature that lifts the inside, or two roundings."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from groundstate.nn.blocks.contract import blocks, rows_of


@blocks.register(make=lambda: DiscLift(append=True), batch=rows_of(2), formula=r"\max(0,1-\|x\|^2)")
class DiscLift(nn.Module):
    r""":math:`\phi(x) = \max(0, 1 - \|x\|^2)`: positive inside the unit disc, 0 on its edge and
    outside. Appended to x it makes the disc linearly separable.

    Parameters
    ----------
    append : return (x, φ) ``(B, D + 1)`` instead of φ ``(B, 1)``

    Examples
    --------
    >>> DiscLift()(torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.6, 0.0]])).flatten()
    tensor([1.0000, 0.0000, 0.6400])
    """

    def __init__(self, append: bool = False) -> None:
        super().__init__()
        self.append = append

    def forward(self, x: Tensor) -> Tensor:
        phi = (1 - x.square().sum(-1, keepdim=True)).clamp_min(0)
        return torch.cat([x, phi], -1) if self.append else phi


def floor_ceil(x: Tensor) -> Tensor:
    r"""The class by two roundings, :math:`\lceil\lfloor r^2\rfloor/r^2\rceil` with
    :math:`r^2 = \|x\|^2`: 0 inside the unit disc, 1 on its edge and outside, 0 at the centre.

    >>> floor_ceil(torch.tensor([[0.0, 0.0], [0.9, 0.0], [1.0, 0.0], [1.5, 0.5]]))
    tensor([0., 0., 1., 1.])
    """
    r2 = x.square().sum(-1)
    return torch.ceil(torch.floor(r2) / torch.where(r2 == 0, 1.0, r2))
