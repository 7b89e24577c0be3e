"""What functional boosting adds in a step: a tree whose leaves can be moved, or any other member."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.energy.base import Energy
from groundstate.energy.trees.descent_numba import leaves
from groundstate.energy.trees.nodes import Tree, TreeNodes
from groundstate.errors import Unsupported
from groundstate.learn.solvers.trees.prune import pruned
from groundstate.learn.solvers.trees.rows import TreeLimits, TreeRows


class Piece(Protocol):
    """One fitted h."""

    values: Tensor  # (n,) h of the training rows

    def leaves(self) -> tuple[Tensor, int]:
        """The leaf of each row, and how many numbers leaves have."""
        ...

    def move(self, values: Tensor) -> None:
        """New values of the leaves."""
        ...

    def commit(self, energy: Any, weight: float, score: int) -> None:
        """Add ``weight`` times this to a score of an additive energy."""
        ...


class Base(Protocol):
    """Fits h to residuals by least squares."""

    def begin(self, x: Tensor, weight: Tensor) -> None:
        """Look at the rows once."""
        ...

    def fit(self, r: Tensor, weight: Tensor, key: Key) -> Piece:
        """h for residuals ``(n,)``."""
        ...


class TreePiece:
    """A tree grown on residuals, and the leaf of every row."""

    def __init__(self, tree: Tree, at: NDArray[np.int64], kept: list[Tree]) -> None:
        self.tree, self.at, self.kept = tree, torch.from_numpy(at), kept
        self.values = torch.from_numpy(tree.value[:, 0])[self.at]

    def leaves(self) -> tuple[Tensor, int]:
        return self.at, self.tree.n_nodes

    def move(self, values: Tensor) -> None:
        ends = self.tree.feature < 0
        self.tree.value[ends, 0] = values.numpy()[ends]
        self.values = values[self.at]

    def commit(self, energy: Any, weight: float, score: int) -> None:
        self.tree.value[:] *= weight
        self.kept.append(replace(self.tree, column=score))


class TreeBase:
    """Regression trees; the table is sorted once for all of them."""

    def __init__(
        self,
        limits: TreeLimits | None = None,
        categories: tuple[int, ...] | None = None,
        kept: list[Tree] | None = None,
        prune: float = 0.0,
    ) -> None:
        self.limits = TreeLimits("squared_error", max_depth=3) if limits is None else limits
        self.categories, self.prune = categories, prune
        self.trees: list[Tree] = [] if kept is None else list(kept)

    def begin(self, x: Tensor, weight: Tensor) -> None:
        X = x.cpu().contiguous().numpy()
        zero = np.zeros((len(X), 1))
        self.x = x.cpu().contiguous()
        self.whole = bool((weight == weight.round()).all())
        self.rows = TreeRows(X, zero, weight.numpy(), self.limits, 0, self.categories)
        self.nodes = TreeNodes().to(x.dtype)

    def fit(self, r: Tensor, weight: Tensor, key: Key) -> Piece:
        self.rows.set_targets(r.numpy()[:, None])
        tree = self._counted(weight.numpy()).grow(weight.numpy(), key.low)
        tree = pruned(tree, self.prune) if self.prune > 0 else tree
        return TreePiece(tree, leaves_of(tree, self.x, self.nodes), self.trees)

    def _counted(self, weight: NDArray[np.float64]) -> TreeRows:
        """The rows, for parts of counts: limits of weight that would be of rows on average."""
        if not self.whole or bool((weight == np.rint(weight)).all()):
            return self.rows
        limits, total = self.limits, float(weight.sum())
        least = limits.min_leaf / total if limits.min_leaf > 1 else 0.0
        unit = np.count_nonzero(weight) / total if limits.min_split > 2 else 1.0
        own = copy(self.rows)
        own.limits = replace(
            limits,
            min_leaf=1.0,
            min_share=max(limits.min_share, least),
            min_split=limits.min_split * unit,
        )
        return own


def leaves_of(tree: Tree, x: Tensor, spare: TreeNodes) -> NDArray[np.int64]:
    """The leaf of each row, without making a module of the tree where it has no categories."""
    if tree.categories:
        spare.set([tree])
        return spare.apply_rows(x)[:, 0].numpy()
    X, n = x.numpy(), tree.n_nodes
    out, none = np.empty((len(X), 1), np.int64), np.full(n, -1, np.int32)
    narrow = [part.astype(np.int32) for part in (tree.feature, tree.left, tree.right)]
    leaves(X, 0, len(X), np.zeros(1, np.int64), narrow[0], tree.threshold.astype(X.dtype),
           narrow[1], narrow[2], tree.nan_left, none, none, np.empty(0, np.int64), out)  # fmt: skip
    return out[:, 0]


class MemberPiece:
    """A fitted member and what it answers on the rows."""

    def __init__(self, member: Any, x: Tensor) -> None:
        self.member, self.x = member, x
        self._value()

    def _value(self) -> None:
        argmin = self.member.ability("argmin", "y")
        self.values = argmin(x=self.x).detach().double().cpu()[:, 0]

    def leaves(self) -> tuple[Tensor, int]:
        ask = getattr(self.member, "leaves", None)
        at = None if ask is None else ask(self.x)
        if at is None:
            raise Unsupported(
                "line_search='leaf' sets the leaves of trees, and this member has none; use "
                "'exact' or 'none'"
            )
        return at, int(at.max()) + 1

    def move(self, values: Tensor) -> None:
        self.member.move(values)
        self._value()

    def commit(self, energy: Any, weight: float, score: int) -> None:
        energy.put(self.member, weight, score)


class MemberBase:
    """Any fit of values, ``member(x, y, weight, key) -> Energy`` with an exact minimum over y."""

    def __init__(self, member: Callable[[Tensor, Tensor, Tensor | None, Key], Energy]) -> None:
        self.member = member

    def begin(self, x: Tensor, weight: Tensor) -> None:
        self.x = x

    def fit(self, r: Tensor, weight: Tensor, key: Key) -> Piece:
        y = r[:, None].to(self.x.device, self.x.dtype)
        w = None if bool((weight == 1).all()) else weight.to(self.x.device, self.x.dtype)
        with torch.enable_grad():  # members may learn by gradients
            fitted = self.member(self.x, y, w, key)
        return MemberPiece(fitted, self.x)
