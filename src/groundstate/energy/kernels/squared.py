r"""Regression by a sum of kernels: squared distance to :math:`\sum_i a_i k(x_i, x)`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from groundstate.energy.kernels.machine import kernel_width
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Real
from groundstate.energy.value import ValueEnergy
from groundstate.math.kernels import RBF, Geometry, Kernel

TILE = 2**24  # kernel values of one piece of rows


def _example() -> KernelSquaredEnergy:
    energy = KernelSquaredEnergy(2, 1, RBF(1.0))
    x = torch.tensor([[0.0, 0.0], [1.0, 0.5], [-1.0, 1.0]])
    energy.set(x, torch.tensor([[0.5], [-1.0], [2.0]]))
    return energy


@registered(r"e(x, y) = \tfrac12\|y - \sum_i a_i k(x_i, x)\|^2", _example)
class KernelSquaredEnergy(ValueEnergy):
    r""":math:`e(x, y) = \tfrac12\|y - f(x)\|^2` with :math:`f(x) = \sum_i a_i k(x_i, x)`.

    Parameters
    ----------
    d, m : numbers of inputs and outputs
    kernel : a kernel
    n : centres

    Attributes
    ----------
    centers : buffer, ``(n, d)``
    a : Parameter, ``(n, m)``

    Examples
    --------
    >>> e = KernelSquaredEnergy(1, 1, RBF(1.0))
    >>> e.set(torch.tensor([[0.0]]), torch.tensor([[2.0]]))
    >>> round(e.predict(torch.tensor([[1.0]])).item(), 4)
    1.2131
    """

    centers: Tensor

    def __init__(self, d: int, m: int, kernel: Kernel, n: int = 0) -> None:
        super().__init__(x=Real(d), y=Real(m))
        self.d, self.m, self.kernel = d, m, kernel
        self.register_buffer("centers", torch.zeros(n, kernel_width(kernel, d)))
        self.a = nn.Parameter(torch.zeros(n, m))

    def config(self) -> dict[str, Any]:
        return {"d": self.d, "m": self.m, "kernel": self.kernel, "n": len(self.centers)}

    @torch.no_grad()
    def set(self, centers: Tensor, a: Tensor) -> None:
        """Take these centres ``(n, d)`` and coefficients ``(n, m)``."""
        device, dtype = self.a.device, self.a.dtype
        self.centers = centers.to(device, dtype).contiguous()
        self.a = nn.Parameter(a.to(device, dtype).contiguous())

    def predict(self, x: Tensor) -> Tensor:
        """f(x), ``(B, m)``."""
        if not len(self.centers):
            return x.new_zeros(len(x), 0) @ self.a
        pieces = torch.split(x, max(1, TILE // len(self.centers)))
        parts = [self.kernel.of(Geometry(piece, self.centers)) @ self.a for piece in pieces]
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def norms(self) -> Tensor:
        r""":math:`\|f_j\|^2` of each output in the space of the kernel, ``(m,)``."""
        if not len(self.centers):
            return self.a.sum(0)
        K = self.kernel.of(Geometry(self.centers, self.centers))
        return (self.a * (K @ self.a)).sum(0)
