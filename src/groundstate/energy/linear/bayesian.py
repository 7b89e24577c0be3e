r"""A linear mean whose weights are known as a distribution: the predictive energy of Bayesian regression."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch import distributions as D
from torch.distributions import Distribution

from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Real
from groundstate.math.distributions.operations import tempered


def _example() -> Energy:
    energy = BayesianLinearEnergy(2)
    energy.S.copy_(torch.tensor([[0.5, 0.1], [0.1, 0.3]]))
    with torch.no_grad():
        energy.W.copy_(torch.tensor([[1.0, -0.5]]))
    return energy


@registered(r"e(x, y) = -\log N(y;\, Wx + b,\, 1/\alpha + (x-\bar x)^\top S(x-\bar x))", _example)
class BayesianLinearEnergy(Energy):
    r"""Minus the log predictive density of a linear model with Gaussian weights,
    :math:`e(x, y) = -\log N(y;\, Wx + b,\, 1/\alpha + (x-\bar x)^\top S(x-\bar x))`.

    W is the posterior mean of the weights, S their covariance and α the precision of the noise.

    Parameters
    ----------
    d : number of features
    bias : whether there is a ``b``

    Attributes
    ----------
    W : Parameter, ``(1, d)``
    b : Parameter, ``(1,)``
    S : buffer, ``(d, d)``
    center : buffer, ``(d,)``, :math:`\bar x`
    alpha, lam : buffers, ``()``; precisions of the noise and of the weights

    Examples
    --------
    >>> e = BayesianLinearEnergy(1)
    >>> e.S.fill_(3.0).item(), e.spread(torch.tensor([[1.0]])).item()  # 1 of noise, 3 of weights
    (3.0, 2.0)
    """

    normalised = frozenset({"y"})
    gaussian = frozenset({"y"})
    W: Tensor
    b: Tensor | None
    S: Tensor
    center: Tensor
    alpha: Tensor
    lam: Tensor

    def __init__(self, d: int, bias: bool = True) -> None:
        super().__init__(x=Real(d), y=Real(1))
        self.d, self.bias = d, bias
        self.W = nn.Parameter(torch.zeros(1, d))
        self.b = nn.Parameter(torch.zeros(1)) if bias else None
        self.register_buffer("S", torch.zeros(d, d))
        self.register_buffer("center", torch.zeros(d))
        self.register_buffer("alpha", torch.ones(()))
        self.register_buffer("lam", torch.ones(()))

    def config(self) -> dict[str, Any]:
        return {"d": self.d, "bias": self.bias}

    def mean(self, x: Tensor) -> Tensor:
        """Wx + b, ``(B, 1)``."""
        return nn.functional.linear(x, self.W, self.b)

    def variance(self, x: Tensor) -> Tensor:
        """Of noise and weights together, ``(B, 1)``."""
        u = x - self.center
        return 1 / self.alpha + ((u @ self.S) * u).sum(-1, keepdim=True)

    def spread(self, x: Tensor) -> Tensor:
        """Standard deviation of y, ``(B, 1)``."""
        return self.variance(x).sqrt()

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        v = self.variance(x)
        return (0.5 * (math.log(2 * math.pi) + v.log() + (y - self.mean(x)).square() / v)).sum(-1)

    @offers.argmin("y")
    def best(self, x: Tensor) -> Tensor:
        return self.mean(x)

    @offers.conditional("y")
    def distribution(self, x: Tensor, T: float = 1.0) -> Distribution:
        distribution = D.Normal(self.mean(x), self.spread(x), validate_args=False)
        return tempered(D.Independent(distribution, 1), T)

    @offers.log_partition("y")
    def constant(self, x: Tensor, T: float = 1.0) -> Tensor:
        if T == 1:
            return x.new_zeros(x.shape[0])
        whole = math.log(2 * math.pi) + self.variance(x).log()[:, 0]
        return 0.5 * (math.log(T) + whole) - 0.5 * whole / T
