r"""Energies of answers: members say what they think of x, and a last energy learns from that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.basic import LinearEnergy, SquaredEnergy
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Finite, Real
from groundstate.energy.value import ValueEnergy


def _linear(d: int, k: int, seed: int) -> Energy:
    return LinearEnergy(d, k, scale=1.0, generator=torch.Generator().manual_seed(seed))


def _class_example() -> Energy:
    return StackedClassEnergy(2, 3, [_linear(2, 3, 0), _linear(2, 3, 1)], _linear(8, 3, 2), True)


def _value_example() -> Energy:
    final = SquaredEnergy(2, 1)
    with torch.no_grad():
        final.W.copy_(torch.tensor([[1.0, -0.5]]))
    members = [SquaredEnergy(2, 1), SquaredEnergy(2, 1)]
    for seed, one in enumerate(members):
        with torch.no_grad():
            one.W.copy_(torch.tensor([[1.0, float(seed)]]))
    return StackedValueEnergy(2, 1, members, final)


class Stacked(Energy):
    """What stacks share: φ(x), the answers of the members next to each other, and x where it passes."""

    members: nn.ModuleList
    passthrough: bool
    at: Tensor

    def _seat(self, members: Sequence[Energy], final: Energy | None, passthrough: bool) -> None:
        self.members, self.final = nn.ModuleList(members), final
        self.passthrough = passthrough
        self.at = nn.Parameter(torch.zeros(1), requires_grad=False)  # members may hold no tensors

    def answers(self, m: int, x: Tensor) -> Tensor:
        """What one member says, ``(B, f)``: its own features, probabilities or a value."""
        member: Any = self.members[m]
        if hasattr(member, "features"):
            own: Tensor = member.features(x)
            return own
        if not isinstance(member.spaces["y"], Finite):
            value: Tensor = member.ability("argmin", "y")(x=x)
            return value
        p = torch.softmax(-member.table("y", x=x), 1)
        return p[:, 1:] if p.shape[1] == 2 else p  # the other column follows from it

    def features(self, x: Tensor) -> Tensor:
        """φ(x), ``(B, F)``."""
        parts = [self.answers(m, x) for m in range(len(self.members))]
        return torch.cat([*parts, x] if self.passthrough else parts, 1)


@registered(r"e(x, y) = e_\text{final}(\varphi(x), y)", _class_example)
class StackedClassEnergy(Stacked):
    r"""Classes judged by the answers of members, :math:`e(x, y) = e_\text{final}(\varphi(x), y)`.

    Parameters
    ----------
    d : number of features
    k : number of classes
    members : energies of x whose answers are :math:`\varphi`
    final : energy of φ and the class; None knows nothing yet
    passthrough : whether x itself is part of φ

    Examples
    --------
    >>> e = StackedClassEnergy(1, 2, [LinearEnergy(1, 2)], LinearEnergy(1, 2))
    >>> e.features(torch.zeros(1, 1)).tolist(), e.table("y", x=torch.zeros(1, 1)).abs().tolist()
    ([[0.5]], [[0.0, 0.0]])
    """

    def __init__(
        self,
        d: int,
        k: int,
        members: Sequence[Energy] = (),
        final: Energy | None = None,
        passthrough: bool = False,
    ) -> None:
        super().__init__(x=Real(d), y=Finite(k))
        self.d, self.k = d, k
        self._seat(members, final, passthrough)

    def config(self) -> dict[str, Any]:
        return {
            "d": self.d, "k": self.k, "members": list(self.members), "final": self.final,
            "passthrough": self.passthrough,
        }  # fmt: skip

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return self.energies(x).gather(1, y[:, None]).squeeze(1)

    @offers.table("y")
    def energies(self, x: Tensor) -> Tensor:
        if self.final is None:
            return x.new_zeros(len(x), self.k)
        return self.final.table("y", x=self.features(x))


@registered(r"e(x, y) = \tfrac12\|y - f_\text{final}(\varphi(x))\|^2", _value_example)
class StackedValueEnergy(ValueEnergy, Stacked):
    r"""Values from the answers of members, :math:`e(x, y) = \tfrac12\|y - f_\text{final}(\varphi(x))\|^2`.

    Parameters
    ----------
    d : number of features
    m : number of outputs
    members : energies of x whose answers are :math:`\varphi`
    final : energy of φ and the value, whose minimum f is exact; None is zero
    passthrough : whether x itself is part of φ

    Examples
    --------
    >>> _value_example().best(torch.tensor([[1.0, 2.0]])).tolist()
    [[-0.5]]
    """

    def __init__(
        self,
        d: int,
        m: int = 1,
        members: Sequence[Energy] = (),
        final: Energy | None = None,
        passthrough: bool = False,
    ) -> None:
        super().__init__(x=Real(d), y=Real(m))
        self.d, self.m = d, m
        self._seat(members, final, passthrough)

    def config(self) -> dict[str, Any]:
        return {
            "d": self.d, "m": self.m, "members": list(self.members), "final": self.final,
            "passthrough": self.passthrough,
        }  # fmt: skip

    def predict(self, x: Tensor) -> Tensor:
        """f(φ(x)), ``(B, m)``."""
        if self.final is None:
            return x.new_zeros(len(x), self.m)
        argmin: Any = self.final.ability("argmin", "y")
        value: Tensor = argmin(x=self.features(x))
        return value
