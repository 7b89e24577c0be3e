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

F64 = NDArray[np.float64]
MOST = 256  # active columns of a system that costs less than passes
EXCHANGES = 8
SLACK = 1e-9  # of λ: rounding


def polished(design: Design, w: F64, lam: float, mu: float, positive: bool) -> F64:
    """The optimum near w, or w where the active set is not found."""
    signs = np.sign(w)
    if not isinstance(design, GramDesign) or not signs.any():
        return w
    for _ in range(EXCHANGES):
        active = np.flatnonzero(signs)
        if not 0 < len(active) <= MOST:
            return w
        system = design.G[np.ix_(active, active)]
        system.reshape(-1)[:: len(active) + 1] += mu
        _, part, info = dposv(system, design.q[active] - lam * signs[active])
        if info:
            return w
        new = np.zeros_like(w)
        new[active] = part
        g = design.q - design.G @ new
        turned = active[np.sign(part) != signs[active]]
        reach = g if positive else np.abs(g)
        outside = np.flatnonzero((signs == 0) & (reach > lam * (1 + SLACK)) & (design.norms > 0))
        if not len(turned) and not len(outside):
            return new
        signs[turned] = 0.0
        signs[outside] = np.sign(g[outside])
    return w
