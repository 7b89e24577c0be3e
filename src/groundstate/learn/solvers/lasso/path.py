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

from groundstate.compute.display import Displayed
from groundstate.learn.solvers.lasso.design import Design, GramDesign
from groundstate.learn.solvers.lasso.gram_numba import ROUNDS, START, gram_path, working_set
from groundstate.learn.solvers.lasso.working_set_numba import gap_of

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
AT_ONCE = 2**22  # entries of Gram matrices that one compiled call may walk through


@dataclass
class Path(Displayed):
    """Solutions along a path.

    Attributes
    ----------
    coefs : ``(p, penalties)``
    gaps : duality gaps, in units of the summed loss
    epochs : passes over the working set
    objectives : P at the end
    screened : columns proved to be zero
    rounds : P after every working set, of each pair
    """

    coefs: F64
    gaps: F64
    epochs: I64
    objectives: F64
    screened: list[I64] = field(default_factory=list)
    rounds: list[list[float]] = field(default_factory=list)


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
    on_round : called with w and P after every working set; True stops
    """
    p, many = len(design.q), len(penalties)
    w = np.zeros(p) if start is None else np.array(start, dtype=np.float64)
    if isinstance(design, GramDesign) and on_round is None:
        return _compiled(design, w, penalties, tol * design.yy, max_iter, positive)
    design.start(w)
    path = Path(np.empty((p, many)), np.empty(many), np.zeros(many, np.int64), np.empty(many))
    before = np.inf
    for k, (lam, mu) in enumerate(penalties):
        _solve_one(design, w, lam, mu, before, tol, max_iter, positive, path, k, on_round)
        path.coefs[:, k] = w
        before = lam
    return path


def _compiled(
    design: GramDesign, w: F64, penalties: list[tuple[float, float]], goal: float, max_iter: int,
    positive: bool,
) -> Path:  # fmt: skip
    """The same rounds, of as many pairs in one call as take a moment together."""
    p, many = len(w), len(penalties)
    lams, mus = np.array(penalties, dtype=np.float64).reshape(many, 2).T.copy()
    coefs, gaps = np.empty((many, p)), np.empty(many)
    epochs, rounds = np.zeros(many, np.int64), np.zeros(many, np.int64)
    values, dead = np.empty((many, ROUNDS)), np.empty((many, p), np.bool_)
    ints, reals = np.empty((3, p), np.int64), np.empty((2, p))  # room
    step = max(1, AT_ONCE // (100 * p * p + 1))
    for lo in range(0, many, step):
        at = slice(lo, lo + step)
        gram_path(
            design.G, design.q, design.yy, design.norms, w, lams[at], mus[at],
            float(lams[lo - 1]) if lo else np.inf, goal, max_iter, positive, coefs[at], gaps[at],
            epochs[at], values[at], rounds[at], dead[at], ints, reals,
        )  # fmt: skip
    logged = [row[:n].tolist() for row, n in zip(values, rounds.tolist(), strict=True)]
    ends = np.array([row[-1] for row in logged])
    return Path(coefs.T, gaps, epochs, ends, [row.nonzero()[0] for row in dead], logged)


def _solve_one(
    design: Design, w: F64, lam: float, mu: float, before: float, tol: float, max_iter: int,
    positive: bool, path: Path, k: int, on_round: Callable[[F64, float], bool] | None,
) -> None:  # fmt: skip
    p = len(w)
    goal = tol * design.yy
    lengths = np.sqrt(design.norms + mu)
    alive = np.flatnonzero(design.norms > 0)
    size, epochs = START, 0
    path.rounds.append([])
    for _ in range(ROUNDS):
        g, yr, rr = design.correlations(w, alive)
        g = g - mu * w
        reach = g if positive else np.abs(g)
        sums = reach[alive].max(initial=0.0), np.abs(w).sum(), w @ w
        top, one, two = map(float, sums)
        primal, gap, s = gap_of(design.yy, yr, rr, top, one, two, lam, mu, positive)
        path.gaps[k], path.objectives[k], path.epochs[k] = gap, primal, epochs
        path.rounds[k].append(primal)
        if on_round is not None and on_round(w, primal):
            break
        if gap <= goal or epochs >= max_iter or not len(alive):
            break
        safe = s * reach[alive] + lengths[alive] * np.sqrt(2.0 * gap) < lam
        if s > 0 and safe.any():
            zero = alive[safe]
            alive = alive[~safe]
            if w[zero].any():  # the proof says zero: the residual must follow
                w[zero] = 0.0
                design.start(w)
                g = design.correlations(w, alive)[0]
                reach = g - mu * w if positive else np.abs(g - mu * w)
        ws, complete = working_set(reach, w, alive, lam, before, size)
        size = max(size, 2 * len(ws))
        inner = 0.3 * goal if complete else max(0.3 * goal, 0.1 * gap)
        epochs += design.descend(w, ws, lam, mu, positive, inner, max_iter - epochs)
    dead = np.ones(p, np.bool_)
    dead[alive] = False
    path.screened.append(np.flatnonzero(dead))


def alpha_max(design: Design, l1_ratio: float = 1.0, positive: bool = False) -> float:
    """The smallest alpha at which all weights are zero."""
    reach = design.q if positive else np.abs(design.q)
    top = float(reach.max()) if len(reach) else 0.0
    return max(top, 0.0) / design.W / max(l1_ratio, 1e-3)
