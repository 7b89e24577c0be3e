r"""Few steps on many rows: quasi-Newton within bounds, with a curvature that is known beforehand."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]
Objective = Callable[[F64], tuple[float, F64]]
LONGEST = 2.0  # of a step in one logarithm


def curvature(objective: Objective, theta: F64, h: float = 1e-3) -> F64:
    """The Hessian by differences of gradients, made positive definite.

    Examples
    --------
    >>> curvature(lambda t: (float(t @ t), 2 * t), np.array([1.0, 2.0])).round(6).tolist()
    [[2.0, 0.0], [0.0, 2.0]]
    """
    rows = []
    for j in range(len(theta)):
        d = np.zeros_like(theta)
        d[j] = h
        rows.append((objective(theta + d)[1] - objective(theta - d)[1]) / (2 * h))
    H = np.array(rows)
    values, vectors = np.linalg.eigh(0.5 * (H + H.T))
    values = np.maximum(np.abs(values), 1e-6 * max(float(np.abs(values).max()), 1e-12))
    positive: F64 = vectors * values @ vectors.T
    return positive


def polish(
    objective: Objective,
    theta: F64,
    bounds: F64,
    hessian: F64,
    *,
    gtol: float = 1e-5,
    ftol: float = 1e-8,
    max_iter: int = 100,
    halvings: int = 30,
) -> tuple[F64, float]:
    r"""Minimise from a good start: steps :math:`-H^{-1}\nabla` with BFGS updates of H, halved until
    the value falls; parameters at a bound that want to leave stay there.

    Examples
    --------
    >>> box = np.array([[-9.0, 9.0]])
    >>> found, _ = polish(lambda t: (float(t[0] ** 2), 2 * t), np.array([3.0]), box, np.eye(1) * 2)
    >>> found.round(6).tolist()
    [0.0]
    """
    low, high = bounds[:, 0], bounds[:, 1]
    theta = np.clip(theta, low, high)
    value, gradient = objective(theta)
    H = hessian.copy()
    for _ in range(max_iter):
        free = ~(((theta <= low) & (gradient > 0)) | ((theta >= high) & (gradient < 0)))
        if not free.any() or float(np.abs(gradient[free]).max()) <= gtol:
            break
        step = np.zeros_like(theta)
        step[free] = -np.linalg.solve(H[np.ix_(free, free)], gradient[free])
        step *= min(1.0, LONGEST / max(float(np.abs(step).max()), 1e-300))
        if -0.5 * float(gradient @ step) <= ftol * max(abs(value), 1.0):
            break  # what is left to gain is known to be less than asked for
        for _ in range(halvings):
            new = np.clip(theta + step, low, high)
            ahead, slope = objective(new)
            if ahead <= value + 1e-4 * float(gradient @ (new - theta)):
                break
            step *= 0.5
        else:
            break
        s, change = new - theta, slope - gradient
        gain, value = value - ahead, ahead
        theta, gradient = new, slope
        if float(s @ change) > 1e-10 * float(np.linalg.norm(s) * np.linalg.norm(change)):
            Hs = H @ s
            H = H + np.outer(change, change) / (s @ change) - np.outer(Hs, Hs) / (s @ Hs)
        if gain <= ftol * max(abs(value), 1.0) or not math.isfinite(value):
            break
    return theta, value
