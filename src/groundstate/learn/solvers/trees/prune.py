r"""Minimal cost-complexity pruning: give up branches whose gain per leaf is below α.

For a node t with branch :math:`T_t`, the cost per leaf is
:math:`\alpha_t = (R(t) - R(T_t)) / (|T_t| - 1)` with :math:`R` = impurity × share of the weight.
The weakest node is cut first, as often as needed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from groundstate.energy.trees.nodes import Tree

F64 = NDArray[np.float64]


def pruning_path(tree: Tree) -> tuple[F64, F64, list[NDArray[np.int64]]]:
    """Costs per leaf at which branches fall, the summed leaf impurity after each, and the nodes."""
    n = tree.n_nodes
    share = tree.weight / tree.weight[0]
    own = tree.impurity * share
    leaf = tree.feature < 0
    alive = np.ones(n, bool)
    alphas, totals, cuts = [0.0], [float(own[leaf].sum())], [np.empty(0, np.int64)]
    inner = ~leaf
    while inner[0]:
        below, leaves = own.copy(), np.ones(n)
        for v in range(n - 1, -1, -1):  # children have larger numbers
            if inner[v]:
                below[v] = below[tree.left[v]] + below[tree.right[v]]
                leaves[v] = leaves[tree.left[v]] + leaves[tree.right[v]]
        cost = np.full(n, np.inf)
        at = np.flatnonzero(inner & alive)
        cost[at] = (own[at] - below[at]) / (leaves[at] - 1)
        weakest = int(np.argmin(cost))
        alpha = max(float(cost[weakest]), 0.0)
        _kill(tree, weakest, inner, alive)
        alphas.append(alpha)
        totals.append(float(own[alive & ~inner].sum()))
        cuts.append(np.array([weakest]))
    return np.array(alphas), np.array(totals), cuts


def _kill(tree: Tree, v: int, inner: NDArray[np.bool_], alive: NDArray[np.bool_]) -> None:
    stack = [v]
    while stack:
        u = stack.pop()
        if inner[u]:
            stack += [int(tree.left[u]), int(tree.right[u])]
        inner[u] = False
        alive[u] = u == v


def pruned(tree: Tree, alpha: float) -> Tree:
    """The smallest subtree of lowest cost R + α·leaves."""
    alphas, _, cuts = pruning_path(tree)
    inner, alive = tree.feature >= 0, np.ones(tree.n_nodes, bool)
    for cost, nodes in zip(alphas[1:], cuts[1:]):
        if cost > alpha:
            break
        for v in nodes:
            _kill(tree, int(v), inner, alive)
    keep = np.flatnonzero(alive)
    place = np.full(tree.n_nodes, -1)
    place[keep] = np.arange(len(keep))
    cut = ~inner[keep]
    return Tree(
        np.where(cut, -1, tree.feature[keep]),
        np.where(cut, 0.0, tree.threshold[keep]),
        np.where(cut, -1, place[tree.left[keep]]),
        np.where(cut, -1, place[tree.right[keep]]),
        tree.nan_left[keep] & ~cut,
        tree.value[keep],
        tree.weight[keep],
        tree.impurity[keep],
        tree.rows[keep],
        {int(place[v]): m for v, m in tree.categories.items() if place[v] >= 0 and inner[v]},
        tree.column,
    )
