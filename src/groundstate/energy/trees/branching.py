r"""Trees with as many branches as an attribute has values, and rows that go down several at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Finite, Real

F64 = NDArray[np.float64]


class Branch:
    """A node while a tree is built: class weights, and a question with its answers.

    ``threshold`` is NaN for a question with one answer per category; otherwise the first child
    takes ``x <= threshold`` and the second the rest.
    """

    def __init__(self, counts: F64) -> None:
        self.counts = counts  # (k,) weights of the rows behind the class shares
        self.attribute = -1
        self.threshold = np.nan
        self.children: list[Branch] = []
        self.shares: F64 = np.empty(0)  # weight of each answer among the known ones

    @property
    def is_leaf(self) -> bool:
        return not self.children

    def make_leaf(self) -> None:
        self.attribute, self.children, self.shares = -1, [], np.empty(0)

    def answers(self, values: NDArray[Any]) -> NDArray[np.int64]:
        """The child of each value, −1 where it is missing or was never seen."""
        if not np.isnan(self.threshold):
            out = np.where(values <= self.threshold, 0, 1)
        else:
            known = (values >= 0) & (values < len(self.children))
            out = np.where(known, np.where(known, values, 0), -1).astype(np.int64)
        return np.where(np.isnan(values), -1, out).astype(np.int64)


def _example() -> Energy:
    energy = BranchingEnergy(2, 2, spread=True)
    root = Branch(np.array([2.0, 2.0]))
    root.attribute, root.threshold, root.shares = 0, 0.1, np.array([0.6, 0.4])
    root.children = [Branch(np.array([2.0, 1.0])), Branch(np.array([0.5, 2.0]))]
    energy.set(root)
    return energy


@registered(r"e(x, y) = -\log \sum_\ell \pi_\ell(x)\, p_\ell(y)", _example)
class BranchingEnergy(Energy):
    r"""Class shares of a tree with many branches, :math:`e(x, y) = -\log\sum_\ell \pi_\ell(x) p_\ell(y)`.

    A row reaches one leaf, :math:`\pi_\ell = 1`, unless a value it is asked for is missing or was
    never seen: then it either stays where it is, or (``spread``) goes down all branches with the
    shares that the training rows had.

    Parameters
    ----------
    d : number of columns; categories are their numbers
    k : number of classes
    spread : whether unknown values go down all branches
    n_nodes : number of nodes

    Attributes
    ----------
    value : Parameter, ``(n_nodes, k)`` class shares; found by growing, without gradients
    attribute, threshold, first, answers, share : buffers, ``(n_nodes,)``

    Examples
    --------
    >>> import torch
    >>> e = _example()
    >>> p = torch.softmax(-e.table("y", x=torch.tensor([[0.0, 0.0], [float("nan"), 0.0]])), 1)
    >>> [[round(v, 4) for v in row] for row in p.tolist()]
    [[0.6667, 0.3333], [0.48, 0.52]]
    """

    normalised = frozenset({"y"})
    missing = frozenset({"x"})
    held = frozenset({"x"})
    value: Tensor
    attribute: Tensor
    threshold: Tensor
    first: Tensor
    answers: Tensor
    share: Tensor

    def __init__(self, d: int, k: int, spread: bool = False, n_nodes: int = 1) -> None:
        super().__init__(x=Real(d), y=Finite(k))
        self.d, self.k, self.spread = d, k, spread
        self.value = nn.Parameter(torch.full((n_nodes, k), 1.0 / k), requires_grad=False)
        for name in ("attribute", "first"):
            self.register_buffer(name, torch.full((n_nodes,), -1, dtype=torch.int64))
        self.register_buffer("answers", torch.zeros(n_nodes, dtype=torch.int64))
        for name in ("threshold", "share"):
            self.register_buffer(name, torch.zeros(n_nodes))

    def config(self) -> dict[str, Any]:
        return {"d": self.d, "k": self.k, "spread": self.spread, "n_nodes": len(self.value)}

    def set(self, root: Branch) -> None:
        """Take this tree."""
        nodes, firsts, share = [root], [], [1.0]
        for node in nodes:  # grows while it is walked: children of a node stand together
            firsts.append(len(nodes) if node.children else -1)
            nodes.extend(node.children)
            share.extend(node.shares.tolist())
        device, dtype = self.value.device, self.value.dtype
        value = np.array([node.counts / node.counts.sum() for node in nodes])
        self.value = nn.Parameter(torch.from_numpy(value).to(device, dtype), requires_grad=False)
        self.threshold = torch.tensor(
            [node.threshold for node in nodes], dtype=dtype, device=device
        )
        self.share = torch.tensor(share, dtype=dtype, device=device)
        self.attribute = torch.tensor([node.attribute for node in nodes], device=device)
        self.first = torch.tensor(firsts, device=device)
        self.answers = torch.tensor([len(node.children) for node in nodes], device=device)

    @torch.no_grad()
    def probabilities(self, x: Tensor) -> Tensor:
        """Class shares of the leaves that a row reaches, ``(B, k)``."""
        out = torch.zeros(len(x), self.k, dtype=self.value.dtype, device=x.device)
        one = torch.ones(len(x), dtype=out.dtype, device=x.device)
        stack = [(0, torch.arange(len(x), device=x.device), one)]
        while stack:
            v, rows, weight = stack.pop()
            if not len(rows):
                continue
            n = int(self.answers[v])
            if n == 0:
                out[rows] += weight[:, None] * self.value[v]
                continue
            at = x[rows, int(self.attribute[v])]
            numeric = not bool(torch.isnan(self.threshold[v]))
            known = ~torch.isnan(at)
            if not numeric:
                known &= (at >= 0) & (at < n)
            if not self.spread:
                out[rows[~known]] += weight[~known, None] * self.value[v]
            for c in range(n):
                goes = (at <= self.threshold[v]) == (c == 0) if numeric else at == c
                child = int(self.first[v]) + c
                stack.append((child, rows[known & goes], weight[known & goes]))
                if self.spread:
                    stack.append((child, rows[~known], weight[~known] * self.share[child]))
        return out

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return self.energies(x).gather(1, y[:, None]).squeeze(1)

    @offers.table("y")
    def energies(self, x: Tensor) -> Tensor:
        return -self.probabilities(x).log()
