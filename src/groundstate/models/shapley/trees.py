r"""Exact Shapley values of trees, forests and boosting.

Interventional: the background rows say what an absent column looks like,
:math:`v(S) = E_b f(x_S, b_{\bar S})`, so that a column which the model never asks for gets exactly zero.
Several coded columns of one column of the table are one player, which no average of single values
would give.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from math import lgamma
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.energy.trees.additive import Additive, AdditiveClassEnergy, AdditiveEnergy
from groundstate.energy.trees.additive_losses import Poisson
from groundstate.energy.trees.boosted import BoostedClassEnergy, BoostedEnergy
from groundstate.energy.trees.leaves import TreeClassEnergy, TreeMeanEnergy
from groundstate.energy.trees.nodes import TreeNodes
from groundstate.errors import NotApplicable

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class TreeSum:
    """Scores that are sums of trees: ``start + factor · Σ_t v``, one per output, and their units."""

    nodes: TreeNodes
    factor: float
    start: Floats  # (K,)
    units: str


@singledispatch
def tree_sum(energy: Any) -> TreeSum:
    """The sum of trees that an energy reads its answers from."""
    raise NotApplicable(f"{type(energy).__name__} is no sum of trees with one score per output")


@tree_sum.register
def _(energy: TreeClassEnergy) -> TreeSum:
    return TreeSum(energy.nodes, 1 / energy.nodes.n_trees, np.zeros(energy.k), "probability")


@tree_sum.register
def _(energy: TreeMeanEnergy) -> TreeSum:
    return TreeSum(energy.nodes, 1 / energy.nodes.n_trees, np.zeros(energy.m), "value")


@tree_sum.register
def _(energy: BoostedClassEnergy) -> TreeSum:
    return TreeSum(energy.nodes, 1.0, _start(energy), _odds(len(energy.b)))


@tree_sum.register
def _(energy: BoostedEnergy) -> TreeSum:
    return TreeSum(energy.nodes, 1.0, _start(energy), "log value" if energy.log_link else "value")


@tree_sum.register
def _(energy: AdditiveEnergy) -> TreeSum:
    _alone(energy)
    units = "log value" if isinstance(energy.loss, Poisson) else "value"
    return TreeSum(energy.nodes, 1.0, _start(energy), units)


@tree_sum.register
def _(energy: AdditiveClassEnergy) -> TreeSum:
    _alone(energy)
    return TreeSum(energy.nodes, 1.0, _start(energy), _odds(len(energy.b)))


def _start(energy: Any) -> Floats:
    found: Floats = energy.b.detach().cpu().numpy().astype(np.float64)
    return found


def _odds(outputs: int) -> str:
    return "log-odds" if outputs == 1 else "score"


def _alone(energy: Additive) -> None:
    if len(energy.members) or energy.first is not None:
        raise NotApplicable("members that are no trees, or an energy to start from, are in the sum")


def tree_values(
    found: TreeSum, x: Floats, back: Floats, weight: Floats, players: NDArray[np.intp], d: int
) -> tuple[Floats, Floats]:
    """Shapley values (n, d, K) and the mean over the background (K,)."""
    import torch

    from groundstate.models.shapley.trees_numba import MOST, trees

    nodes, k = found.nodes, len(found.start)
    dtype = nodes.threshold.numpy().dtype if nodes.threshold.device.type == "cpu" else np.float64
    held = nodes.cpu() if nodes.threshold.device.type != "cpu" else nodes
    rows, rest = (np.ascontiguousarray(v, dtype) for v in (x, back))
    phi = np.zeros((len(x), d, k))
    a = np.arange(MOST + 1.0)
    log = np.array([lgamma(v + 1) for v in range(2 * MOST + 3)])
    whole = a[:, None] + a[None] + 1
    factor = np.exp(log[: MOST + 1, None] + log[None, : MOST + 1] - log[whole.astype(int)])
    most = trees(
        rows, rest, weight / weight.sum(), players, *held._arrays(),
        held.value.detach().numpy().astype(np.float64), held.column.numpy(), factor,
        _depth(held) + 2, phi,
    )  # fmt: skip
    if most > MOST:
        raise NotApplicable(f"a path asks for more than {MOST} columns")
    with torch.no_grad():
        mean = held(torch.from_numpy(rest), k).double().numpy()
    base = (weight / weight.sum()) @ mean
    return found.factor * phi, found.start + found.factor * base


def _depth(nodes: TreeNodes) -> int:
    """The longest path of all trees, in edges."""
    left, right = nodes.left.numpy(), nodes.right.numpy()
    at, depth = nodes.start[:-1].numpy(), 0
    while True:
        at = at[left[at] >= 0]
        if not len(at):
            return depth
        at, depth = np.concatenate([left[at], right[at]]), depth + 1
