"""What decision trees and forests share: parameters, questions about leaves, importances."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, RealNotInt, StrOptions
from groundstate.energy.trees.leaves import TreeMeanEnergy
from groundstate.energy.trees.nodes import TreeNodes
from groundstate.learn import Naive
from groundstate.learn.solvers.trees.rows import TreeLimits
from groundstate.learn.solvers.trees.solver import GrowTrees
from groundstate.models.base import EnergyEstimator, Plan
from groundstate.models.categories import Categories
from groundstate.models.roles import EnergyRegressor
from groundstate.models.traits import Traits
from groundstate.models.trees.inputs import started
from groundstate.models.trees.view import TreeView

CLASS_CRITERIA = StrOptions({"gini", "entropy", "log_loss"})
VALUE_CRITERIA = StrOptions({"squared_error", "friedman_mse", "absolute_error", "poisson"})
CONSTRAINTS: dict[str, Any] = {
    "max_depth": [Interval(Integral, 1, None, closed="left"), None],
    "min_samples_split": [
        Interval(Integral, 2, None, closed="left"),
        Interval(RealNotInt, 0.0, 1.0, closed="right"),
    ],
    "min_samples_leaf": [
        Interval(Integral, 1, None, closed="left"),
        Interval(RealNotInt, 0.0, 1.0, closed="neither"),
    ],
    "min_weight_fraction_leaf": [Interval(Real, 0.0, 0.5, closed="both")],
    "max_features": [
        Interval(Integral, 1, None, closed="left"),
        Interval(Real, 0.0, 1.0, closed="right"),
        StrOptions({"sqrt", "log2"}),
        None,
    ],
    "max_leaf_nodes": [Interval(Integral, 2, None, closed="left"), None],
    "min_impurity_decrease": [Interval(Real, 0.0, None, closed="left")],
    "ccp_alpha": [Interval(Real, 0.0, None, closed="left")],
    "monotonic_cst": ["array-like", None],
    "random_state": ["random_state"],
    "device": "no_validation",
    "callbacks": "no_validation",
}


class GrownTrees(EnergyEstimator):
    """Parameters to solver settings, and what can be asked of grown trees."""

    traits = Traits(single_columns=True)

    _categories: ClassVar[Any] = Categories()
    _allow_nan: ClassVar[bool] = True
    _accept_sparse: ClassVar[bool | str] = "dense"
    _runs_on: Any = "answers"  # trees grow on the CPU
    energy_: Any
    criterion: str
    max_depth: int | None
    min_samples_split: float
    min_samples_leaf: float
    min_weight_fraction_leaf: float
    max_features: Any
    max_leaf_nodes: int | None
    min_impurity_decrease: float
    ccp_alpha: float
    monotonic_cst: Any
    _classes: ClassVar[bool] = False
    _unit: float = 1.0  # what weights of classes make of the weight of a row, on average

    def _columns(self, d: int) -> int | None:
        given = self.max_features
        if getattr(self, "preset", None) == "breiman":
            return max(1, int(math.sqrt(d)) if self._classes else d // 3)
        if given is None:
            return None
        if given == "sqrt":
            return max(1, int(math.sqrt(d)))
        if given == "log2":
            return max(1, int(math.log2(d)))
        if isinstance(given, Integral):
            return min(int(given), d)
        return max(1, int(given * d))

    def _limits(self, X: Tensor, weight: Tensor | None, splitter: str) -> TreeLimits:
        n, d = X.shape
        mass = n if weight is None else float(weight.sum())
        total = mass / self._unit
        split: Any = self.min_samples_split
        leaf: Any = self.min_samples_leaf
        if getattr(self, "preset", None) == "breiman" and not self._classes:
            split = max(split, 6)  # nodes of up to five rows stay whole
        rising = None if self.monotonic_cst is None else tuple(int(s) for s in self.monotonic_cst)
        if rising is not None:
            self._check_signs(rising, d)
        split = float(split) if isinstance(split, Integral) else max(2.0, math.ceil(split * total))
        leaf = float(leaf) if isinstance(leaf, Integral) else float(math.ceil(leaf * total))
        share = self.min_weight_fraction_leaf
        if getattr(self, "class_weight", None) is not None:  # limits are of rows, not of classes
            drawn = self._drawn(total)
            leaf, share = 1.0, max(share, leaf / drawn if leaf > 1 else 0.0)
            split = split * self._unit / _counted(weight)
        return TreeLimits(
            self.criterion,
            splitter,
            self.max_depth,
            split,
            leaf,
            share,
            self._columns(d),
            self.max_leaf_nodes,
            self.min_impurity_decrease,
            rising,
        )

    def _drawn(self, total: float) -> float:
        """How many rows a tree sees."""
        return total

    def _check_signs(self, rising: tuple[int, ...], d: int) -> None:
        if len(rising) != d:
            raise ValueError(f"monotonic_cst has {len(rising)} entries, but X has {d} features")
        if not set(rising) <= {-1, 0, 1}:
            raise ValueError(f"monotonic_cst holds {sorted(set(rising))}; use -1, 0 and 1")
        many = not getattr(self, "_flat_target", True)
        if self._classes:  # a list: several outputs
            many = isinstance(self.classes_, list) or len(self.classes_) > 2
        if many and any(rising):
            raise ValueError("monotonic_cst needs two classes or one target")

    def _solver(self, X: Tensor, weight: Tensor | None) -> GrowTrees:
        raise TypeError(f"{type(self).__name__} must define _solver(X, weight)")

    def apply(self, X: Any) -> Any:
        """Number of the leaf of each row, within its tree; ``(n_samples,)`` or one per tree."""
        x, home = self._rows(X)
        leaves = self.energy_.nodes.apply_rows(x) - self.energy_.nodes.start[:-1]
        return home.give(leaves)

    def decision_path(self, X: Any) -> Any:
        """Which nodes each row passes, a sparse ``(n_samples, n_nodes)`` of zeros and ones."""
        x, _ = self._rows(X)
        nodes = self.energy_.nodes
        leaves = nodes.apply_rows(x).cpu().numpy()
        parent = np.full(len(nodes.feature), -1)
        inner = np.flatnonzero(nodes.feature.cpu().numpy() >= 0)
        for side in (nodes.left, nodes.right):
            parent[side.cpu().numpy()[inner]] = inner
        rows, columns = [], []
        at, row = leaves.ravel(), np.repeat(np.arange(len(leaves)), leaves.shape[1])
        while len(at):
            rows.append(row)
            columns.append(at)
            above = parent[at]
            row, at = row[above >= 0], above[above >= 0]
        place = np.concatenate(rows), np.concatenate(columns)
        return csr_matrix((np.ones(len(place[0]), np.int64), place), (len(leaves), len(parent)))

    def _view(self, t: int) -> TreeView:
        return TreeView.of(self.energy_.nodes.tree(t), self.n_features_in_, self._classes)

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Fall of impurity by column, averaged over trees; sums to one."""
        check_is_fitted(self, "energy_")
        nodes = self.energy_.nodes
        parts = [self._view(t) for t in range(nodes.n_trees)]
        found = [p.compute_feature_importances() for p in parts if p.node_count > 1]
        if not found:
            return np.zeros(self.n_features_in_)
        mean = np.mean(found, axis=0)
        return mean / mean.sum()


class GrownRegressor(GrownTrees, EnergyRegressor):
    """Trees whose leaves hold means."""

    @property
    def n_outputs_(self) -> int:
        """How many targets there are."""
        check_is_fitted(self, "energy_")
        return int(self.energy_.m)

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        assert y is not None
        m = y.shape[1]
        nodes = TreeNodes(k=m, dtype=X.dtype)
        energy = started(self, TreeMeanEnergy(X.shape[1], m, nodes))
        return Plan(energy, Naive(), self._solver(X, weight))


def _counted(weight: Tensor | None) -> float:
    """What a grower takes for the weight of one row: one for counts, else the average."""
    if weight is None or bool((weight == weight.round()).all()):
        return 1.0
    return float(weight.sum() / (weight > 0).sum())


__all__ = ["CLASS_CRITERIA", "CONSTRAINTS", "VALUE_CRITERIA", "GrownRegressor", "GrownTrees"]
