"""What trees, forests and boosting share: limits of growth, questions about leaves, importances."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.base import is_classifier
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, RealNotInt, StrOptions
from groundstate.energy.trees.leaves import TreeClassEnergy
from groundstate.energy.trees.outputs import TreeOutputsEnergy
from groundstate.learn.solvers.trees.rows import TreeLimits
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


def tried_columns(model: Any, d: int) -> int | None:
    """How many columns a node tries, None for all."""
    given = model.max_features
    if getattr(model, "preset", None) == "breiman":
        return max(1, int(math.sqrt(d)) if is_classifier(model) else d // 3)
    if given is None:
        return None
    if given == "sqrt":
        return max(1, int(math.sqrt(d)))
    if given == "log2":
        return max(1, int(math.log2(d)))
    if isinstance(given, Integral):
        return min(int(given), d)
    return max(1, int(given * d))


def tree_limits(
    model: Any,
    X: Tensor,
    weight: Tensor | None,
    splitter: str,
    drawn: Callable[[float], float] = float,
) -> TreeLimits:
    """Parameters of an estimator as settings of a grower; ``drawn`` rows of all are in a tree."""
    n, d = X.shape
    unit = getattr(model, "_unit", 1.0)  # what class weights make of the weight of a row
    mass = n if weight is None else float(weight.sum())
    total = mass / unit
    split: Any = model.min_samples_split
    leaf: Any = model.min_samples_leaf
    if getattr(model, "preset", None) == "breiman" and not is_classifier(model):
        split = max(split, 6)  # nodes of up to five rows stay whole
    signs = getattr(model, "monotonic_cst", None)
    rising = None if signs is None else tuple(int(s) for s in signs)
    if rising is not None:
        _check_signs(model, rising, d)
    split = float(split) if isinstance(split, Integral) else max(2.0, math.ceil(split * total))
    leaf = float(leaf) if isinstance(leaf, Integral) else float(math.ceil(leaf * total))
    share = model.min_weight_fraction_leaf
    if getattr(model, "class_weight", None) is not None:  # limits are of rows, not of classes
        leaf, share = 1.0, max(share, leaf / drawn(total) if leaf > 1 else 0.0)
        split = split * unit / _counted(weight)
    return TreeLimits(
        model.criterion,
        splitter,
        model.max_depth,
        split,
        leaf,
        share,
        tried_columns(model, d),
        model.max_leaf_nodes,
        model.min_impurity_decrease,
        rising,
    )


def _check_signs(model: Any, rising: tuple[int, ...], d: int) -> None:
    if len(rising) != d:
        raise ValueError(f"monotonic_cst has {len(rising)} entries, but X has {d} features")
    if not set(rising) <= {-1, 0, 1}:
        raise ValueError(f"monotonic_cst holds {sorted(set(rising))}; use -1, 0 and 1")
    many = not getattr(model, "_flat_target", True)
    if is_classifier(model):
        many = model._many or len(model.classes_) > 2
    if many and any(rising):
        raise ValueError("monotonic_cst needs two classes or one target")


def _counted(weight: Tensor | None) -> float:
    """What a grower takes for the weight of one row: one for counts, else the average."""
    if weight is None or bool((weight == weight.round()).all()):
        return 1.0
    return float(weight.sum() / (weight > 0).sum())


def apply(model: Any, X: Any) -> Any:
    """Number of the leaf of each row, within its tree; ``(n_samples,)`` or one per tree."""
    x, home = model._rows(X)
    leaves = model.energy_.nodes.apply_rows(x) - model.energy_.nodes.start[:-1]
    return home.give(leaves)


def decision_path(model: Any, X: Any) -> Any:
    """Which nodes each row passes, a sparse ``(n_samples, n_nodes)`` of zeros and ones."""
    x, _ = model._rows(X)
    nodes = model.energy_.nodes
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


def tree_view(model: Any, t: int) -> TreeView:
    """One tree of a fitted model, to look at."""
    shares = isinstance(model.energy_, TreeClassEnergy)
    view = TreeView.of(model.energy_.nodes.tree(t), model.n_features_in_, shares)
    if isinstance(model.energy_, TreeOutputsEnergy):
        sizes = [len(own) for own in model.classes_]
        wide = np.zeros((len(view.value), len(sizes), max(sizes)))
        ends = np.cumsum([0, *sizes])
        for o, k in enumerate(sizes):
            wide[:, o, :k] = view.value[:, ends[o] : ends[o + 1], 0]
        view.value = wide
    return view


def importances(model: Any, trees: int, normalize: bool = True) -> NDArray[np.float64]:
    """Fall of impurity by column, averaged over trees; sums to one."""
    parts = [tree_view(model, t) for t in range(trees)]
    found = [p.compute_feature_importances(normalize) for p in parts if p.node_count > 1]
    if not found:
        return np.zeros(model.n_features_in_)
    mean: NDArray[np.float64] = np.mean(found, axis=0)
    return mean / mean.sum()
