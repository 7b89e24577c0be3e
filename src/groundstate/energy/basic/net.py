r"""A scalar network as an energy of x."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.energy.base import Energy
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Real, Space
from groundstate.nn.blocks.mlp import network


@registered(r"e(x) = f_\theta(x) + \tfrac c2\|x\|^2", lambda: NetEnergy(2, net=(8, 8)))
class NetEnergy(Energy):
    r"""A scalar network with a weak bowl, :math:`e(x) = f_\theta(x) + \tfrac c2\|x\|^2`.

    The bowl makes :math:`e^{-e}` integrable on all of space when ``f`` is bounded or grows more
    slowly; ``confine=0`` leaves the bare network, e.g. on a box.

    Parameters
    ----------
    d : number of features, or the event shape of x when ``net`` is a module
    net : hidden sizes, or a module from ``(B, d)`` to ``(B, 1)`` or ``(B,)``
    confine : the strength c
    low, high : bounds of x
    activation : of the hidden layers; smooth ones allow score matching
    q : length of a variable y that the network also sees, 0 for none
    generator : source of the initial weights

    Examples
    --------
    >>> NetEnergy(2, net=(8,))(x=torch.zeros(3, 2)).shape
    torch.Size([3])
    """

    def __init__(
        self,
        d: int | Sequence[int],
        net: Sequence[int] | nn.Module = (32, 32),
        confine: float = 0.1,
        low: float | None = None,
        high: float | None = None,
        activation: str = "tanh",
        *,
        q: int = 0,
        generator: torch.Generator | None = None,
    ) -> None:
        shape = (d,) if isinstance(d, int) else tuple(d)
        given: dict[str, Space] = {"y": Real(q)} if q else {}
        super().__init__(x=Real(*shape, low=low, high=high), **given)
        self.q = q
        self.confine, self.activation = confine, activation
        self.low, self.high = low, high
        self.sizes = None if isinstance(net, nn.Module) else tuple(net)
        self.net = network(net, shape[0] + q, 1, generator, activation)

    def config(self) -> dict[str, Any]:
        return {
            "d": list(self.spaces["x"].shape),
            "net": self.net if self.sizes is None else list(self.sizes),
            "confine": self.confine,
            "low": self.low,
            "high": self.high,
            "activation": self.activation,
            "q": self.q,
        }

    def forward(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        e: Tensor = self.net(x if y is None else torch.cat([x, y], 1)).reshape(x.shape[0])
        if self.confine:
            e = e + 0.5 * self.confine * x.square().flatten(1).sum(1)
        return e
