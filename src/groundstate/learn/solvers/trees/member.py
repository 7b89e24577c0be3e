"""Trees as members of a committee: the table is sorted once for all of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.energy.base import Energy
from groundstate.energy.trees.leaves import TreeClassEnergy, TreeMeanEnergy
from groundstate.learn.solvers.trees.rows import TreeLimits, TreeRows


class GrownMember:
    """Grows one tree per call, ``member(x, y, weight, key) -> Energy``.

    Parameters
    ----------
    limits : of a tree; one cut by default
    categories : (d,) number of categories of each column, 0 for numbers
    weight : (n,) of the table, of which members see draws; None: that of the first call
    """

    def __init__(
        self,
        limits: TreeLimits | None = None,
        categories: tuple[int, ...] | None = None,
        weight: NDArray[np.float64] | None = None,
    ) -> None:
        self.limits = TreeLimits(max_depth=1) if limits is None else limits
        self.categories, self.weight = categories, weight
        self.kept: tuple[Tensor, TreeRows] | None = None  # one object, so that threads agree

    def __call__(self, x: Tensor, y: Tensor, weight: Tensor | None, key: Key) -> Energy:
        w = np.ones(len(x)) if weight is None else weight.double().cpu().numpy()
        classes = 0 if y.is_floating_point() else int(y.max()) + 1
        kept = self.kept
        if kept is None or kept[0] is not x:
            X, base = x.cpu().contiguous().numpy(), w if self.weight is None else self.weight
            rows = TreeRows(X, y.cpu().numpy(), base, self.limits, classes, self.categories)
            kept = self.kept = (x, rows)
        tree = kept[1].grow(w, key.fold("columns").low)
        energy: TreeClassEnergy | TreeMeanEnergy
        if classes:
            energy = TreeClassEnergy(x.shape[1], classes)
        else:
            energy = TreeMeanEnergy(x.shape[1], y.shape[1])
        energy.to(x.device, x.dtype)
        energy.nodes.set([tree])
        return energy
