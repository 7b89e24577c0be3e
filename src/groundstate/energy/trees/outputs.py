r"""Several class labels at once, read off the same leaves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from groundstate.energy.base import Energy
from groundstate.energy.outputs import OutputsEnergy
from groundstate.energy.registering import registered
from groundstate.energy.trees.leaves import example_tree
from groundstate.energy.trees.nodes import TreeNodes


def _example() -> Energy:
    energy = TreeOutputsEnergy(2, (2, 2))  # of equal sizes: no combination is forbidden
    shares = [[0.2, 0.8, 0.3, 0.7], [0.6, 0.4, 0.6, 0.4], [0.9, 0.1, 0.1, 0.9]]
    energy.nodes.set([example_tree(shares)])
    return energy


@registered(r"e(x, y) = -\sum_o \log \tfrac1T \sum_t p_{o, \ell_t(x)}(y_o)", _example)
class TreeOutputsEnergy(OutputsEnergy):
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

    def __init__(self, d: int, sizes: Sequence[int], nodes: TreeNodes | None = None) -> None:
        super().__init__(d, sizes)
        self.nodes = TreeNodes(k=sum(self.sizes)) if nodes is None else nodes

    def config(self) -> dict[str, Any]:
        return {"d": self.d, "sizes": list(self.sizes), "nodes": self.nodes}

    def shares(self, x: Tensor) -> list[Tensor]:
        """Averaged class frequencies of each output, ``(B, sizes[o])``."""
        p: Tensor = self.nodes(x, sum(self.sizes)) / self.nodes.n_trees
        return list(p.split(self.sizes, 1))
