r"""Distances in a map against distances to known rows."""

from __future__ import annotations

import torch
from torch import Tensor

from groundstate.energy.latent.embedding.base import MapEnergy, example
from groundstate.energy.registering import registered

STEPS = 2000
TINY = 1e-12


@registered(
    r"e(x, z) = \sum_j\bigl(\|z - y_j\| - \delta_j(x)\bigr)^2",
    lambda: example(StressEnergy(2, 2), 2, 2),
)
class StressEnergy(MapEnergy):
    r"""The stress of a row x at z, :math:`e(x, z) = \sum_j(\|z - y_j\| - \delta_j(x))^2`.

    Summed over the rows of a map it is twice the map's stress
    :math:`\sum_{i<j}(\|y_i - y_j\| - \delta_{ij})^2`. A new row is placed by the same majorisation
    that lays out a map, :math:`z \leftarrow \tfrac1n\sum_j y_j + \delta_j(z - y_j)/\|z - y_j\|`, from the
    nearest known rows: it never raises the stress.

    Parameters
    ----------
    d : number of features
    components : length of a place
    metric, p, VI, w, n : of the rows, see ``groundstate.energy.neighbors.memory.Memory``

    Attributes
    ----------
    Y : parameter ``(n, components)``, places of the known rows

    Examples
    --------
    >>> e = StressEnergy(1, 1)
    >>> e.remember(torch.tensor([[0.0], [1.0], [5.0]]), torch.tensor([[0.0], [1.0], [5.0]]))
    >>> e(x=torch.tensor([[2.0]]), z=torch.tensor([[3.0]])).tolist(), e.place(torch.tensor([[2.0]])).tolist()
    ([3.0], [[2.0]])
    """

    def forward(self, x: Tensor, z: Tensor) -> Tensor:
        gap = torch.linalg.vector_norm(z[:, None] - self.Y, dim=-1)
        return (gap - self.away(x)).square().sum(1)

    def placed(self, x: Tensor) -> Tensor:
        away = self.away(x).double()
        Y = self.Y.double()
        near = away.topk(min(3, len(Y)), dim=1, largest=False)
        weight = 1.0 / (near.values + TINY)
        weight = weight / weight.sum(1, keepdim=True)
        z = (weight[..., None] * Y[near.indices]).sum(1)  # (B, p)
        middle = Y.mean(0)
        for _ in range(STEPS):
            gap = z[:, None] - Y  # (B, n, p)
            length = torch.linalg.vector_norm(gap, dim=-1).clamp_min(TINY)
            ratio = (away / length) / len(Y)
            new = middle + ratio.sum(1, keepdim=True) * z - ratio @ Y
            moved = (new - z).abs().amax()
            z = new
            if float(moved) <= 1e-13 * (1.0 + float(z.abs().amax())):
                break
        return z.to(x.dtype)
