r"""Small lasso problems to the last digit: solve on a face, and walk to the next.

.. math:: \min_w \tfrac12 w^\top Gw - c^\top w + \lambda\|w\|_1

On the orthant of known signs s the minimum is :math:`G_{AA}^{-1}(c_A - \lambda s_A)`. On the way there the
objective is quadratic between the points where a weight reaches zero; the best of those is taken,
weights at zero leave, and the one that violates its condition most enters. Every step descends, and
there are finitely many faces.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

F64 = NDArray[np.float64]


def feature_sign(G: F64, c: F64, lam: float, w: F64, max_steps: int = 0) -> F64:
    """The minimiser from a start w, for a positive definite G.

    Parameters
    ----------
    G, c : ``(m, m)``, ``(m,)``
    lam : λ
    w : start, ``(m,)``; near the solution few steps are needed
    max_steps : faces at most; 0 takes ``3 m + 20``

    Examples
    --------
    >>> feature_sign(np.eye(2), np.array([3.0, 0.5]), 1.0, np.zeros(2)).tolist()
    [2.0, 0.0]
    """
    w = w.copy()
    small = 1e-9 * lam + 1e-15 * abs(c)  # (m,)
    solved = False  # whether w minimises on its face
    for _ in range(max_steps or 3 * len(w) + 20):
        slope = G @ w - c
        wrong = np.where(w == 0, np.maximum(abs(slope) - lam, 0.0), abs(slope + lam * np.sign(w)))
        signs = np.sign(w)
        if solved or not (wrong > small)[w != 0].any():
            enters = int(np.argmax(np.where((w == 0) & (wrong > small), wrong, 0.0)))
            if w[enters] != 0 or wrong[enters] <= small[enters]:
                break
            signs[enters] = -np.sign(slope[enters])
        face = np.flatnonzero(signs)
        try:
            goal = _solved(G[np.ix_(face, face)], c[face] - lam * signs[face])
        except LinAlgError:
            break
        start = w[face]
        if (np.sign(goal) == signs[face]).all():  # the minimum of the face is on it
            if solved and not abs(goal - start).any():
                break
            w[face], solved = goal, True
            continue
        with np.errstate(divide="ignore", invalid="ignore"):
            crossings = start / (start - goal)
        inside = crossings[(crossings > 0) & (crossings < 1) & np.isfinite(crossings)]
        steps = np.append(np.sort(inside)[:64], 1.0)
        trials = start + steps[:, None] * (goal - start)
        trials[abs(trials) <= 1e-14 * (abs(start) + abs(goal))] = 0.0
        values = [_value(G[np.ix_(face, face)], c[face], lam, t) for t in trials]
        best = int(np.argmin(values))
        here = _value(G[np.ix_(face, face)], c[face], lam, start)
        if not values[best] < here:
            if solved:
                break
            solved = True  # to rounding
            continue
        w[face] = trials[best]
        solved = False
    return w


def _solved(G: F64, right: F64) -> F64:
    """G⁻¹ right, in units in which the diagonal is one."""
    unit = 1.0 / np.sqrt(np.maximum(G.diagonal(), 1e-300))
    found: F64 = unit * cho_solve(cho_factor(unit[:, None] * G * unit), unit * right)
    return found


def _value(G: F64, c: F64, lam: float, w: F64) -> float:
    return float(0.5 * w @ (G @ w) - c @ w + lam * abs(w).sum())
