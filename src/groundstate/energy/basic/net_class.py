r"""A network energy per class, :math:`e(x, y) = -f_\theta(x)_y`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Finite, Real, Space
from groundstate.nn.blocks.mlp import network


@registered(r"e(x, y) = -f_\theta(x)_y", lambda: NetClassEnergy(3, 4, net=(8,)))
class NetClassEnergy(Energy):
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
        space = d if isinstance(d, Space) else Real(*((d,) if isinstance(d, int) else d))
        super().__init__(x=space, y=Finite(k))
        self.k, self.activation = k, activation
        self.sizes = None if isinstance(net, nn.Module) else tuple(net)
        inputs = space.shape[0] if space.shape else 0
        self.net = network(net, inputs, k, generator, activation)

    def config(self) -> dict[str, Any]:
        net = self.net if self.sizes is None else list(self.sizes)
        space = self.spaces["x"]
        d = list(space.shape) if isinstance(space, Real) else space
        return {"d": d, "k": self.k, "net": net, "activation": self.activation}

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return -self.scores(x).gather(1, y[:, None]).squeeze(1)

    @offers.scores("y")
    def scores(self, x: Tensor) -> Tensor:
        """The logits ``-e`` of all classes, ``(B, k)``."""
        result: Tensor = self.net(x)
        return result

    @offers.table("y")
    def energies(self, x: Tensor) -> Tensor:
        return -self.scores(x)
