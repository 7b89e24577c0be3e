r"""A player brought from outside: any module, called with what its role takes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.errors import ShapeError


class GivenGenerator(nn.Module):
    r"""Any module as :math:`G`: from ``(B, n_components)``, or with a condition from
    ``(B, n_components + q)``, to rows of any shape, which are laid flat.

    Examples
    --------
    >>> GivenGenerator(nn.Linear(2, 3), 2, 3)(torch.zeros(4, 2)).shape
    torch.Size([4, 3])
    """

    def __init__(self, net: nn.Module, n_components: int, width: int) -> None:
        super().__init__()
        self.net, self.n_components, self.width = net, n_components, width

    def config(self) -> dict[str, Any]:
        return {"net": self.net, "n_components": self.n_components, "width": self.width}

    def forward(
        self, z: Tensor, y: Tensor | None = None, generator: torch.Generator | None = None
    ) -> Tensor:
        x: Tensor = self.net(z if y is None else torch.cat([z, y], 1)).flatten(1)
        if x.shape[1] != self.width:
            raise ShapeError(
                f"the generator {type(self.net).__name__} gives {x.shape[1]} numbers per row, but the "
                f"coded rows have {self.width}; change the size of its last layer"
            )
        return x


class GivenDiscriminator(nn.Module):
    r"""Any module as :math:`D`: from rows ``(B, *shape)`` to logits ``(B, k)`` or maps of them, which
    are averaged. With a condition the module gets ``(B, d + q)`` when rows are flat, else the
    condition as constant further channels.

    Examples
    --------
    >>> net = nn.Sequential(nn.Flatten(), nn.Linear(6, 1))
    >>> GivenDiscriminator(net, (1, 2, 3))(torch.zeros(4, 6)).shape
    torch.Size([4, 1])
    """

    def __init__(self, net: nn.Module, shape: Sequence[int]) -> None:
        super().__init__()
        self.net, self.shape = net, tuple(shape)
        self.width = math.prod(self.shape)

    def config(self) -> dict[str, Any]:
        return {"net": self.net, "shape": list(self.shape)}

    def forward(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        if len(self.shape) > 1:
            x = x.unflatten(1, self.shape)
        if y is not None:
            more = y.reshape(*y.shape, *(1,) * (x.ndim - 2)).expand(*y.shape, *x.shape[2:])
            x = torch.cat([x, more], 1)
        s: Tensor = self.net(x)
        return s.flatten(1) if s.ndim > 1 else s[:, None]
