r"""Energy of an outlier by isolation: how few random cuts set it apart?"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Finite, Real
from groundstate.energy.trees.leaves import example_tree
from groundstate.energy.trees.nodes import TreeNodes


def mean_path(n: Any) -> NDArray[np.float64]:
    r"""Mean number of cuts that set one of n rows apart, :math:`c(n) = 2H_{n-1} - 2(n-1)/n`.

    >>> mean_path([1, 2, 256]).round(4).tolist()
    [0.0, 1.0, 10.2448]
    """
    n = np.asarray(n, np.float64)
    m = np.maximum(n, 2.0)
    long = 2 * (np.log(m - 1) + np.euler_gamma) - 2 * (m - 1) / m
    return np.where(n <= 2, np.clip(n - 1, 0, 1), long)


def _example() -> IsolationEnergy:
    energy = IsolationEnergy(2)
    energy.nodes.set([example_tree([[3.0], [2.0], [1.0]])] * 2)
    energy.unit.fill_(2.5)
    return energy


@registered(r"e(x, z) = \{2^{-\bar h(x)/c},\ t\}_z", _example)
class IsolationEnergy(Energy):
    r"""Is x an outlier, z = 1? :math:`e(x, 0) = 2^{-\bar h(x)/c}` with :math:`\bar h` the mean number of
    random cuts on the way of x through the trees, and :math:`e(x, 1) = t`.

    Parameters
    ----------
    d : number of features; NaN is a value like others
    nodes : of the trees, whose values are path lengths

    Attributes
    ----------
    nodes : TreeNodes
    unit : buffer, ``()``, c, the mean path of a row among those that a tree saw
    threshold : buffer, ``()``, t

    Examples
    --------
    >>> e = _example()
    >>> round(float(e(x=torch.tensor([[1.0, 0.0]]), z=torch.tensor([0]))), 4)  # one cut
    0.7579
    """

    missing = frozenset({"x"})
    held = frozenset({"x"})
    unit: Tensor
    threshold: Tensor

    def __init__(self, d: int, **nodes: Any) -> None:
        super().__init__(x=Real(d), z=Finite(2))
        self.d, self.nodes = d, TreeNodes(**nodes)
        self.register_buffer("unit", torch.ones(()))
        self.register_buffer("threshold", torch.tensor(0.5))

    def config(self) -> dict[str, Any]:
        return {"d": self.d, **self.nodes.config()}

    def paths(self, x: Tensor) -> Tensor:
        """Mean path lengths, ``(B,)``."""
        return self.nodes(x, 1)[:, 0] / self.nodes.n_trees

    def forward(self, x: Tensor, z: Tensor) -> Tensor:
        return self.energies(x).gather(1, z[:, None])[:, 0]

    def scores(self, x: Tensor) -> Tensor:
        """The energy of a usual row, ``(B,)``."""
        if not float(self.unit) > 0:  # trees of one row
            return torch.full((len(x),), 0.5).to(x)
        # sums over trees round: a path of just the mean length is one half
        ratio = (self.paths(x).double() / self.unit.double()).round(decimals=9)
        return torch.exp2(-ratio).to(x.dtype)

    @offers.table("z")
    def energies(self, x: Tensor) -> Tensor:
        usual = self.scores(x)
        return torch.stack([usual, self.threshold.to(usual).expand_as(usual)], 1)
