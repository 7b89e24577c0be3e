r"""Squared distance to a prediction, whatever predicts: :math:`e(x, y) = \tfrac12\|y - f(x)\|^2`."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.distributions import Distribution

from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.math.distributions.operations import isotropic


class ValueEnergy(Energy):
    r"""Normal around :math:`f(x)`: :math:`\int e^{-e/T}dy = (2\pi T)^{m/2}`.

    A subclass has ``m`` outputs and defines ``predict``.
    """

    gaussian = frozenset({"y"})
    m: int

    def predict(self, x: Tensor) -> Tensor:
        """f(x), ``(B, m)``."""
        raise TypeError(f"{type(self).__name__} must define predict(x)")

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return 0.5 * (y - self.predict(x)).square().sum(-1)

    @offers.argmin("y")
    def best(self, x: Tensor) -> Tensor:
        return self.predict(x)

    @offers.conditional("y")
    def distribution(self, x: Tensor, T: float = 1.0) -> Distribution:
        return isotropic(self.predict(x), math.sqrt(T))

    @offers.log_partition("y")
    def constant(self, x: Tensor, T: float = 1.0) -> Tensor:
        size = 0.5 * self.m * math.log(2 * math.pi * T)
        return torch.full((len(x),), size, dtype=x.dtype, device=x.device)
