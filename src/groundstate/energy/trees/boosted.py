r"""Energies of sums of trees: class scores, and deviances of a predicted value."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution, Independent, Laplace

from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Finite, Real
from groundstate.energy.trees.leaves import example_tree
from groundstate.energy.trees.nodes import TreeNodes
from groundstate.math.distributions.operations import isotropic
from groundstate.math.losses import PointLoss, loss_of

LOSSES = ("squared_error", "absolute_error", "quantile", "poisson", "gamma")


def _class_example() -> Energy:
    energy = BoostedClassEnergy(2, 3)
    energy.nodes.set([example_tree([[0.5], [-1.0], [0.2 + c]], c) for c in range(3)])
    return energy


def _value_example() -> Energy:
    energy = BoostedEnergy(2)
    energy.nodes.set([example_tree([[0.5], [-1.0], [0.2]], 0)] * 2)
    return energy


@registered(r"e(x, y) = -F_y(x),\quad F = b + \sum_t v_{\ell_t(x)}", _class_example)
class BoostedClassEnergy(Energy):
    r"""Class scores as sums of trees, :math:`e(x, y) = -F_y(x)`,
    :math:`F(x) = b + \sum_t v_{\ell_t(x)}`.

    With two classes there is one score f and :math:`e(x, 0) = f/2`, :math:`e(x, 1) = -f/2`, so that
    :math:`p(1 \mid x) = \sigma(f)`.

    Parameters
    ----------
    d : number of features; NaN is a value like others
    k : number of classes
    nodes : the trees; none of weight by default

    Attributes
    ----------
    nodes : TreeNodes
    b : buffer, ``(1,)`` for two classes, else ``(k,)``

    Examples
    --------
    >>> import torch
    >>> e = _class_example()
    >>> e.table("y", x=torch.tensor([[1.0, 0.0]])).tolist()[0][2]
    -2.200000047683716
    """

    missing = frozenset({"x"})
    held = frozenset({"x"})  # boxes are flat: no gradient flows into x
    b: Tensor

    def __init__(self, d: int, k: int, nodes: TreeNodes | None = None) -> None:
        super().__init__(x=Real(d), y=Finite(k))
        self.d, self.k = d, k
        self.nodes = TreeNodes() if nodes is None else nodes
        self.register_buffer("b", torch.zeros(1 if k == 2 else k))

    def config(self) -> dict[str, Any]:
        return {"d": self.d, "k": self.k, "nodes": self.nodes}

    def raw(self, x: Tensor) -> Tensor:
        """The scores F, ``(B, 1)`` for two classes, else ``(B, k)``."""
        f: Tensor = self.nodes(x, len(self.b)) + self.b
        return f

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return self.energies(x).gather(1, y[:, None]).squeeze(1)

    @offers.scores("y")
    def scores(self, x: Tensor) -> Tensor:
        f = self.raw(x)
        return torch.cat([-f, f], 1) / 2 if self.k == 2 else f

    @offers.table("y")
    def energies(self, x: Tensor) -> Tensor:
        return -self.scores(x)


@registered(r"e(x, y) = \tfrac12 D(y, \mu(b + \sum_t v_{\ell_t(x)}))", _value_example)
class BoostedEnergy(Energy):
    r"""Half the deviance of y from a sum of trees, :math:`e(x, y) = \tfrac12 D(y, \mu(F(x)))`.

    =================  =====================================  ================
    loss               e(x, y)                                μ(F)
    =================  =====================================  ================
    squared_error      ½(y − μ)²                              F
    absolute_error     ∣y − μ∣                                F
    quantile           (y − μ)(q − 1[y < μ])                  F, a quantile
    poisson            y log(y/μ) − y + μ                     exp F
    gamma              y/μ − log(y/μ) − 1                     exp F
    =================  =====================================  ================

    Every row of :math:`e` has its lowest energy, zero, at :math:`y = \mu`.

    Parameters
    ----------
    d : number of features; NaN is a value like others
    loss : one of the table, :math:`\tfrac12(y-\mu)^2` by default
    quantile : q of the quantile loss
    nodes : the trees; none of weight by default

    Attributes
    ----------
    nodes : TreeNodes
    b : buffer, ``(1,)``

    Examples
    --------
    >>> import torch
    >>> e = _value_example()
    >>> e.predict(torch.tensor([[0.0, -1.0]])).item()
    1.0
    """

    missing = frozenset({"x"})
    held = frozenset({"x"})  # boxes are flat: no gradient flows into x
    b: Tensor

    def __init__(
        self,
        d: int,
        loss: str = "squared_error",
        quantile: float = 0.5,
        nodes: TreeNodes | None = None,
    ) -> None:
        positive = loss in ("poisson", "gamma")
        super().__init__(x=Real(d), y=Real(1, low=0.0) if positive else Real(1))
        if loss not in LOSSES:
            raise ValueError(f"loss must be one of {', '.join(LOSSES)}, got {loss!r}")
        self.d, self.loss, self.quantile = d, loss, quantile
        self.nodes = TreeNodes() if nodes is None else nodes
        self.register_buffer("b", torch.zeros(1))

    def config(self) -> dict[str, Any]:
        return {"d": self.d, "loss": self.loss, "quantile": self.quantile, "nodes": self.nodes}

    def raw(self, x: Tensor) -> Tensor:
        """F, ``(B, 1)``."""
        f: Tensor = self.nodes(x, 1) + self.b
        return f

    @property
    def point_loss(self) -> PointLoss:
        """The loss of a score, of the one table."""
        return loss_of(self.loss, **({"q": self.quantile} if self.loss == "quantile" else {}))

    @property
    def log_link(self) -> bool:
        return self.point_loss.link.name == "log"

    def predict(self, x: Tensor) -> Tensor:
        """μ(x), ``(B, 1)``."""
        return self.point_loss.mean(self.raw(x))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return self.point_loss.value(self.raw(x), y).squeeze(1)

    @offers.argmin("y")
    def best(self, x: Tensor) -> Tensor:
        return self.predict(x)

    @offers.conditional("y", when=lambda energy: energy.loss in ("squared_error", "absolute_error"))
    def distribution(self, x: Tensor, T: float = 1.0) -> Distribution:
        mean = self.predict(x)
        if self.loss == "squared_error":
            return isotropic(mean, math.sqrt(T))
        return Independent(Laplace(mean, T), 1)

    @offers.log_partition("y", when=lambda energy: not energy.log_link)
    def constant(self, x: Tensor, T: float = 1.0) -> Tensor:
        q = self.quantile
        size = {
            "squared_error": 0.5 * math.log(2 * math.pi * T),
            "absolute_error": math.log(2 * T),
            "quantile": math.log(T / (q * (1 - q))) if self.loss == "quantile" else 0.0,
        }[self.loss]
        return torch.full((len(x),), size, dtype=x.dtype, device=x.device)
