r"""Energies read off the leaves of trees: averaged probabilities, and averaged means."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Finite, Real
from groundstate.energy.trees.nodes import Tree, TreeNodes
from groundstate.energy.value import ValueEnergy


def example_tree(values: list[list[float]], column: int = -1) -> Tree:
    """A tree with two cuts and three leaves, for examples and contract tests."""
    import numpy as np

    inner = np.array([True, True, False, False, False])
    value = np.zeros((5, len(values[0])))
    value[2:] = values
    return Tree(
        feature=np.where(inner, [0, 1, 0, 0, 0], -1),
        threshold=np.array([0.3, -0.2, 0.0, 0.0, 0.0]),
        left=np.array([1, 2, -1, -1, -1]),
        right=np.array([4, 3, -1, -1, -1]),
        nan_left=np.array([True, False, False, False, False]),
        value=value,
        weight=np.ones(5),
        impurity=np.zeros(5),
        rows=np.ones(5, np.int64),
        categories={},
        column=column,
    )


def _class_example() -> Energy:
    energy = TreeClassEnergy(2, 3)
    energy.nodes.set([example_tree([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1], [0.1, 0.1, 0.8]])])
    return energy


def _mean_example() -> Energy:
    energy = TreeMeanEnergy(2, 2)
    energy.nodes.set([example_tree([[0.5, 1.0], [-1.0, 2.0], [0.0, -0.5]])] * 2)
    return energy


@registered(r"e(x, y) = -\log \tfrac1T \sum_t p_{\ell_t(x)}(y)", _class_example)
class TreeClassEnergy(Energy):
    r"""Class frequencies of the leaves, averaged over trees:
    :math:`e(x, y) = -\log \tfrac1T\sum_t p_{\ell_t(x)}(y)`.

    Parameters
    ----------
    d : number of features; NaN is a value like others
    k : number of classes
    nodes : the trees; one empty leaf by default

    Attributes
    ----------
    nodes : TreeNodes

    Examples
    --------
    >>> import torch
    >>> e = _class_example()
    >>> e.probabilities(torch.tensor([[0.0, -1.0], [1.0, 0.0]])).tolist()[1]
    [0.10000000149011612, 0.10000000149011612, 0.800000011920929]
    >>> e.table("y", x=torch.zeros(1, 2)).argmin(1).tolist()
    [0]
    """

    normalised = frozenset({"y"})
    missing = frozenset({"x"})
    held = frozenset({"x"})  # boxes are flat: no gradient flows into x

    def __init__(self, d: int, k: int, nodes: TreeNodes | None = None) -> None:
        super().__init__(x=Real(d), y=Finite(k))
        self.d, self.k = d, k
        self.nodes = TreeNodes(k=k) if nodes is None else nodes

    def config(self) -> dict[str, Any]:
        return {"d": self.d, "k": self.k, "nodes": self.nodes}

    def probabilities(self, x: Tensor) -> Tensor:
        """Averaged class frequencies, ``(B, k)``."""
        p: Tensor = self.nodes(x, self.k) / self.nodes.n_trees
        return p

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return self.energies(x).gather(1, y[:, None]).squeeze(1)

    @offers.table("y")
    def energies(self, x: Tensor) -> Tensor:
        return -self.probabilities(x).log()


@registered(r"e(x, y) = \tfrac12\|y - \tfrac1T\sum_t v_{\ell_t(x)}\|^2", _mean_example)
class TreeMeanEnergy(ValueEnergy):
    r"""Squared distance to the mean of the leaves,
    :math:`e(x, y) = \tfrac12\|y - \tfrac1T\sum_t v_{\ell_t(x)}\|^2`.

    Parameters
    ----------
    d : number of features; NaN is a value like others
    m : number of outputs
    nodes : the trees; one leaf of zero by default

    Attributes
    ----------
    nodes : TreeNodes

    Examples
    --------
    >>> import torch
    >>> _mean_example().predict(torch.tensor([[0.0, -1.0], [1.0, 0.0]])).tolist()
    [[0.5, 1.0], [0.0, -0.5]]
    """

    missing = frozenset({"x"})
    held = frozenset({"x"})  # boxes are flat: no gradient flows into x

    def __init__(self, d: int, m: int = 1, nodes: TreeNodes | None = None) -> None:
        super().__init__(x=Real(d), y=Real(m))
        self.d, self.m = d, m
        self.nodes = TreeNodes(k=m) if nodes is None else nodes

    def config(self) -> dict[str, Any]:
        return {"d": self.d, "m": self.m, "nodes": self.nodes}

    def predict(self, x: Tensor) -> Tensor:
        """f(x), ``(B, m)``."""
        f: Tensor = self.nodes(x, self.m) / self.nodes.n_trees
        return f
