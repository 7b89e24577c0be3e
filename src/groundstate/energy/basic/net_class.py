r"""A network energy per class, :math:`e(x, y) = -f_\theta(x)_y`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from groundstate.energy.basic.labels import ClassEnergy
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Real, Space, space_of_rows
from groundstate.nn.blocks.mlp import network


@registered(r"e(x, y) = -f_\theta(x)_y", lambda: NetClassEnergy(3, 4, net=(8,)))
class NetClassEnergy(ClassEnergy):
    r"""A network gives the energy of every class, :math:`e(x, y) = -f_\theta(x)_y`.

    Parameters
    ----------
    d : number of features; the event shape of x, or its space, when ``net`` is a module
    k : number of classes
    net : hidden sizes, or a module from rows of x to ``(B, k)``
    activation : of the hidden layers
    generator : source of the initial weights

    Examples
    --------
    >>> e = NetClassEnergy(2, 3, net=(8,))
    >>> e.table("y", x=torch.zeros(4, 2)).shape
    torch.Size([4, 3])
    """

    def __init__(
        self,
        d: int | Sequence[int] | Space,
        k: int,
        net: Sequence[int] | nn.Module = (32,),
        activation: str = "tanh",
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        space = space_of_rows(d)
        inputs = space.shape[0] if space.shape else 0
        super().__init__(network(net, inputs, k, generator, activation), space, k)
        self.activation = activation
        self.sizes = None if isinstance(net, nn.Module) else tuple(net)

    def config(self) -> dict[str, Any]:
        net = self.net if self.sizes is None else list(self.sizes)
        space = self.spaces["x"]
        d = list(space.shape) if isinstance(space, Real) else space
        return {"d": d, "k": self.k, "net": net, "activation": self.activation}
