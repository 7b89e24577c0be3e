r"""Solvers of tree energies: one tree, or many on weighted copies of the rows."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from groundstate.compute.thread_policy import given_threads
from groundstate.compute.weight_line.line import WeightLine
from groundstate.energy.trees.leaves import TreeClassEnergy, TreeMeanEnergy
from groundstate.energy.trees.nodes import Tree, TreeNodes
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.rules.naive import Naive
from groundstate.learn.rules.softmin import SoftMin
from groundstate.learn.solvers.trees.prune import pruned
from groundstate.learn.solvers.trees.rows import TreeLimits, TreeRows
from groundstate.registry import solvers

F64 = NDArray[np.float64]


def _example(energy: Any) -> GrowTrees:
    classes = isinstance(energy, TreeClassEnergy)
    return GrowTrees(TreeLimits("gini" if classes else "squared_error", max_depth=4))


@solvers.register(
    formula=r"\max\ S(L) + S(R) - S(L \cup R)\ \text{per cut}", make=lambda e: _example(e)
)
@dataclass(frozen=True)
class GrowTrees:
    r"""Grow trees greedily: every node takes the cut that lowers the impurity most.

    A leaf holds the minimiser of the summed energy of its rows: class shares, or means. Several
    trees see bootstrap weights drawn on the weight line, so that a row of weight 2 is two rows.

    Parameters
    ----------
    limits : of a tree
    n_trees : how many
    bootstrap : whether each tree sees rows drawn with replacement
    draws : how many are drawn; None: as many as there are rows
    categories : (d,) number of categories of each column, 0 for numbers
    prune : complexity cost per leaf of minimal cost-complexity pruning
    out_of_bag : whether to average, for each row, the trees that did not see it
    continued : keep the trees that the energy has
    threads : None takes torch's number
    """

    limits: TreeLimits = field(default_factory=TreeLimits)
    n_trees: int = 1
    bootstrap: bool = False
    draws: int | None = None
    categories: tuple[int, ...] | None = None
    prune: float = 0.0
    out_of_bag: bool = False
    continued: bool = False
    threads: int | None = None

    def reason_against(self, problem: Problem) -> str | None:
        energy = problem.energy
        if not isinstance(energy, TreeClassEnergy | TreeMeanEnergy):
            return "it grows the trees of a tree energy"
        classes = isinstance(energy, TreeClassEnergy)
        if classes != (self.limits.criterion in ("gini", "entropy", "log_loss")):
            return f"the criterion {self.limits.criterion!r} is for {'values' if classes else 'classes'}"
        if not isinstance(problem.rule, SoftMin | Naive):
            return "leaves minimise the summed energy: use SoftMin or Naive"
        if not problem.is_resident or set(problem.names) != {"x", "y"}:
            return "it needs resident x and y"
        if problem.penalty is not None:
            return "its penalty is prune="
        return None

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        start = time.perf_counter()
        history = History(converged=True, solver="GrowTrees", stop="grown")
        energy: Any = problem.energy
        X = problem.resident["x"].cpu().contiguous().numpy()
        y = problem.resident["y"].cpu().numpy()
        weight = problem.sample_weight
        w = None if weight is None else weight.cpu().double().numpy()
        threads = self.threads or given_threads()
        classes = energy.k if isinstance(energy, TreeClassEnergy) else 0
        rows = TreeRows(X, y, w, self.limits, classes, self.categories, threads)
        line = WeightLine.of(X, y, weights=w) if self.bootstrap else None
        kept: list[Tree] = []
        if self.continued and energy.nodes.start[-1] > energy.nodes.n_trees:
            kept = [energy.nodes.tree(t) for t in range(energy.nodes.n_trees)]

        def tree(t: int) -> Tree:
            if line is None and not self.limits.is_random:
                grown = rows.grow(rows.weight, 0)
            else:
                key = problem.key.fold("tree", t)
                own = rows.weight if line is None else self._bag(line, rows.weight, key)
                grown = rows.grow(own, key.fold("columns").low)
            return pruned(grown, self.prune) if self.prune > 0 else grown

        with Monitor(problem.callbacks, Run(problem, history, self.n_trees)) as monitor:
            trees = kept[: self.n_trees]
            step = self.n_trees if not problem.callbacks else max(1, threads)
            pooled = threads > 1 and self.n_trees > 1
            with ThreadPoolExecutor(threads) if pooled else nullcontext() as pool:
                while len(trees) < self.n_trees:
                    ahead = range(len(trees), min(len(trees) + step, self.n_trees))
                    trees += list(pool.map(tree, ahead) if pool else map(tree, ahead))
                    history.seconds.append(time.perf_counter() - start)
                    if problem.callbacks:
                        energy.nodes.set(trees)
                        history.objective.append(_finite(problem))
                    if monitor.epoch(history.objective[-1] if problem.callbacks else float("nan")):
                        break
            energy.nodes.set(trees)
        history.n_iter = len(trees)
        if self.out_of_bag and line is not None:
            keys = [problem.key.fold("tree", t) for t in range(len(trees))]
            bags = (self._bag(line, rows.weight, key) for key in keys)
            history.extra["out_of_bag"] = self._outside(trees, bags, problem, rows)
        return history

    def _bag(self, line: WeightLine, weight: F64, key: Any) -> F64:
        return line.bootstrap(key.fold("bootstrap"), self.draws).astype(np.float64)

    def _outside(self, trees: list[Tree], bags: Any, problem: Problem, rows: TreeRows) -> Any:
        """Mean value of the trees that did not see a row, ``(n, k)``; NaN where all did."""
        x = problem.resident["x"].cpu()
        total = np.zeros((len(x), trees[0].value.shape[1]))
        count = np.zeros(len(x))
        nodes = TreeNodes(k=total.shape[1]).to(x.dtype)
        for tree, bag in zip(trees, bags):
            outside = np.flatnonzero(bag == 0)
            if len(outside):
                nodes.set([tree])
                total[outside] += nodes(x[outside], total.shape[1]).double().numpy()
                count[outside] += 1
        with np.errstate(invalid="ignore"):
            return total / count[:, None]


def _finite(problem: Problem) -> float:
    """The objective, which is infinite while a pure leaf forbids a class that a row has."""
    return float(problem.objective())
