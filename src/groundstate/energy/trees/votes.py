r"""A weighted vote of class energies, :math:`e(x, y) = -\sum_m a_m 1[h_m(x) = y]`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.basic import LinearEnergy
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Finite, Real


def _example() -> Energy:
    energy = VoteEnergy(2, 3)
    for seed, a in ((0, 0.5), (1, 1.5)):
        energy.add(LinearEnergy(2, 3, scale=1.0, generator=torch.Generator().manual_seed(seed)), a)
    return energy


@registered(r"e(x, y) = -\sum_m a_m 1[h_m(x) = y]", _example)
class VoteEnergy(Energy):
    r"""Every member votes for its class of lowest energy, :math:`e(x, y) = -\sum_m a_m 1[h_m(x) = y]`.

    Parameters
    ----------
    d : number of features
    k : number of classes
    members : energies of x and the same classes
    weights : a, one per member

    Attributes
    ----------
    members : ModuleList of energies
    a : Parameter, ``(members,)``; without gradients

    Examples
    --------
    >>> import torch
    >>> e = _example()
    >>> e.table("y", x=torch.zeros(1, 2)).tolist()  # both members tie and vote for the first
    [[-2.0, -0.0, -0.0]]
    """

    missing = frozenset({"x"})
    held = frozenset({"x"})
    a: Tensor

    def __init__(
        self,
        d: int,
        k: int,
        members: Sequence[Energy] = (),
        weights: Sequence[float] | None = None,
    ) -> None:
        super().__init__(x=Real(d), y=Finite(k))
        self.d, self.k = d, k
        self.members = nn.ModuleList(members)
        values = torch.ones(len(self.members)) if weights is None else torch.tensor(weights)
        self.a = nn.Parameter(values, requires_grad=False)

    def config(self) -> dict[str, Any]:
        return {"d": self.d, "k": self.k, "members": list(self.members)}

    def add(self, member: Energy, weight: float) -> None:
        """One more voice."""
        self.members.append(member)
        a = torch.cat([self.a, self.a.new_tensor([weight])])
        self.a = nn.Parameter(a, requires_grad=False)

    @torch.no_grad()
    def staged(self, x: Tensor) -> Iterator[Tensor]:
        """Summed weights of the votes after every member, ``(B, k)`` each."""
        out = torch.zeros(len(x), self.k, dtype=self.a.dtype, device=x.device)
        for member, a in zip(self.members, self.a):
            voter: Any = member
            best = voter.table("y", x=x).argmin(1, keepdim=True)
            out = out.scatter_add(1, best, a.expand(len(x), 1))
            yield out

    def scores_until(self, x: Tensor, n: int | None = None) -> Tensor:
        """Summed weights of the first n members' votes, ``(B, k)``."""
        out = torch.zeros(len(x), self.k, dtype=self.a.dtype, device=x.device)
        for score in islice(self.staged(x), n):
            out = score
        return out

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return self.energies(x).gather(1, y[:, None]).squeeze(1)

    @offers.table("y")
    def energies(self, x: Tensor) -> Tensor:
        return -self.scores_until(x)
