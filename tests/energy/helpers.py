"""Small energies with the worked examples' parameters."""

from __future__ import annotations

import torch
from torch import Tensor

from groundstate.energy import BilinearEnergy, LinearGaussianEnergy

F64 = torch.float64


def t(*values: object) -> Tensor:
    return torch.tensor(values[0] if len(values) == 1 else values, dtype=F64)


def put(parameter: Tensor, value: object) -> None:
    parameter.data.copy_(torch.tensor(value))


def linear_gaussian() -> LinearGaussianEnergy:
    e = LinearGaussianEnergy(2, 1, s=2.0).double()
    put(e.W, [[1.0], [2.0]])
    put(e.b, [0.5, -1.0])
    return e


def bilinear() -> BilinearEnergy:
    e = BilinearEnergy(2, 2).double()
    put(e.W, [[1.0, -1.0], [0.5, 2.0]])
    put(e.b, [0.1, -0.2])
    put(e.c, [0.3, -0.4])
    return e
