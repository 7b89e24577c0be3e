r"""Growing an isolation forest: random cuts of small samples of the rows."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from groundstate.compute.random import Key
from groundstate.compute.rows.distinct import distinct_rows
from groundstate.compute.weight_line.hashing import row_hash
from groundstate.energy.trees.isolation import IsolationEnergy, mean_path
from groundstate.energy.trees.nodes import Tree
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run


@dataclass(frozen=True)
class Isolation:
    r"""Trees of random cuts between the ends of random columns, each of a sample of the rows, to a depth
    of :math:`\lceil\log_2\psi\rceil`.

    The value of a leaf is its depth and the mean path :math:`c(n)` that its n rows would still go.

    Parameters
    ----------
    n_trees : trees in the end
    sample : ψ, the rows of a tree
    columns : of a tree
    bootstrap : whether rows are drawn with replacement
    before : trees that are there already
    found : what `samples` found, where it is known
    """

    n_trees: int = 100
    sample: int = 256
    columns: int | None = None
    bootstrap: bool = False
    before: tuple[Tree, ...] = ()
    found: Any = None

    def reason_against(self, problem: Problem) -> str | None:
        if not isinstance(problem.energy, IsolationEnergy):
            return "it is for isolation forests"
        if not problem.is_resident or set(problem.names) != {"x"}:
            return "it needs resident x alone"
        return "it takes no penalty" if problem.penalty is not None else None

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        energy = problem.energy
        assert isinstance(energy, IsolationEnergy)
        start = time.perf_counter()
        history = History(solver="Isolation", converged=True, stop="grown")
        tensor = problem.resident["x"].detach()
        x = np.ascontiguousarray(tensor.cpu().numpy())
        found = self.found or self.samples(x, problem.sample_weight, problem.key)
        trees = list(self.before)
        with Monitor(problem.callbacks, Run(problem, history, self.n_trees)) as monitor:
            for t in range(len(self.before), self.n_trees):
                rows, weight, columns = found(t)
                key = problem.key.fold("cuts", t)
                trees.append(self._tree(x, rows, weight, columns, key))
                history.n_iter = t + 1
                if monitor.epoch(float("nan")):
                    break
        energy.nodes.set(trees)
        energy.unit.fill_(float(mean_path(self.sample)))
        history.seconds.append(time.perf_counter() - start)
        return history

    def samples(self, x: NDArray[Any], weight: Any, key: Key) -> Any:
        """The rows, weights and columns of each tree: different rows, in the order of their content."""
        w = None if weight is None else weight.detach().cpu().double().numpy()
        index, weights = distinct_rows(row_hash(x), w)
        line = np.cumsum(weights)  # rows in the order of their content, each as long as its weight
        every, units = np.arange(x.shape[1]), max(1, round(float(line[-1])))

        def of(t: int) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
            rng = key.fold("rows", t).numpy()
            if self.sample >= units and not self.bootstrap:
                held, drawn = np.arange(len(line)), weights
            else:  # points on the line, in different units of it where none is drawn twice
                points = rng.choice(units, self.sample, replace=self.bootstrap) + 0.5
                at = np.searchsorted(line, points * (line[-1] / units))
                held, many = np.unique(at, return_counts=True)
                drawn = many.astype(np.float64)
            columns = every
            if self.columns is not None and self.columns < len(every):
                mixed = key.fold("columns", t).numpy().permutation(every)
                columns = np.sort(mixed[: self.columns])
            return index[held], drawn, columns

        return of

    def _tree(
        self, x: NDArray[Any], rows: NDArray[np.int64], weight: NDArray[np.float64],
        columns: NDArray[np.int64], key: Key,
    ) -> Tree:  # fmt: skip
        from groundstate.learn.solvers.trees.isolation_numba import isolate

        size = 2 * len(rows)
        depth = math.ceil(math.log2(max(self.sample, 2)))
        feature, left, right, level = (np.empty(size, np.int64) for _ in range(4))
        threshold, total, nan_left = np.empty(size), np.empty(size), np.empty(size, np.bool_)
        n = isolate(
            x, rows.copy(), weight.copy(), columns, depth, np.uint64(key.low), feature, threshold,
            left, right, nan_left, total, level,
        )  # fmt: skip
        value = np.where(feature[:n] < 0, level[:n] + mean_path(total[:n]), 0.0)
        return Tree(
            feature[:n], threshold[:n], left[:n], right[:n], nan_left[:n], value[:, None], total[:n],
            np.zeros(n), np.round(total[:n]).astype(np.int64), {}, 0,
        )  # fmt: skip
