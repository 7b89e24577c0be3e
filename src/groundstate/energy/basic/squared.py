r"""Squared error as an energy, :math:`e(x, y) = \tfrac12\|y - f(x)\|^2`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.energy.abilities import offers
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Real, Space, space_of_rows
from groundstate.energy.value import ValueEnergy
from groundstate.math.linalg.weighted_least_squares import regression_sums, solve_regression
from groundstate.nn.blocks.mlp import network

_when_linear = offers.closed_form(when=lambda energy: energy.net is None)


@registered(r"e(x, y) = \tfrac12\|y - f(x)\|^2", lambda: SquaredEnergy(3, 2))
class SquaredEnergy(ValueEnergy):
    r"""Squared distance to a prediction, :math:`e(x, y) = \tfrac12\|y - f(x)\|^2`.

    :math:`\int e^{-e/T}dy = (2\pi T)^{m/2}` does not depend on θ, so lowering ``e`` on the data is
    maximum likelihood. With the linear :math:`f(x) = Wx + b` the minimiser is in closed form.

    Parameters
    ----------
    d : number of features; the event shape of x, or its space, when ``net`` is a module
    m : number of outputs, or the event shape of y
    net : None for linear, hidden sizes, or a module from rows of x to ``(B, m)`` or ``(B, *m)``
    bias : whether the linear f has a ``b``
    activation : of the hidden layers
    generator : source of the initial weights of the network; linear starts at 0

    Attributes
    ----------
    W : Parameter, ``(m, d)``; linear only
    b : Parameter, ``(m,)``; linear only

    Examples
    --------
    >>> e = SquaredEnergy(1)
    >>> x = torch.tensor([[0.0], [1.0], [2.0]])
    >>> e.from_stats(e.stats(None, x=x, y=1 + 2 * x))
    >>> round(e.W.item(), 6), round(e.b.item(), 6)
    (2.0, 1.0)
    """

    W: Tensor
    b: Tensor | None

    def __init__(
        self,
        d: int | Sequence[int] | Space,
        m: int | Sequence[int] = 1,
        net: Sequence[int] | nn.Module | None = None,
        bias: bool = True,
        activation: str = "tanh",
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        x, y = space_of_rows(d), Real(*((m,) if isinstance(m, int) else m))
        super().__init__(x=x, y=y)
        self.m, self.bias, self.activation = math.prod(y.shape), bias, activation
        self.sizes = None if net is None or isinstance(net, nn.Module) else tuple(net)
        if not isinstance(net, nn.Module) and not (isinstance(d, int) and isinstance(m, int)):
            raise ValueError(f"rows of shape {x!r} and {y!r} need a module as net, got {net!r}")
        self.net: nn.Module | None
        if isinstance(d, int):
            self.d = d
            self.net = None if net is None else network(net, d, self.m, generator, activation)
        else:
            assert isinstance(net, nn.Module)
            self.net = net
        if self.net is None:
            self.W = nn.Parameter(torch.zeros(self.m, self.d))
            self.b = nn.Parameter(torch.zeros(self.m)) if bias else None

    def config(self) -> dict[str, Any]:
        net = self.net if self.sizes is None else list(self.sizes)
        x, shape = self.spaces["x"], list(self.spaces["y"].shape)
        rows = x if not isinstance(x, Real) else x.shape[0] if len(x.shape) == 1 else list(x.shape)
        return {
            "d": rows, "m": self.m if len(shape) == 1 else shape, "net": net, "bias": self.bias,
            "activation": self.activation,
        }  # fmt: skip

    def predict(self, x: Tensor) -> Tensor:
        """f(x), ``(B, m)`` or ``(B, *m)``."""
        if self.net is None:
            return nn.functional.linear(x, self.W, self.b)
        result: Tensor = self.net(x)
        return result

    @_when_linear.stats
    def stats(self, weights: Tensor | None, x: Tensor, y: Tensor) -> dict[str, Tensor]:
        return regression_sums(weights, x, y)

    @_when_linear.from_stats
    def from_stats(self, stats: dict[str, Tensor], l2: float = 0.0) -> None:
        W, b = solve_regression(stats, l2, self.bias)
        with torch.no_grad():
            self.W.copy_(W)
            if self.b is not None:
                self.b.copy_(b)
