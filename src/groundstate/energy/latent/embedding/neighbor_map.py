r"""Neighbours in a map against neighbours among the rows."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from groundstate.energy.latent.embedding.base import MapEnergy, descended, example
from groundstate.energy.registering import registered
from groundstate.math.manifold.affinities import conditional, powered
from groundstate.math.manifold.divergence import PairEnergy

NEAR = 25  # known rows whose mean place a new row starts from


@registered(
    r"e(x, z) = \mathrm{KL}(p_{\cdot\mid x}\,\|\,q_{\cdot\mid z}), \quad "
    r"q_{j\mid z} \propto e^{-\varepsilon(\|z - y_j\|^2)}",
    lambda: example(NeighborMapEnergy(2, 2, perplexity=2.0), 2, 2),
)
class NeighborMapEnergy(MapEnergy):
    r"""The divergence of the neighbours of z in a map from those of x,
    :math:`e(x, z) = \mathrm{KL}(p_{\cdot\mid x}\,\|\,q_{\cdot\mid z})`.

    :math:`p_{j\mid x} \propto e^{-d(x, x_j)^2/2\sigma^2}` over the nearest known rows, with σ by the
    perplexity, and :math:`q_{j\mid z} \propto e^{-\varepsilon(\|z - y_j\|^2)}` over all places; with
    one degree of freedom :math:`\varepsilon(s) = \log(1 + s)`. The pull of the neighbours of x is the
    positive phase of its gradient in z, the push of all places the negative one.

    Parameters
    ----------
    d : number of features
    components : length of a place
    perplexity : of the neighbours
    kernel, dof : of the energy of a pair, see ``groundstate.math.manifold.divergence.PairEnergy``
    distance_power : see ``groundstate.manifold.affinities``
    metric, p, VI, w, n : of the rows, see ``groundstate.energy.neighbors.memory.Memory``

    Attributes
    ----------
    Y : parameter ``(n, components)``, places of the known rows

    Examples
    --------
    >>> e = NeighborMapEnergy(1, 1, perplexity=1.5)
    >>> e.remember(torch.tensor([[0.0], [1.0], [5.0]]), torch.tensor([[0.0], [1.0], [9.0]]))
    >>> far, near = (e(x=torch.tensor([[4.5]]), z=torch.tensor([[z]])) for z in (0.0, 8.0))
    >>> bool(far > near)
    True
    """

    def __init__(
        self, d: int, components: int, perplexity: float = 30.0, *, kernel: str = "t",
        dof: float = 1.0, distance_power: float | str = 1.0, **memory: Any,
    ) -> None:  # fmt: skip
        super().__init__(d, components, **memory)
        self.perplexity, self.pair = float(perplexity), PairEnergy(kernel, dof)
        self.distance_power = distance_power

    def config(self) -> dict[str, Any]:
        return {
            **super().config(), "perplexity": self.perplexity, "kernel": self.pair.kernel,
            "dof": self.pair.dof, "distance_power": self.distance_power,
        }  # fmt: skip

    def neighbours(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Probabilities of the nearest known rows and their numbers, ``(B, k)``.

        NaN where a distance overflows: a walk that has left for infinity shows in its energy.
        """
        n = len(self.memory.rows)
        k = min(n, max(int(3 * self.perplexity) + 1, 1))
        with torch.no_grad():
            index = self.memory.nearest(x, k)[1]
        away = powered(self.memory.measured(x, index), self.distance_power, self.components)
        known = torch.isfinite(away.square()).all(1, keepdim=True)
        p: Tensor = conditional(torch.where(known, away, 0.0), min(self.perplexity, k))[0]
        return torch.where(known, p, torch.nan), index

    def forward(self, x: Tensor, z: Tensor) -> Tensor:
        if not len(self.Y):
            return 0.0 * (x.sum(1) + z.sum(1))
        p, index = self.neighbours(x)
        Y, z = self.Y.double(), z.double()
        energy = self.pair.energy((z[:, None] - Y).square().sum(-1))  # (B, n)
        log_z = torch.logsumexp(-energy, 1)
        log_p = torch.where(p > 0, p, 1.0).log()  # where p is zero, so is its slope
        e = (p * log_p).sum(1) + (p * energy.gather(1, index)).sum(1) + log_z
        return e.to(x.dtype)

    def placed(self, x: Tensor) -> Tensor:
        p, index = self.neighbours(x)
        Y = self.Y.double()
        near, at = p.topk(min(NEAR, p.shape[1]), dim=1)
        near = near / near.sum(1, keepdim=True)
        z = (near[..., None] * Y[index.gather(1, at)]).sum(1)  # (B, components)
        known = Y[index]  # (B, k, components)

        def gradient(z: Tensor) -> Tensor:
            gap = z[:, None] - known
            pull = ((p * self.pair.slope(gap.square().sum(-1)))[..., None] * gap).sum(1)
            square = torch.cdist(z, Y).square()
            q = self.pair.similarity(square)
            push = q * self.pair.slope(square)
            push = (push.sum(1, keepdim=True) * z - push @ Y) / q.sum(1, keepdim=True)
            return 2.0 * (pull - push)

        return descended(z, gradient).to(x.dtype)
