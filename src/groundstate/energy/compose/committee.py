r"""Committees: the average distribution, and the average value, of several energies of the same y."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.basic import LinearEnergy, SquaredEnergy
from groundstate.energy.exact import exact_minimum
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Finite, Real
from groundstate.energy.value import ValueEnergy
from groundstate.errors import Unsupported

Columns = Sequence[Sequence[int] | None]


def _class_example() -> Energy:
    energy = CommitteeClassEnergy(3, 3)
    for seed, a in ((0, 1.0), (1, 3.0)):
        generator = torch.Generator().manual_seed(seed)
        energy.add(LinearEnergy(2, 3, scale=1.0, generator=generator), a, columns=[seed, 2])
    return energy


def _mean_example() -> Energy:
    energy = CommitteeMeanEnergy(2, 2)
    for seed in (0, 1):
        member = SquaredEnergy(2, 2)
        with torch.no_grad():
            member.W.copy_(torch.tensor([[1.0, seed], [-seed, 2.0]]))
        energy.add(member)
    return energy


class Committee(Energy):
    """What committees share: members, their weights a, and the columns of x that each one sees.

    Weights are normalised where they are used; without members every y is as good as any other.
    """

    missing = frozenset({"x"})
    a: Tensor

    def _seat(self, members: Sequence[Energy], columns: Columns | None) -> None:
        self.members = nn.ModuleList(members)
        self.a = nn.Parameter(torch.ones(len(self.members)), requires_grad=False)
        self.columns: list[list[int] | None] = [
            None if own is None else [int(j) for j in own]
            for own in (columns or [None] * len(self.members))
        ]

    def add(
        self, member: Energy, weight: float = 1.0, columns: Sequence[int] | None = None
    ) -> None:
        """One more member, which sees these columns (None: all)."""
        self.members.append(member)
        self.columns.append(None if columns is None else [int(j) for j in columns])
        a = pad(self.a.detach(), (0, 1), value=weight)
        self.a = nn.Parameter(a, requires_grad=False)

    def empty(self) -> None:
        """No members any more."""
        device, dtype = self.a.device, self.a.dtype
        self._seat((), None)
        self.a.data = self.a.data.to(device, dtype)

    def weigh(self, weights: Sequence[float] | Tensor) -> None:
        """New weights of the members."""
        with torch.no_grad():
            self.a.copy_(torch.as_tensor(weights, dtype=self.a.dtype))

    def shares(self) -> Tensor:
        """Weights that sum to one, ``(members,)``."""
        return self.a / self.a.sum()

    def member_value(self, m: int, x: Tensor) -> Tensor:
        """The prediction of one member, ``(B, m)``."""
        member: Any = self.members[m]
        argmin = member.ability("argmin", "y")
        if argmin is not None:  # keeps the gradient
            value: Tensor = argmin(x=self._seen(m, x))
            return value
        best = exact_minimum(member, ("y",), {"x": self._seen(m, x)})
        if best is None:
            raise Unsupported(
                f"{type(member).__name__} has no exact minimum over y, so its value cannot be "
                "averaged; give it an argmin or a conditional"
            )
        return best["y"]

    def _seen(self, m: int, x: Tensor) -> Tensor:
        own = self.columns[m]
        return x if own is None else x[:, own]


@registered(r"e(x, y) = -\log \sum_m a_m\, p_m(y \mid x)", _class_example)
class CommitteeClassEnergy(Committee):
    r"""The averaged distribution of classes, :math:`e(x, y) = -\log \sum_m a_m p_m(y\mid x)`,
    :math:`\sum_m a_m = 1`.

    A member's distribution is :math:`p_m = \mathrm{softmax}(-e_m)`; with ``hard`` it is certain of
    its class of lowest energy, and the average is the share of votes.

    Parameters
    ----------
    d : number of features
    k : number of classes
    members : energies of x (or of some of its columns) and the same classes
    columns : which columns each member sees, None for all
    hard : whether members vote

    Attributes
    ----------
    members : ModuleList of energies
    a : Parameter, ``(members,)``; without gradients

    Examples
    --------
    >>> import torch
    >>> e = CommitteeClassEnergy(1, 2, [LinearEnergy(1, 2), LinearEnergy(1, 2)], hard=True)
    >>> with torch.no_grad():
    ...     _ = e.members[1].b.copy_(torch.tensor([0.0, 1.0]))
    >>> e.weigh([3.0, 1.0])
    >>> torch.exp(-e.table("y", x=torch.zeros(1, 1))).tolist()
    [[0.75, 0.25]]
    """

    normalised = frozenset({"y"})

    def __init__(
        self,
        d: int,
        k: int,
        members: Sequence[Energy] = (),
        columns: Columns | None = None,
        hard: bool = False,
    ) -> None:
        super().__init__(x=Real(d), y=Finite(k))
        self.d, self.k, self.hard = d, k, hard
        self._seat(members, columns)

    def config(self) -> dict[str, Any]:
        return {"d": self.d, "k": self.k, "members": list(self.members), "columns": self.columns,
                "hard": self.hard}  # fmt: skip

    def member_log_distribution(self, m: int, x: Tensor) -> Tensor:
        """log p of one member, ``(B, k)``."""
        member: Any = self.members[m]
        table: Tensor = member.table("y", x=self._seen(m, x))
        if not self.hard:
            return torch.log_softmax(-table, 1)
        return _certain(table.argmin(1), self.k, table.dtype)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return self.energies(x).gather(1, y[:, None]).squeeze(1)

    @offers.table("y")
    def energies(self, x: Tensor) -> Tensor:
        if not len(self.members):
            return torch.full((len(x), self.k), math.log(self.k), dtype=x.dtype, device=x.device)
        distributions = torch.stack(
            [self.member_log_distribution(m, x) for m in range(len(self.members))]
        )
        weighted: Tensor = torch.logsumexp(distributions + self.shares().log()[:, None, None], 0)
        return -weighted

    @offers.log_partition("y")
    def constant(self, x: Tensor, T: float = 1.0) -> Tensor:
        if T == 1.0:
            return torch.zeros(len(x), dtype=x.dtype, device=x.device)
        total: Tensor = torch.logsumexp(-self.energies(x) / T, 1)
        return total


def _certain(best: Tensor, k: int, dtype: torch.dtype) -> Tensor:
    """log of a distribution that knows the class, ``(B, k)``."""
    out = torch.full((len(best), k), -torch.inf, dtype=dtype, device=best.device)
    return out.scatter_(1, best[:, None], 0.0)


@registered(r"e(x, y) = \tfrac12\|y - \sum_m a_m f_m(x)\|^2", _mean_example)
class CommitteeMeanEnergy(ValueEnergy, Committee):
    r"""Squared distance to the averaged value, :math:`e(x, y) = \tfrac12\|y - \sum_m a_m f_m(x)\|^2`,
    :math:`\sum_m a_m = 1`, with :math:`f_m(x) = \arg\min_y e_m(x, y)`.

    Parameters
    ----------
    d : number of features
    m : number of outputs
    members : energies of x (or of some of its columns) and y, whose minimum over y is exact
    columns : which columns each member sees, None for all

    Attributes
    ----------
    members : ModuleList of energies
    a : Parameter, ``(members,)``; without gradients

    Examples
    --------
    >>> import torch
    >>> _mean_example().predict(torch.tensor([[1.0, 2.0]])).tolist()
    [[2.0, 3.5]]
    """

    def __init__(
        self, d: int, m: int = 1, members: Sequence[Energy] = (), columns: Columns | None = None
    ) -> None:
        super().__init__(x=Real(d), y=Real(m))
        self.d, self.m = d, m
        self._seat(members, columns)

    def config(self) -> dict[str, Any]:
        members = list(self.members)
        return {"d": self.d, "m": self.m, "members": members, "columns": self.columns}

    def predict(self, x: Tensor) -> Tensor:
        """The averaged value, ``(B, m)``."""
        count = len(self.members)
        if not count:
            return torch.zeros(len(x), self.m, dtype=x.dtype, device=x.device)
        values = torch.stack([self.member_value(m, x) for m in range(count)], -1)  # (B, m, members)
        return values @ self.shares()
