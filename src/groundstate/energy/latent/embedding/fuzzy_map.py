r"""Fuzzy neighbours in a map against fuzzy neighbours among the rows."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from groundstate.compute.weight_line.hashing import row_hash
from groundstate.energy.latent.embedding.base import MapEnergy, descended, example
from groundstate.energy.registering import registered
from groundstate.math.manifold.fuzzy import membership_curve, memberships

SOFT = 1e-3  # added to squared distances of pushes, as the solver does
TINY = 1e-12
SEEN = 1024  # places that push a row while it is placed
STEPS, RATE = 60, 0.3  # of a row that is placed


@registered(
    r"e(x, z) = -\sum_j\bigl[p_{j\mid x}\log q_j(z) + r_x\log(1 - q_j(z))\bigr], \quad "
    r"q_j(z) = \bigl(1 + a\|z - y_j\|^{2b}\bigr)^{-1}",
    lambda: example(FuzzyMapEnergy(2, 2, neighbors=4), 2, 2),
)
class FuzzyMapEnergy(MapEnergy):
    r"""The fuzzy cross-entropy of the neighbours of z in a map and those of x,
    :math:`e(x, z) = -\sum_j[p_{j\mid x}\log q_j(z) + r_x\log(1 - q_j(z))]`.

    :math:`p_{j\mid x} = e^{-d(x, x_j)/\sigma}` of the k nearest known rows, with σ such that they sum
    to :math:`\log_2 k`, and :math:`q_j(z) = 1/(1 + a\|z - y_j\|^{2b})`. The cross-entropy of fuzzy sets
    has :math:`r = 1 - p_j`. Steps that draw m random rows for every pull, which is what UMAP does,
    descend the one with :math:`r_x = \gamma\tfrac mn\sum_jp_{j\mid x}` (Damrich and Hamprecht 2021),
    far less, and that is the energy here.

    Parameters
    ----------
    d : number of features
    components : length of a place
    neighbors : k
    a, b : of q; None are those of ``membership_curve()``
    connectivity : how many of the nearest rows belong entirely, see ``manifold.memberships``
    repulsion : γm
    metric, p, VI, w, n : of the rows, see ``groundstate.energy.neighbors.memory.Memory``

    Attributes
    ----------
    Y : parameter ``(n, components)``, places of the known rows

    Examples
    --------
    >>> e = FuzzyMapEnergy(1, 1, neighbors=2)
    >>> e.remember(torch.tensor([[0.0], [1.0], [5.0]]), torch.tensor([[0.0], [1.0], [9.0]]))
    >>> far, near = (e(x=torch.tensor([[4.5]]), z=torch.tensor([[z]])) for z in (0.3, 8.0))
    >>> bool(far > near)
    True
    """

    def __init__(
        self, d: int, components: int, neighbors: int = 15, *, a: float | None = None,
        b: float | None = None, connectivity: float = 0.0, repulsion: float = 5.0, **memory: Any,
    ) -> None:  # fmt: skip
        super().__init__(d, components, **memory)
        if a is None or b is None:
            a, b = membership_curve()
        self.a, self.b, self.repulsion = float(a), float(b), float(repulsion)
        self.neighbors, self.connectivity = int(neighbors), float(connectivity)

    def config(self) -> dict[str, Any]:
        return {
            **super().config(), "neighbors": self.neighbors, "a": self.a, "b": self.b,
            "connectivity": self.connectivity, "repulsion": self.repulsion,
        }  # fmt: skip

    def members(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Memberships of the nearest known rows and their numbers, ``(B, k)``; NaN from infinity."""
        k = min(self.neighbors, len(self.memory.rows))
        with torch.no_grad():
            index = self.memory.nearest(x, k)[1]
        away = self.memory.measured(x, index)
        known = torch.isfinite(away.square()).all(1, keepdim=True)
        p: Tensor = memberships(
            torch.where(known, away, 1.0), max(self.neighbors, 2), self.connectivity
        )[0]
        return torch.where(known, p, torch.nan), index

    def apart(self, square: Tensor) -> tuple[Tensor, Tensor]:
        """−log q and −log(1 − q) of squared distances; the latter is finite at zero."""
        pull = (self.a * square.clamp_min(TINY) ** self.b).log1p()
        push = pull - self.b * (square + SOFT).log() - torch.tensor(self.a).log().to(square)
        return pull, push

    def forward(self, x: Tensor, z: Tensor) -> Tensor:
        if not len(self.Y):
            return 0.0 * (x.sum(1) + z.sum(1))
        p, index = self.members(x)
        pull, push = self.apart((z.double()[:, None] - self.Y.double()).square().sum(-1))  # (B, n)
        r = self.repulsion / len(self.Y) * p.sum(1)
        return ((p * pull.gather(1, index)).sum(1) + r * push.sum(1)).to(x.dtype)

    def placed(self, x: Tensor) -> Tensor:
        p, index = self.members(x)
        p = p / p.sum(1, keepdim=True)
        Y = self.Y.double()
        known = Y[index]  # (B, k, components)
        seen = Y if len(Y) <= SEEN else Y[self._some()]
        share = self.repulsion / len(seen)

        def gradient(z: Tensor) -> Tensor:
            gap = z[:, None] - known
            s = gap.square().sum(-1).clamp_min(TINY)
            pull = self.a * s**self.b
            pull = p * pull / (s * (1 + pull))
            s = (
                (z[:, None] - seen).square().sum(-1)
                if z.shape[1] < 4
                else torch.cdist(z, seen).square()
            )
            push = share / ((s + SOFT) * (1 + self.a * s**self.b))
            toward = (pull[..., None] * gap).sum(1) - push.sum(1, keepdim=True) * z + push @ seen
            return 2 * self.b * toward

        return descended((p[..., None] * known).sum(1), gradient, STEPS, RATE).to(x.dtype)

    def _some(self) -> Tensor:
        """Numbers of some rows, the same ones in whatever order the rows were given."""
        key = torch.from_numpy(row_hash(self.memory.rows.detach()).view("int64"))
        return key.argsort(stable=True)[:SEEN].to(self.Y.device)
