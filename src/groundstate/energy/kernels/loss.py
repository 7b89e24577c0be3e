r"""A loss of the residual of a sum of kernels, :math:`e(x, y) = \rho(y - \sum_i\beta_i k(x_i, x) - b)`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from groundstate.energy.base import Energy
from groundstate.energy.kernels.machine import TILE, kernel_width
from groundstate.energy.linear.loss import LossEnergy
from groundstate.energy.registering import registered
from groundstate.math.kernels import RBF, Geometry, Kernel
from groundstate.math.losses import Huber, ResidualLoss


def _example() -> Energy:
    energy = KernelLossEnergy(2, RBF(1.0), Huber(0.5))
    x = torch.tensor([[0.0, 0.0], [1.0, 0.5], [-1.0, 1.0]])
    energy.set(x, torch.tensor([0.5, -1.0, 2.0]), torch.tensor([0.3]))
    return energy


@registered(r"e(x, y) = \rho\bigl(y - \sum_i\beta_i k(x_i, x) - b\bigr)", _example)
class KernelLossEnergy(LossEnergy):
    r""":math:`e(x, y) = \rho(y - f(x))` with :math:`f(x) = \sum_i \beta_i k(x_i, x) + b`.

    Parameters
    ----------
    d : number of features
    kernel : a kernel
    loss : ρ of ``groundstate.math.losses``; ½r² by default
    n : centres

    Attributes
    ----------
    centers : buffer, ``(n, d)``
    support : buffer, ``(n,)``: the rows of the training table that the centres are
    beta : Parameter, ``(n,)``
    b : Parameter, ``(1,)``

    Examples
    --------
    >>> from groundstate.math.losses import EpsilonInsensitive
    >>> e = KernelLossEnergy(1, RBF(1.0), EpsilonInsensitive(0.5))
    >>> e.set(torch.tensor([[0.0]]), torch.tensor([2.0]), torch.tensor([1.0]))
    >>> e(x=torch.zeros(1, 1), y=torch.tensor([[4.0]])).item()
    0.5
    """

    centers: Tensor
    support: Tensor

    def __init__(
        self, d: int, kernel: Kernel, loss: ResidualLoss | None = None, n: int = 0
    ) -> None:
        self._start(d, loss)
        self.kernel = kernel
        self.register_buffer("centers", torch.zeros(n, kernel_width(kernel, d)))
        self.register_buffer("support", torch.zeros(n, dtype=torch.int64))
        self.beta = nn.Parameter(torch.zeros(n))
        self.b = nn.Parameter(torch.zeros(1))

    def config(self) -> dict[str, Any]:
        return {"d": self.d, "kernel": self.kernel, "loss": self.loss, "n": len(self.centers)}

    @torch.no_grad()
    def set(self, centers: Tensor, beta: Tensor, b: Tensor, support: Tensor | None = None) -> None:
        """Take these centres ``(n, d)``, coefficients ``(n,)`` and intercept."""
        device, dtype = self.b.device, self.b.dtype
        self.centers = centers.to(device, dtype).contiguous()
        self.support = (torch.arange(len(centers)) if support is None else support).to(device)
        self.beta.data = beta.to(device, dtype).contiguous()
        self.b.data = b.to(device, dtype)

    def predict(self, x: Tensor) -> Tensor:
        if not len(self.centers):
            return self.b.expand(len(x), 1)
        pieces = torch.split(x, max(1, TILE // len(self.centers)))
        parts = [self.kernel.of(Geometry(piece, self.centers)) @ self.beta for piece in pieces]
        return (torch.cat(parts) + self.b)[:, None]

    def norms(self) -> Tensor:
        r""":math:`\|f\|^2` in the space of the kernel, ``(1,)``."""
        K = self.kernel.of(Geometry(self.centers, self.centers))
        return (self.beta @ (K @ self.beta)).reshape(1)
