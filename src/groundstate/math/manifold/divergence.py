r"""The energy of a map of neighbours: how far the map's pairs are from the data's.

A pair of the map has the energy :math:`\varepsilon(d^2)` of its squared distance, and
:math:`q_{ij} \propto e^{-\varepsilon}` over ordered pairs is its Boltzmann distribution. Then

.. math:: L = \mathrm{KL}(P\,\|\,Q) = \sum_{ij} p_{ij}\log p_{ij} + \sum_{ij} p_{ij}\,\varepsilon_{ij}
          + \log Z, \qquad
          \nabla_{y_i} L = 4\sum_j (p_{ij} - q_{ij})\,\varepsilon'(d_{ij}^2)\,(y_i - y_j) ,

a positive phase over the pairs of the data and a negative one over those of the map.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from groundstate.math.arrays import takes_arrays

KERNELS = ("t", "gaussian")


@dataclass(frozen=True)
class PairEnergy:
    r"""The energy of a pair at squared distance s.

    "t" with :math:`\alpha` degrees of freedom has
    :math:`\varepsilon(s) = \tfrac{1+\alpha}{2}\log(1 + s/\alpha)`, "gaussian"
    :math:`\varepsilon(s) = s`.

    Examples
    --------
    >>> PairEnergy().similarity(torch.tensor(3.0))
    tensor(0.2500)
    """

    kernel: str = "t"
    dof: float = 1.0

    def __post_init__(self) -> None:
        if self.kernel not in KERNELS:
            raise ValueError(f"kernel must be one of {', '.join(KERNELS)}, got {self.kernel!r}")
        if not self.dof > 0:
            raise ValueError(f"dof must be positive, got {self.dof}")

    @property
    def is_cauchy(self) -> bool:
        """Whether it is the t distribution of one degree of freedom."""
        return self.kernel == "t" and self.dof == 1.0

    def energy(self, s: Tensor) -> Tensor:
        if self.kernel == "gaussian":
            return s
        return 0.5 * (1 + self.dof) * torch.log1p(s / self.dof)

    def slope(self, s: Tensor) -> Tensor:
        """The derivative in s."""
        if self.kernel == "gaussian":
            return torch.ones_like(s)
        return 0.5 * (1 + self.dof) / (self.dof + s)

    def similarity(self, s: Tensor) -> Tensor:
        r""":math:`e^{-\varepsilon(s)}`."""
        return 1.0 / (1.0 + s) if self.is_cauchy else torch.exp(-self.energy(s))


@takes_arrays("Y")
def map_similarities(Y: Any, *, kernel: str = "t", dof: float = 1.0) -> Any:
    r"""The map's distribution over pairs, :math:`q_{ij} \propto e^{-\varepsilon(\|y_i - y_j\|^2)}`.

    >>> map_similarities([[0.0], [1.0], [3.0]])[0].round(6).tolist()
    [0.0, 0.3125, 0.0625]
    """
    weight = _weights(Y, PairEnergy(kernel, dof))
    return weight / weight.sum()


@takes_arrays("P", "Y")
def kl_divergence(P: Any, Y: Any, *, kernel: str = "t", dof: float = 1.0) -> Any:
    r""":math:`\mathrm{KL}(P\,\|\,Q)` of a map Y ``(n, p)`` against the pairs P ``(n, n)``, exactly.

    >>> P = [[0, 0.299931, 0.015641], [0.299931, 0, 0.184428], [0.015641, 0.184428, 0]]
    >>> round(kl_divergence(P, [[0.0], [1.0], [3.0]]), 5)
    0.07551
    """
    pair = PairEnergy(kernel, dof)
    _check_pairs(P, Y)
    log_z = _weights(Y, pair).sum().log()
    square = _square(Y)
    return torch.xlogy(P, P).sum() + (P * pair.energy(square)).sum() + P.sum() * log_z


@takes_arrays("P", "Y")
def kl_gradient(P: Any, Y: Any, *, kernel: str = "t", dof: float = 1.0) -> Any:
    """The gradient of `kl_divergence` in the coordinates, ``(n, p)``; its rows sum to zero."""
    pair = PairEnergy(kernel, dof)
    _check_pairs(P, Y)
    weight = _weights(Y, pair)
    push = (P - P.sum() * weight / weight.sum()) * pair.slope(_square(Y))
    return 4 * (push.sum(1, keepdim=True) * Y - push @ Y)


def _square(Y: Tensor) -> Tensor:
    return (Y[:, None] - Y).square().sum(-1)


def _weights(Y: Tensor, pair: PairEnergy) -> Tensor:
    if Y.ndim != 2 or len(Y) < 2:
        raise ValueError(f"Y must hold coordinates of at least two rows, got {tuple(Y.shape)}")
    weight = pair.similarity(_square(Y))
    return weight * (1 - torch.eye(len(Y), dtype=Y.dtype, device=Y.device))


def _check_pairs(P: Tensor, Y: Tensor) -> None:
    if P.shape != (len(Y), len(Y)):
        raise ValueError(
            f"P must be ({len(Y)}, {len(Y)}) for {len(Y)} rows of Y, got {tuple(P.shape)}"
        )
