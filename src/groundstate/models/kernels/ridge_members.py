"""Kernel ridge regression on many folds and with many strengths, from one Gram matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from groundstate.compute.weight_line.hashing import row_hash
from groundstate.energy.kernels.squared import KernelSquaredEnergy
from groundstate.errors import NotApplicable
from groundstate.learn.solvers.gp.kernel_ridge_folds import ridge_folds
from groundstate.math.kernels import Geometry
from groundstate.models.kernels.pairwise import ridge_kernel
from groundstate.models.population.members import F64, Members, Together

ROWS = 15_000  # of one Gram matrix


def _kernel_ridge_members(found: Members) -> dict[int, Any]:
    """Fitted clones of a ``KernelRidge``.

    Members of one kernel share its Gram matrix, those of the same rows all products with it.
    """
    if found.y.shape[1] != 1 or any(np.ndim(m.alpha) for m in found.models):
        raise NotApplicable("several targets, or a strength for each")
    if len(found.x) > ROWS or any(m.kernel == "precomputed" for m in found.models):
        raise NotApplicable(f"kernels given, or of more than {ROWS} rows")
    x, target, table = _different(found)
    out: dict[int, Any] = {}
    live = [np.flatnonzero(row > 0) for row in table]
    apart = sum(map(len, live)) <= len(x)  # folds without a row in common have no matrix in common
    sides = [[f] for f in range(len(table))] if apart else [list(range(len(table)))]
    for group in found.groups("alpha"):
        first = found.models[group[0]]
        kernel = ridge_kernel(
            first.kernel, x.shape[1], first.gamma, first.degree, first.coef0, first.kernel_params
        )
        for side in sides:
            members = [at for at in group if found.of[at] in side]
            if not members:
                continue
            used = np.flatnonzero((table[side] > 0).any(0))
            rows = x[torch.from_numpy(used)]
            with torch.no_grad():
                K = kernel.of(Geometry(rows, rows)).detach().double()
            alphas = sorted({float(found.models[at].alpha) for at in members})
            here = torch.from_numpy(table[side][:, used])
            a = ridge_folds(K, target[used, 0].double(), here, alphas)  # (F, S, n)
            centers = [rows[here[f] > 0] for f in range(len(side))]
            for at in members:
                f = side.index(int(found.of[at]))
                energy = KernelSquaredEnergy(x.shape[1], 1, kernel).to(x.dtype)
                own = a[f, alphas.index(float(found.models[at].alpha)), here[f] > 0]
                energy.set(centers[f], own[:, None])
                out[at] = found.fitted(at, energy, "KernelLeastSquares")
    return out


def _different(found: Members) -> tuple[Tensor, Tensor, F64]:
    """Rows of different content, and the summed weights of each."""
    _, first, group = np.unique(row_hash(found.x, found.y), return_index=True, return_inverse=True)
    if len(first) == len(found.x):
        return found.x, found.y, found.weights
    order = np.argsort(first, kind="stable")
    place = np.empty(len(first), np.int64)
    place[order] = np.arange(len(first))
    table: F64 = np.stack(
        [np.bincount(place[group], weights=row, minlength=len(first)) for row in found.weights]
    )
    at = torch.from_numpy(first[order])
    return found.x[at], found.y[at], table


kernel_ridge_members = Together(
    _kernel_ridge_members,
    frozenset({"alpha", "kernel", "gamma", "degree", "coef0", "kernel_params"}),
)
