r"""Where the dual of the hinge begins on a long table: a sequence of smooth hinges.

.. math:: \ell_\mu(g) = \begin{cases} g^2/2\mu & 0 < g < \mu \\ g - \mu/2 & g \ge \mu \end{cases},
          \qquad \alpha_i = \frac{w_i}{\lambda}\,\min(1, \max(0, g_i/\mu)), \quad g_i = m - t_if_i .

Each is minimised by Newton's method from the solution before. As μ falls the coefficients between
their bounds become as few as there are weights, and the dual has little left to do.
"""

from __future__ import annotations

import numpy as np

from groundstate.learn.solvers.svm.hinge.newton import Descent
from groundstate.learn.solvers.svm.hinge.rows_numba import F64
from groundstate.learn.solvers.svm.hinge.sums_numba import TileSums

FALL = 0.25  # of μ from one smooth hinge to the next
LEAST = 1e-6  # μ at the end, relative to the margin
STEPS = 30


def smooth_start(x: F64, t: F64, w: F64, m: float, ridge: F64, intercept: bool) -> tuple[F64, F64]:
    r"""Weights ``(D,)``, the intercept last, and shares :math:`\lambda\alpha_i/w_i` in [0, 1]."""
    sums = TileSums(x, t, w, m, intercept)
    theta, mu = np.zeros(len(ridge)), m
    sums.knee = mu
    scale = float(np.abs(sums.at(theta)[1]).max()) / mu or 1.0
    while True:
        sums.knee = mu
        part = Descent(sums, 2.0 * mu * ridge, theta, scale * mu)
        _solve(part, 1e-5)
        if sums.active.sum() <= 2 * len(ridge) or mu <= LEAST * m:
            break
        theta, mu = part.theta, mu * FALL
    part.done = False  # the weights that the coefficients stand for differ by gradient / 2μλ
    _solve(part, 2e-6 * float(ridge[0]) / scale)
    theta = part.theta
    f = x @ theta[: x.shape[1]] + (theta[-1] if intercept else 0.0)
    return theta, np.clip((m - t * f) / mu, 0.0, 1.0)


def _solve(part: Descent, tol: float) -> None:
    for _ in range(STEPS):
        if part.step(tol):
            return
