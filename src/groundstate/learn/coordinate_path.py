r"""Lasso and elastic net along a path of penalties: working sets, safe screening, certificates.

In units of the summed loss, :math:`P(w) = \tfrac12\|y - Xw\|^2 + \lambda\|w\|_1 + \tfrac\mu2\|w\|^2`. For
:math:`g = X^\top r - \mu w` and any scale s with :math:`s|g_j| \le \lambda`, s·r is a dual point and
P − D bounds the distance to the optimum. A column with
:math:`s|g_j| + \|\tilde x_j\|\sqrt{2(P - D)} < \lambda` is zero at the optimum and is left out for good.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from groundstate.learn.coordinate_design import Design
from groundstate.learn.coordinate_kernels import gap_of

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
START = 10  # columns of the first working set
ROUNDS = 100


@dataclass
class Path:
    """Solutions along a path.

    Attributes
    ----------
    coefs : ``(p, penalties)``
    gaps : duality gaps, in units of the summed loss
    epochs : passes over the working set
    objectives : P at the end
    screened : columns proved to be zero
    """

    coefs: F64
    gaps: F64
    epochs: I64
    objectives: F64
    screened: list[I64] = field(default_factory=list)


def solve_path(
    design: Design,
    penalties: list[tuple[float, float]],
    *,
    tol: float,
    max_iter: int = 1000,
    positive: bool = False,
    start: F64 | None = None,
    on_round: Callable[[F64, float], bool] | None = None,
) -> Path:
    """Solve for pairs (λ, μ), each from the solution of the one before.

    Parameters
    ----------
    design : the rows
    penalties : in units of the summed loss, strongest first
    tol : duality gap at the end, relative to ‖y‖²
    max_iter : epochs at most, for each pair
    positive : weights below zero are not allowed
    start : weights to begin with
    on_round : told w and P after every working set; True stops
    """
    p, many = len(design.q), len(penalties)
    w = np.zeros(p) if start is None else np.array(start, dtype=np.float64)
    design.start(w)
    path = Path(np.empty((p, many)), np.empty(many), np.zeros(many, np.int64), np.empty(many))
    before = np.inf
    for k, (lam, mu) in enumerate(penalties):
        _solve_one(design, w, lam, mu, before, tol, max_iter, positive, path, k, on_round)
        path.coefs[:, k] = w
        before = lam
    return path


def _solve_one(
    design: Design, w: F64, lam: float, mu: float, before: float, tol: float, max_iter: int,
    positive: bool, path: Path, k: int, on_round: Callable[[F64, float], bool] | None,
) -> None:  # fmt: skip
    p = len(w)
    goal = tol * design.yy
    lengths = np.sqrt(design.norms + mu)
    alive = np.flatnonzero(design.norms > 0)
    size, epochs = START, 0
    for _ in range(ROUNDS):
        g, yr, rr = design.correlations(w, alive)
        g = g - mu * w
        primal, gap, s = gap_of(design.yy, yr, rr, g[alive], w, lam, mu, positive)
        path.gaps[k], path.objectives[k], path.epochs[k] = gap, primal, epochs
        if on_round is not None and on_round(w, primal):
            break
        if gap <= goal or epochs >= max_iter or not len(alive):
            break
        reach = g if positive else np.abs(g)
        safe = s * reach[alive] + lengths[alive] * np.sqrt(2.0 * gap) < lam
        if s > 0 and safe.any():
            zero = alive[safe]
            if w[zero].any():  # the proof says zero: the residual must follow
                w[zero] = 0.0
                design.start(w)
            alive = alive[~safe]
            g, yr, rr = design.correlations(w, alive)
            reach = g - mu * w if positive else np.abs(g - mu * w)
        ws, complete = _working_set(reach, w, alive, lam, before, size)
        size = max(size, 2 * len(ws))
        inner = 0.3 * goal if complete else max(0.3 * goal, 0.1 * gap)
        epochs += design.descend(w, ws, lam, mu, positive, inner, max_iter - epochs)
    dead = np.ones(p, np.bool_)
    dead[alive] = False
    path.screened.append(np.flatnonzero(dead))


def _working_set(
    reach: F64, w: F64, alive: I64, lam: float, before: float, size: int
) -> tuple[I64, bool]:
    """The support and the columns that violate or come near; whether all of those are in it."""
    support = alive[w[alive] != 0]
    # sequential strong rule: along a path a column below it is rarely needed
    bar = max(2 * lam - before, 0.5 * lam) if np.isfinite(before) else lam
    others = alive[(w[alive] == 0) & (reach[alive] > bar)]
    room = max(size, 2 * len(support), START) - len(support)
    if len(others) <= room:
        return np.sort(np.concatenate([support, others])), True
    best = others[np.argpartition(-reach[others], room)[:room]]
    return np.sort(np.concatenate([support, best])), False


def alpha_max(design: Design, l1_ratio: float = 1.0, positive: bool = False) -> float:
    """The smallest alpha at which all weights are zero."""
    reach = design.q if positive else np.abs(design.q)
    top = float(reach.max()) if len(reach) else 0.0
    return max(top, 0.0) / design.W / max(l1_ratio, 1e-3)


__all__ = ["Path", "alpha_max", "solve_path"]
