r"""The prior of kernel machines: functions of small norm in the space of the kernel."""

from __future__ import annotations

from torch import Tensor

from groundstate.energy.base import Energy
from groundstate.energy.kernels.loss import KernelLossEnergy
from groundstate.energy.kernels.machine import KernelMachineEnergy
from groundstate.errors import Unsupported
from groundstate.learn.base import Penalty


class FunctionNorm(Penalty):
    r""":math:`\Omega = \tfrac\lambda2\sum_{a<b}\|f_{ab}\|^2_{\mathcal H}`, with
    :math:`\|f\|^2 = \sum_{ij}\beta_i\beta_j k(x_i, x_j)`. Intercepts are free.

    Parameters
    ----------
    strength : λ = 1/C; zero asks for a hard margin

    Examples
    --------
    >>> import torch
    >>> from groundstate.math.kernels import Linear
    >>> e = KernelMachineEnergy(1, 2, Linear())
    >>> e.set(torch.tensor([[2.0]]), torch.tensor([[0.5]]), torch.zeros(1), (1, 0))
    >>> FunctionNorm(2.0)(e).item()
    1.0
    """

    def __init__(self, strength: float) -> None:
        super().__init__()
        if not strength >= 0:
            raise ValueError(f"strength must not be negative, got {strength}")
        self.strength = float(strength)

    def value(self, energy: Energy) -> Tensor:
        if not isinstance(energy, KernelMachineEnergy | KernelLossEnergy):
            raise Unsupported(
                f"FunctionNorm is for kernel machines, got {type(energy).__name__}; use L2"
            )
        return 0.5 * self.strength * energy.norms().sum()
