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

    A subclass has ``m`` outputs in all and defines ``predict``.
    """

    gaussian = frozenset({"y"})
    m: int

    def predict(self, x: Tensor) -> Tensor:
        """f(x), the shape of y."""
        raise TypeError(f"{type(self).__name__} must define predict(x)")

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        each = (y - self.predict(x)).square()
        return 0.5 * (each.sum(-1) if each.ndim == 2 else each.flatten(1).sum(1))

    @offers.argmin("y")
    def best(self, x: Tensor) -> Tensor:
        return self.predict(x)

    @offers.conditional("y")
    def distribution(self, x: Tensor, T: float = 1.0) -> Distribution:
        mean = self.predict(x)
        return isotropic(mean, math.sqrt(T), mean.ndim - 1)

    @offers.log_partition("y")
    def constant(self, x: Tensor, T: float = 1.0) -> Tensor:
        size = 0.5 * self.m * math.log(2 * math.pi * T)
        device, dtype = (x.device, x.dtype) if isinstance(x, Tensor) else self.placement({"x": x})
        return torch.full((len(x),), size, dtype=dtype, device=device)
