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
from groundstate.learn.solvers.lasso.path import solve_path

F64 = NDArray[np.float64]
MOST = 256  # active columns of a system that costs less than passes
EXCHANGES = 8
SLACK = 1e-9  # of λ: rounding
NEAR, PASSES = 1e-10, 1000  # where exchanges from w do not end, they start from a point this near


def polished(design: Design, w: F64, lam: float, mu: float, positive: bool) -> F64:
    """The optimum near w; of designs without a Gram matrix, or with many active columns, w itself."""
    if not isinstance(design, GramDesign) or not 0 < np.count_nonzero(w) <= MOST:
        return w
    found = _exchanged(design, w, lam, mu, positive)
    if found is not None:
        return found
    nearer = solve_path(design, [(lam, mu)], tol=NEAR, max_iter=PASSES, positive=positive, start=w)
    w = nearer.coefs[:, 0].copy()
    if not positive:  # face by face, each lower than the one before
        w = feature_sign(design.G + mu * np.eye(len(w)), design.q, lam, w)
    found = _exchanged(design, w, lam, mu, positive)
    return w if found is None else found


def _exchanged(design: GramDesign, w: F64, lam: float, mu: float, positive: bool) -> F64 | None:
    """The optimum if its active columns are found from those of w."""
    signs = np.sign(w)
    for _ in range(EXCHANGES):
        active = np.flatnonzero(signs)
        if not 0 < len(active) <= MOST:
            return None
        rows = design.G[active]
        system = rows[:, active]
        system[np.diag_indices(len(active))] += mu
        _, part, info = dposv(system, design.q[active] - lam * signs[active])
        if info:
            return None
        new = np.zeros_like(w)
        new[active] = part
        g = design.q - part @ rows
        turned = active[np.sign(part) != signs[active]]
        reach = g if positive else np.abs(g)
        outside = np.flatnonzero((signs == 0) & (reach > lam * (1 + SLACK)) & (design.norms > 0))
        if not len(turned) and not len(outside):
            return new
        signs[turned] = 0.0
        signs[outside] = np.sign(g[outside])
    return None
