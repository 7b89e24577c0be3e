r"""Regression with any loss of a residual: :math:`e(x, y) = \rho((y - f(x))/\sigma)`."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import Distribution, constraints

from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Real
from groundstate.math.losses import Huber, ResidualLoss, SquaredError


class ResidualNoise(Distribution):
    r"""y = f + σr with r of density :math:`e^{-\rho(r)/T}/Z`.

    Parameters
    ----------
    loc : f, ``(B, 1)``
    loss : ρ
    scale : σ
    T : temperature
    """

    arg_constraints: dict[str, Any] = {}
    support = constraints.independent(constraints.real, 1)

    def __init__(self, loc: Tensor, loss: ResidualLoss, scale: float, T: float) -> None:
        self.loc, self.loss, self.scale, self.T = loc, loss, scale, T
        super().__init__(loc.shape[:-1], loc.shape[-1:], validate_args=False)

    def expand(self, batch_shape: Any, _instance: Any = None) -> ResidualNoise:
        wide = self.loc.expand(*batch_shape, self.loc.shape[-1])
        return ResidualNoise(wide, self.loss, self.scale, self.T)

    @property
    def mode(self) -> Tensor:
        return self.loc

    def log_prob(self, value: Tensor) -> Tensor:
        r = (value - self.loc) / self.scale
        each = self.loss.value(torch.zeros_like(r), r) / self.T
        constant = self.loss.noise(self.T).log_constant + math.log(self.scale)
        return -(each + constant).sum(-1)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(torch.Size(sample_shape))
        u, v = torch.rand(2, *shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + self.scale * self.loss.noise(self.T).draw(u, v)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with torch.no_grad():
            return self.rsample(sample_shape)


class LossEnergy(Energy):
    r"""What regressors with a loss of the residual share; a subclass says what f is.

    Attributes
    ----------
    loss : ρ, of ``groundstate.math.losses``
    scale : buffer, ``()``; σ, 1 until it is learned
    """

    scale: Tensor

    def _start(self, d: int, loss: ResidualLoss | None) -> None:
        super().__init__(x=Real(d), y=Real(1))
        self.d, self.loss = d, SquaredError() if loss is None else loss
        self.register_buffer("scale", torch.ones(()))

    @property
    def smooth(self) -> bool:
        """As ρ is."""
        return self.loss.smooth

    def predict(self, x: Tensor) -> Tensor:
        """f(x), ``(B, 1)``."""
        raise TypeError(f"{type(self).__name__} must define predict(x)")

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return self.loss.value(self.predict(x) / self.scale, y / self.scale)[:, 0]

    @offers.argmin("y")
    def best(self, x: Tensor) -> Tensor:
        return self.predict(x)

    @offers.conditional("y")
    def distribution(self, x: Tensor, T: float = 1.0) -> Distribution:
        return ResidualNoise(self.predict(x), self.loss, float(self.scale), T)

    @offers.log_partition("y")
    def constant(self, x: Tensor, T: float = 1.0) -> Tensor:
        size = self.loss.noise(T).log_constant + math.log(float(self.scale))
        return self.scale.new_full((x.shape[0],), size)


def _example() -> Energy:
    energy = LinearLossEnergy(2, Huber(0.5))
    with torch.no_grad():
        energy.W.copy_(torch.tensor([[0.5, -1.0]]))
    return energy


@registered(r"e(x, y) = \rho\bigl((y - Wx - b)/\sigma\bigr)", _example)
class LinearLossEnergy(LossEnergy):
    r"""A loss of the residual of a line, :math:`e(x, y) = \rho((y - Wx - b)/\sigma)`.

    Parameters
    ----------
    d : number of features
    loss : ρ of ``groundstate.math.losses``; ½r² by default
    bias : whether there is a ``b``

    Attributes
    ----------
    W : Parameter, ``(1, d)``
    b : Parameter, ``(1,)``
    scale : buffer, ``()``; σ

    Examples
    --------
    >>> e = LinearLossEnergy(1, Huber(1.0))
    >>> e(x=torch.zeros(2, 1), y=torch.tensor([[0.5], [3.0]])).tolist()
    [0.125, 2.5]
    """

    W: Tensor
    b: Tensor | None

    def __init__(self, d: int, loss: ResidualLoss | None = None, bias: bool = True) -> None:
        self._start(d, loss)
        self.bias = bias
        self.W = nn.Parameter(torch.zeros(1, d))
        self.b = nn.Parameter(torch.zeros(1)) if bias else None

    def config(self) -> dict[str, Any]:
        return {"d": self.d, "loss": self.loss, "bias": self.bias}

    def predict(self, x: Tensor) -> Tensor:
        score = x @ self.W.T
        return score if self.b is None else score + self.b
