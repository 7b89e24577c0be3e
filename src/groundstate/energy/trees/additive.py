r"""Additive scores, :math:`F(x) = b + \sum_m a_m h_m(x)`, and the energies of y that they give."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution

from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.basic import SquaredEnergy
from groundstate.energy.compose.committee import Committee
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Finite, Real
from groundstate.energy.trees.additive_losses import (
    AdditiveLoss,
    Exponential,
    Logistic,
    Poisson,
    Squared,
)
from groundstate.energy.trees.leaves import example_tree
from groundstate.energy.trees.nodes import TreeNodes
from groundstate.math.distributions.operations import isotropic

TINY = 2.0**-52  # least probability that an energy which boosting starts from may have


def _line(slope: float) -> Energy:
    member = SquaredEnergy(2)
    with torch.no_grad():
        member.W.fill_(slope)
    return member


def _value_example() -> Energy:
    energy = AdditiveEnergy(2)
    energy.nodes.set([example_tree([[0.5], [-1.0], [0.2]], 0)])
    energy.put(_line(0.5), 0.3, 0)
    return energy


def _class_example() -> Energy:
    energy = AdditiveClassEnergy(2, 3)
    energy.nodes.set([example_tree([[0.5], [-1.0], [0.2 + c]], c) for c in range(3)])
    energy.put(_line(1.0), 0.5, 1)
    return energy


class Additive(Committee):
    """What additive energies share: members with a place in F, and trees summed in one pass."""

    held = frozenset({"x"})  # trees are flat: no gradient flows into x
    b: Tensor

    def _sum_of(
        self,
        outputs: int,
        members: Sequence[Energy],
        scores: Sequence[int],
        nodes: Any,
        first: Energy | None,
    ) -> None:
        self._seat(members, None)
        self.first = first
        self.scores: list[int] = [int(c) for c in scores]
        self.nodes = TreeNodes() if nodes is None else nodes
        self.register_buffer("b", torch.zeros(outputs))

    def put(self, member: Energy, weight: float, score: int) -> None:
        """Add ``weight`` times the value of a member to one score."""
        self.add(member, weight)
        self.scores.append(score)

    def empty(self) -> None:
        super().empty()
        self.first, self.scores = None, []
        fresh = TreeNodes().to(self.b.device, self.b.dtype)
        self.nodes = fresh

    def starts(self, x: Tensor) -> Tensor:
        """The scores before the first step, ``(B, outputs)``."""
        b = self.b.expand(len(x), -1)
        return b if self.first is None else b + self._given(self.first, x)

    def _given(self, first: Energy, x: Tensor) -> Tensor:
        """What another energy says of x, as scores ``(B, outputs)``."""
        raise TypeError(f"{type(self).__name__} must define _given(first, x)")

    def raw(self, x: Tensor) -> Tensor:
        """The scores F, ``(B, outputs)``."""
        F: Tensor = self.nodes(x, len(self.b)) + self.starts(x)
        if not len(self.members):
            return F
        F = F.clone()
        for m, c in enumerate(self.scores):
            F[:, c] += self.a[m] * self.member_value(m, x)[:, 0]
        return F


@registered(r"e(x, y) = L(y, F(x)),\quad F = b + \sum_m a_m h_m(x)", _value_example)
class AdditiveEnergy(Additive):
    r"""A loss of y from an additive score, :math:`e(x, y) = L(y, F(x))`,
    :math:`F(x) = b + \sum_m a_m h_m(x)`.

    Parameters
    ----------
    d : number of features
    loss : of `groundstate.energy.trees.additive_losses`; ½(y − F)² by default
    members, scores : energies whose minimum over y is added, and where (0)
    nodes : trees, whose leaves are added as they are
    first : an energy of the same x and y whose answers the sum starts from, besides b

    Attributes
    ----------
    members : ModuleList of energies
    a : Parameter, ``(members,)``; without gradients
    nodes : TreeNodes
    b : buffer, ``(1,)``

    Examples
    --------
    >>> import torch
    >>> e = _value_example()
    >>> round(e.predict(torch.tensor([[0.0, -1.0]])).item(), 6)
    0.35
    """

    def __init__(
        self,
        d: int,
        loss: AdditiveLoss | None = None,
        members: Sequence[Energy] = (),
        scores: Sequence[int] = (),
        nodes: TreeNodes | None = None,
        first: Energy | None = None,
    ) -> None:
        loss = Squared() if loss is None else loss
        low = {"low": 0.0} if isinstance(loss, Poisson) else {}
        super().__init__(x=Real(d), y=Real(1, **low))
        self.d, self.loss = d, loss
        self._sum_of(1, members, scores, nodes, first)

    def config(self) -> dict[str, Any]:
        return {"d": self.d, "loss": self.loss, "members": list(self.members),
                "scores": self.scores, "nodes": self.nodes, "first": self.first}  # fmt: skip

    def _given(self, first: Energy, x: Tensor) -> Tensor:
        value: Tensor = first.ability("argmin", "y")(x=x)  # type: ignore[misc]
        return value.clamp_min(TINY).log() if isinstance(self.loss, Poisson) else value

    def predict(self, x: Tensor) -> Tensor:
        """The value of lowest energy, ``(B, 1)``."""
        return self.loss.mean(self.raw(x))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return self.loss.value(self.raw(x), y[:, 0])

    @offers.argmin("y")
    def best(self, x: Tensor) -> Tensor:
        return self.predict(x)

    @offers.conditional("y", when=lambda energy: isinstance(energy.loss, Squared))
    def distribution(self, x: Tensor, T: float = 1.0) -> Distribution:
        return isotropic(self.predict(x), math.sqrt(T))

    @offers.log_partition("y", when=lambda energy: isinstance(energy.loss, Squared))
    def constant(self, x: Tensor, T: float = 1.0) -> Tensor:
        size = 0.5 * math.log(2 * math.pi * T)
        return torch.full((len(x),), size, dtype=x.dtype, device=x.device)


@registered(r"e(x, y) = -F_y(x),\quad F = b + \sum_m a_m h_m(x)", _class_example)
class AdditiveClassEnergy(Additive):
    r"""Class scores as sums, :math:`e(x, y) = -F_y(x)`, :math:`F(x) = b + \sum_m a_m h_m(x)`.

    With two classes there is one score f: :math:`e(x, 1) = -f/2 = -e(x, 0)`, so that
    :math:`p(1\mid x) = \sigma(f)`; with the exponential loss f counts twice.

    Parameters
    ----------
    d : number of features
    k : number of classes
    loss : ``Logistic()`` or, for two classes, ``Exponential()``
    members, scores : energies whose minimum over y is added, and to which score
    nodes : trees, whose leaves are added as they are
    first : an energy of the same x and y whose answers the sum starts from, besides b

    Attributes
    ----------
    members : ModuleList of energies
    a : Parameter, ``(members,)``; without gradients
    nodes : TreeNodes
    b : buffer, ``(1,)`` for two classes, else ``(k,)``

    Examples
    --------
    >>> import torch
    >>> e = _class_example()
    >>> [round(v, 6) for v in e.table("y", x=torch.tensor([[1.0, 1.0]])).tolist()[0]]
    [-0.2, -2.2, -2.2]
    """

    def __init__(
        self,
        d: int,
        k: int,
        loss: AdditiveLoss | None = None,
        members: Sequence[Energy] = (),
        scores: Sequence[int] = (),
        nodes: TreeNodes | None = None,
        first: Energy | None = None,
    ) -> None:
        super().__init__(x=Real(d), y=Finite(k))
        self.d, self.k = d, k
        self.loss = Logistic() if loss is None else loss
        self._sum_of(self.loss.outputs(k), members, scores, nodes, first)

    def config(self) -> dict[str, Any]:
        return {"d": self.d, "k": self.k, "loss": self.loss, "members": list(self.members),
                "scores": self.scores, "nodes": self.nodes, "first": self.first}  # fmt: skip

    def _given(self, first: Energy, x: Tensor) -> Tensor:
        p = torch.softmax(-first.table("y", x=x).double(), 1).clamp(TINY, 1 - TINY)
        if len(self.b) > 1 or self.k == 1:
            return (p.log() - p.log().mean(1, keepdim=True)).to(x)
        f = torch.logit(p[:, 1:]).to(x)
        return f / 2 if isinstance(self.loss, Exponential) else f

    def spread(self, F: Tensor) -> Tensor:
        """Scores of all classes from those that are learned, ``(B, k)``."""
        if F.shape[1] > 1 or self.k == 1:
            return F
        f = F if isinstance(self.loss, Exponential) else F / 2
        return torch.cat([-f, f], 1)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return self.energies(x).gather(1, y[:, None]).squeeze(1)

    @offers.table("y")
    def energies(self, x: Tensor) -> Tensor:
        return -self.spread(self.raw(x))
