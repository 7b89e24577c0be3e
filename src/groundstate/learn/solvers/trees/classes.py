"""Trees of classes that weigh differently, and of several labels at once."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import one_hot

from groundstate.compute.weight_line.line import WeightLine
from groundstate.energy.trees.leaves import TreeMeanEnergy
from groundstate.energy.trees.nodes import Tree
from groundstate.energy.trees.outputs import TreeOutputsEnergy
from groundstate.learn.base import History, Problem
from groundstate.learn.rules.naive import Naive
from groundstate.learn.rules.softmin import SoftMin
from groundstate.learn.solvers.trees.solver import GrowTrees
from groundstate.registry import solvers

F64 = NDArray[np.float64]
FAINT = 2.0**-40  # share that a class has where it is absent, whose logarithm is needed


@dataclass(frozen=True)
class WeighClasses(GrowTrees):
    r"""`GrowTrees` on bootstrap draws in which a row of class c counts :math:`a_c` times.

    The draws do not look at the classes: with weights inside them, a rare class of large weight
    would be in every bag and never outside.

    Parameters
    ----------
    labels : (n,) class of each row, or (n, m) for several outputs, whose factors are multiplied
    factor : (n,) a of each row; None balances each bag, :math:`a_c = n / (k\,n_c)` by its counts

    Examples
    --------
    >>> import numpy as np
    >>> WeighClasses(labels=np.array([0, 0, 0, 1])).weighed(np.array([1.0, 0.0, 2.0, 1.0]))
    array([0.66666667, 0.        , 1.33333333, 2.        ])
    """

    labels: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    factor: F64 | None = None

    def weighed(self, counts: F64) -> F64:
        """Draws of each row times its factor, ``(n,)``."""
        if self.factor is not None:
            return counts * self.factor
        out = counts
        for label in self.labels.reshape(len(counts), -1).T:
            mass = np.bincount(label, counts)
            seen = np.maximum(mass, 1e-300)  # rows of a class that was not drawn count zero anyway
            out = out * (mass.sum() / (np.count_nonzero(mass) * seen))[label]
        return out

    def _bag(self, line: WeightLine, weight: F64, key: Any) -> F64:
        return self.weighed(super()._bag(line, weight, key))


def _example(energy: Any) -> GrowOutputs:
    from groundstate.learn.solvers.trees.rows import TreeLimits

    return GrowOutputs(GrowTrees(TreeLimits("gini", max_depth=4)))


@solvers.register(formula=r"\max \sum_o S_o(L) + S_o(R) - S_o(L \cup R)\ \text{per cut}",
                  make=lambda e: _example(e))  # fmt: skip
@dataclass(frozen=True)
class GrowOutputs:
    r"""Trees for several labels at once, by the mean impurity of the outputs.

    Labels become indicators, and impurities those of values: the Gini impurity is the variance of
    the indicators, :math:`\sum_c p_c(1 - p_c)`, and the entropy is their Poisson deviance,
    :math:`-\sum_c p_c\log p_c`.

    Parameters
    ----------
    solver : grows the trees; its criterion is one for classes
    """

    solver: GrowTrees = field(default_factory=GrowTrees)

    def reason_against(self, problem: Problem) -> str | None:
        if not isinstance(problem.energy, TreeOutputsEnergy):
            return "it grows the trees of several labels"
        if self.solver.limits.criterion not in ("gini", "entropy", "log_loss"):
            return f"the criterion {self.solver.limits.criterion!r} is for values"
        if not isinstance(problem.rule, SoftMin | Naive):
            return "leaves minimise the summed energy: use SoftMin or Naive"
        if not problem.is_resident or set(problem.names) != {"x", "y"}:
            return "it needs resident x and y"
        return "its penalty is prune=" if problem.penalty is not None else None

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        energy: Any = problem.energy
        x, y = problem.resident["x"], problem.resident["y"]
        sizes, solver = energy.sizes, self.solver
        gini = solver.limits.criterion == "gini"
        faint = 0.0 if gini else FAINT
        parts = [one_hot(y[:, o], k) for o, k in enumerate(sizes)]
        target = torch.cat(parts, 1).double() + faint
        # impurities of values are means over their columns, here of all classes of all outputs
        unit = len(sizes) / sum(sizes) * (1.0 if gini else math.log(2))
        limits = replace(
            solver.limits,
            criterion="squared_error" if gini else "poisson",
            min_decrease=solver.limits.min_decrease * unit,
        )
        kept = energy.nodes.n_trees if energy.nodes.start[-1] > energy.nodes.n_trees else 0
        inner = TreeMeanEnergy(energy.d, sum(sizes), energy.nodes)
        history = replace(solver, limits=limits, prune=solver.prune * unit).run(
            Problem(inner, Naive(), {"x": x, "y": target}, problem.sample_weight, None,
                    problem.callbacks, problem.key)
        )  # fmt: skip
        history.solver = type(self).__name__
        trees = [energy.nodes.tree(t) for t in range(energy.nodes.n_trees)]
        fresh = kept if solver.continued else 0
        energy.nodes.set(
            [*trees[:fresh], *(_shown(tree, sizes, unit, faint) for tree in trees[fresh:])]
        )
        return history


def _shown(tree: Tree, sizes: tuple[int, ...], unit: float, faint: float) -> Tree:
    """A tree whose values are shares that sum to one, and whose impurity is that of labels."""
    value = np.where(tree.value < 2 * faint, 0.0, tree.value - faint)
    for part in np.split(np.arange(value.shape[1]), np.cumsum(sizes)[:-1]):
        value[:, part] /= value[:, part].sum(1, keepdims=True)
    return replace(tree, value=value, impurity=tree.impurity / unit)
