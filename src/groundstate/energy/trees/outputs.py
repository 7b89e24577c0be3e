r"""Several class labels at once, read off the same leaves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Categorical, Distribution, Independent

from groundstate.energy import spaces
from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.registering import registered
from groundstate.energy.trees.leaves import example_tree
from groundstate.energy.trees.nodes import TreeNodes


def _example() -> Energy:
    energy = TreeOutputsEnergy(2, (2, 2))  # of equal sizes: no combination is forbidden
    shares = [[0.2, 0.8, 0.3, 0.7], [0.6, 0.4, 0.6, 0.4], [0.9, 0.1, 0.1, 0.9]]
    energy.nodes.set([example_tree(shares)])
    return energy


@registered(r"e(x, y) = -\sum_o \log \tfrac1T \sum_t p_{o, \ell_t(x)}(y_o)", _example)
class TreeOutputsEnergy(Energy):
    r"""Class frequencies of several outputs in the leaves, averaged over trees:
    :math:`e(x, y) = -\sum_o \log \tfrac1T\sum_t p_{o,\ell_t(x)}(y_o)`.

    Parameters
    ----------
    d : number of features; NaN is a value like others
    sizes : number of classes of each output
    nodes : the trees, whose leaves hold the shares of all outputs in a row

    Attributes
    ----------
    nodes : TreeNodes

    Examples
    --------
    >>> import torch
    >>> e = _example()
    >>> e.best(torch.tensor([[0.0, -1.0], [1.0, 0.0]])).tolist()
    [[1, 1], [0, 1]]
    """

    normalised = frozenset({"y"})
    missing = frozenset({"x"})
    held = frozenset({"x"})  # boxes are flat: no gradient flows into x

    def __init__(self, d: int, sizes: Sequence[int], nodes: TreeNodes | None = None) -> None:
        label = spaces.Finite(max(sizes))
        super().__init__(x=spaces.Real(d), y=spaces.Sequence(label, len(sizes)))
        self.d, self.sizes = d, tuple(int(k) for k in sizes)
        self.nodes = TreeNodes(k=sum(self.sizes)) if nodes is None else nodes

    def config(self) -> dict[str, Any]:
        return {"d": self.d, "sizes": list(self.sizes), "nodes": self.nodes}

    def shares(self, x: Tensor) -> list[Tensor]:
        """Averaged class frequencies of each output, ``(B, sizes[o])``."""
        p: Tensor = self.nodes(x, sum(self.sizes)) / self.nodes.n_trees
        return list(p.split(self.sizes, 1))

    def probabilities(self, x: Tensor) -> Tensor:
        """The same in one table, ``(B, outputs, max(sizes))``; zero where there is no class."""
        wide = max(self.sizes)
        parts = [torch.nn.functional.pad(p, (0, wide - p.shape[1])) for p in self.shares(x)]
        return torch.stack(parts, 1)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return -self.probabilities(x).gather(2, y[:, :, None])[:, :, 0].log().sum(1)

    @offers.argmin("y")
    def best(self, x: Tensor) -> Tensor:
        return self.probabilities(x).argmax(2)

    @offers.conditional("y")
    def distribution(self, x: Tensor, T: float = 1.0) -> Distribution:
        return Independent(Categorical(logits=self.probabilities(x).log() / T), 1)

    @offers.log_partition("y")
    def constant(self, x: Tensor, T: float = 1.0) -> Tensor:
        return (self.probabilities(x).log() / T).logsumexp(2).sum(1)
