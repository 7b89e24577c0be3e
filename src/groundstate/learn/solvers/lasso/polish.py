r"""The optimum itself from a point near it: the linear system of its active columns.

With signs s on the active set A the optimum solves :math:`(G_{AA} + \mu)w_A = q_A - \lambda s_A`, and
:math:`|q - Gw|_j \le \lambda` elsewhere. Near it A is nearly known, and a few exchanges find it, so that
the answer does not depend on where coordinate descent came from.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv

from groundstate.learn.solvers.lasso.design import Design, GramDesign
from groundstate.learn.solvers.lasso.feature_sign import feature_sign
from groundstate.learn.solvers.lasso.path import Path, solve_path
from groundstate.learn.solvers.lasso.working_set_numba import gap_of

F64 = NDArray[np.float64]
MOST = 256  # active columns of a system that costs less than passes
FEW = 16  # columns whose optimum needs no compiled code to be found as soon
EXCHANGES = 8
SLACK = 1e-9  # of λ: rounding
NEAR, PASSES = 1e-10, 1000  # where exchanges from w do not end, they start from a point this near


def solve_few(
    design: Design, w: F64, lam: float, mu: float, positive: bool, tol: float
) -> Path | None:
    """The optimum of few columns from a start w, with its certificate; None where it is not reached.

    Exchanges, and face by face where they do not end: nothing of it has to be compiled first.
    """
    if not isinstance(design, GramDesign) or len(w) > FEW:
        return None
    before, near = 0.5 * design.yy, w
    if w.any():
        before = _certified(design, w, lam, mu, positive)[0]
    elif lam < 0.5 * np.abs(design.q).max(initial=0.0):  # signs without a penalty are mostly right
        near = dposv(design.G + mu * np.eye(len(w)), design.q, overwrite_a=True)[1]
    found = _exchanged(design, np.maximum(near, 0.0) if positive else near, lam, mu, positive)
    if found is None and not positive:
        found = feature_sign(design.G + mu * np.eye(len(w)), design.q, lam, w), len(w)
    if found is None:
        return None
    best, steps = found
    value, gap = _certified(design, best, lam, mu, positive)
    if not gap <= min(tol, NEAR) * design.yy:
        return None
    ends, gaps, many = np.array([value]), np.array([gap]), np.array([steps])
    return Path(best[:, None], gaps, many, ends, rounds=[[before, value]])


def _certified(
    design: GramDesign, w: F64, lam: float, mu: float, positive: bool
) -> tuple[float, float]:
    """Objective and duality gap."""
    g, yr, rr = design.correlations(w, np.arange(len(w)))
    g = g - mu * w
    top = float((g if positive else np.abs(g)).max(initial=0.0))
    one, two = float(np.abs(w).sum()), float(w @ w)
    return gap_of(design.yy, yr, rr, top, one, two, lam, mu, positive)[:2]


def polished(design: Design, w: F64, lam: float, mu: float, positive: bool) -> F64:
    """The optimum near w; of designs without a Gram matrix, or with many active columns, w itself."""
    if not isinstance(design, GramDesign) or not 0 < np.count_nonzero(w) <= MOST:
        return w
    found = _exchanged(design, w, lam, mu, positive)
    if found is not None:
        return found[0]
    nearer = solve_path(design, [(lam, mu)], tol=NEAR, max_iter=PASSES, positive=positive, start=w)
    w = nearer.coefs[:, 0].copy()
    if not positive:  # face by face, each lower than the one before
        w = feature_sign(design.G + mu * np.eye(len(w)), design.q, lam, w)
    found = _exchanged(design, w, lam, mu, positive)
    return w if found is None else found[0]


def _exchanged(
    design: GramDesign, w: F64, lam: float, mu: float, positive: bool
) -> tuple[F64, int] | None:
    """The optimum if its active columns are found from those of w, and after how many systems."""
    signs, live = np.sign(w), design.norms > 0
    bar = lam * (1 + SLACK)
    for step in range(EXCHANGES):
        active = signs.nonzero()[0]
        if len(active) > MOST:
            return None
        new, g = np.zeros_like(w), design.q
        if len(active):
            rows = design.G[active]
            system = rows[:, active]
            if mu:
                system.flat[:: len(active) + 1] += mu
            _, part, info = dposv(system, g[active] - lam * signs[active], overwrite_a=True)
            if info:
                return None
            new[active] = part
            g = g - part @ rows
        wrong = (np.sign(new) != signs) & (signs != 0)
        outside = ((g if positive else np.abs(g)) > bar) & (signs == 0) & live
        if not (wrong | outside).any():
            return new, step + 1
        signs[wrong] = 0.0
        signs[outside] = np.sign(g[outside])
    return None
