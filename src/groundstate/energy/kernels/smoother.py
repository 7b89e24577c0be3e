r"""Kernel smoothers: an answer is the average of the rows nearby, weighted by the kernel."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Finite, Real
from groundstate.energy.value import ValueEnergy
from groundstate.errors import DataError
from groundstate.math.distances.euclidean import pairwise
from groundstate.math.kernels import RBF, Geometry, Kernel

TILE = 2**24  # kernel values of one piece of rows


class Memory(Energy):
    """Rows with values and weights, and their kernel-weighted sums; base of the smoothers."""

    rows_x: Tensor
    values: Tensor
    weight: Tensor

    def _remember(self, d: int, m: int, kernel: Kernel, n: int) -> None:
        self.d, self.m, self.kernel = d, m, kernel
        self.theta = nn.Parameter(torch.as_tensor(kernel.theta, dtype=torch.get_default_dtype()))
        self.register_buffer("rows_x", torch.zeros(n, d))
        self.register_buffer("values", torch.zeros(n, m))
        self.register_buffer("weight", torch.ones(n))

    @torch.no_grad()
    def set(self, x: Tensor, values: Tensor, weight: Tensor | None, kernel: Kernel) -> None:
        """Keep these rows ``(n, d)`` with values ``(n, m)``."""
        device, dtype = self.weight.device, self.weight.dtype
        self.kernel = kernel
        self.theta = nn.Parameter(torch.as_tensor(kernel.theta).to(device, dtype))
        self.rows_x, self.values = x.to(device, dtype), values.to(device, dtype)
        ones = torch.ones(len(x), device=device, dtype=dtype)
        self.weight = ones if weight is None else weight.to(device, dtype)

    def sums(self, x: Tensor) -> tuple[Tensor, Tensor]:
        r""":math:`\sum_i w_ik_iv_i` ``(B, m)`` and :math:`\sum_i w_ik_i` ``(B,)``.

        Where all kernel values vanish, the nearest row counts alone.
        """
        pieces = torch.split(x, max(1, TILE // max(1, len(self.rows_x))))
        parts = [self._piece(piece) for piece in pieces]
        if len(parts) == 1:
            return parts[0]
        return torch.cat([p[0] for p in parts]), torch.cat([p[1] for p in parts])

    def _piece(self, x: Tensor) -> tuple[Tensor, Tensor]:
        if not len(self.rows_x):
            return x.new_zeros(len(x), self.m), x.new_zeros(len(x))
        K = self.kernel.of(Geometry(x, self.rows_x), self.theta) * self.weight
        K = torch.where(torch.isfinite(K), K, 0.0)  # infinitely far away: no rows nearby
        total = K.sum(1)
        found = K @ self.values
        far = total.abs() <= torch.finfo(x.dtype).tiny
        if bool(far.any()):
            live = self.weight > 0
            apart = pairwise(x[far].detach(), self.rows_x[live])
            nearest = self.values[live][apart.argmin(1)]
            at = far.nonzero()[:, 0]
            found = found.index_put((at,), nearest)
            total = total.index_put((at,), torch.ones_like(total[at]))
        return found, total


def _regression() -> SmootherEnergy:
    energy = SmootherEnergy(2, 1, RBF(1.0))
    x = torch.tensor([[0.0, 0.0], [1.0, 0.5], [-1.0, 1.0]])
    energy.set(x, torch.tensor([[0.0], [1.0], [3.0]]), None, RBF(1.0))
    return energy


@registered(r"e(x, y) = \tfrac12\|y - \sum_ik_iy_i/\sum_ik_i\|^2", _regression)
class SmootherEnergy(ValueEnergy, Memory):
    r"""Squared distance to a local mean, :math:`e(x, y) = \tfrac12\|y - f(x)\|^2` with
    :math:`f(x) = \sum_iw_ik(x, x_i)y_i / \sum_iw_ik(x, x_i)` (Nadaraya and Watson).

    Parameters
    ----------
    d, m : numbers of inputs and outputs
    kernel : a kernel
    n : remembered rows
    normalize : False leaves the division out

    Examples
    --------
    >>> e = SmootherEnergy(1, 1, RBF(1.0))
    >>> x = torch.tensor([[0.0], [1.0], [3.0]])
    >>> e.set(x, torch.tensor([[0.0], [1.0], [2.0]]), None, RBF(1.0))
    >>> round(e.predict(torch.tensor([[1.0]])).item(), 4)
    0.7295
    """

    def __init__(self, d: int, m: int, kernel: Kernel, n: int = 0, normalize: bool = True) -> None:
        super().__init__(x=Real(d), y=Real(m))
        self.normalize = normalize
        self._remember(d, m, kernel, n)

    def config(self) -> dict[str, Any]:
        return {
            "d": self.d, "m": self.m, "kernel": self.kernel, "n": len(self.rows_x),
            "normalize": self.normalize,
        }  # fmt: skip

    def predict(self, x: Tensor) -> Tensor:
        """f(x), ``(B, m)``."""
        found, total = self.sums(x)
        return found / safe(total)[:, None] if self.normalize else found


def _classes() -> SmootherClassEnergy:
    energy = SmootherClassEnergy(2, 3, RBF(1.0))
    x = torch.tensor([[0.0, 0.0], [1.0, 0.5], [-1.0, 1.0]])
    energy.set(x, torch.eye(3), None, RBF(1.0))
    return energy


@registered(r"e(x, y) = -\log\bigl(\sum_{i: y_i = y}k_i / \sum_ik_i\bigr)", _classes)
class SmootherClassEnergy(Memory):
    r"""Surprise at a class among the rows nearby,
    :math:`e(x, y) = -\log\bigl(\sum_{i: y_i = y}w_ik(x, x_i) / \sum_iw_ik(x, x_i)\bigr)`.

    Parameters
    ----------
    d, k : numbers of inputs and classes
    kernel : a kernel with values that are not negative
    n : remembered rows
    normalize : False makes the energy minus the sum of the class, :math:`-\sum_{i: y_i = y}w_ik_i`

    Examples
    --------
    >>> e = SmootherClassEnergy(1, 2, RBF(1.0))
    >>> e.set(torch.tensor([[0.0], [2.0]]), torch.eye(2), None, RBF(1.0))
    >>> e.table("y", x=torch.tensor([[0.5]])).argmin(1).tolist()
    [0]
    """

    def __init__(self, d: int, k: int, kernel: Kernel, n: int = 0, normalize: bool = True) -> None:
        super().__init__(x=Real(d), y=Finite(k))
        self.normalize = normalize
        self._remember(d, k, kernel, n)

    def config(self) -> dict[str, Any]:
        return {
            "d": self.d, "k": self.m, "kernel": self.kernel, "n": len(self.rows_x),
            "normalize": self.normalize,
        }  # fmt: skip

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return self.energies(x).gather(1, y[:, None])[:, 0]

    @offers.table("y")
    def energies(self, x: Tensor) -> Tensor:
        found, total = self.sums(x)
        if not self.normalize:
            return -found
        if not len(self.rows_x):  # nothing is known: all classes alike
            return found + math.log(self.m)
        if bool((found < 0).any()):
            raise DataError(
                f"the shares of the classes need a kernel that is nowhere negative, which "
                f"{self.kernel!r} is; use another one (RBF, Matern, ...), or normalize=False"
            )
        return safe(total).log()[:, None] - found.clamp(min=torch.finfo(x.dtype).tiny).log()


def safe(total: Tensor) -> Tensor:
    """A divisor: one where it would be zero."""
    return torch.where(total == 0, torch.ones_like(total), total)
