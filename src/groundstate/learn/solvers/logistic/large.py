r"""Newton's method, in four ways to the Hessian.

A pass over the rows gives the objective and its gradient; the Hessian needs about RD/4 times as
much. Where it is dear, it is replaced by a :math:`B \approx H` that is cheap, kept while it serves, and
corrected by the secant pairs of the steps (L-BFGS on top of :math:`B^{-1}`):

- *exact*: the Hessian itself, in every step.
- *metric*: the Hessian where all classes are equally likely,
  :math:`\tfrac1K(I - \tfrac1K 11^\top)\otimes\sum_i w_i\tilde x_i\tilde x_i^\top + \lambda I`. On directions
  that sum to zero over the classes, which all gradients do, it is one D × D matrix for every class.
  It takes away the scales and correlations of the columns; what is left needs some twenty passes.
- *sampled*: the Hessian of a part of the rows.
- *conjugate*: none; conjugate gradients solve :math:`H\Delta = -\nabla` with products alone.

The gradient is exact in all cases, so the solution is too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from scipy.linalg.lapack import dposv, dpotrf, dpotrs

from groundstate.learn.solvers.logistic.objective import SoftmaxObjective
from groundstate.math.linalg.conjugate_gradients import truncated

MEMORY = 8  # secant pairs
PATIENCE = 30  # steps with the metric before the Hessian itself is worth its price
CLOSE = 1e-8  # squared Newton decrement of the sum over rows: twice what a step can gain
MAX_DENSE = 600  # unknowns up to which a dense Hessian is formed
ROWS_PER_UNKNOWN = 30  # of the part that gives the Hessian
SLOW = 0.5  # a gradient that shrinks less than this asks for a new Hessian, from more rows


@dataclass
class Step:
    """One accepted step: the objective, θ, and whether it is the last one needed."""

    value: float
    theta: Any
    done: bool


def exact_newton(rows: SoftmaxObjective, tol: float) -> Iterator[Step]:
    """Steps with the whole Hessian; the one from a small decrement squares its error.

    Weak penalties have small gradients far from the optimum. Without one there may be none.
    """
    theta = rows.start()
    value, gradient = rows.evaluate(theta)
    while True:
        move = _descent(rows.hessian(theta), gradient)
        decrement = -float((move.reshape(-1) * gradient.reshape(-1)).sum()) * rows.total
        small = _size(gradient) <= tol and (decrement <= CLOSE or not rows.strength)
        found = _search(rows, theta, value, gradient, move)
        if found is None:
            return
        theta, value, gradient = found
        yield Step(value, theta, small)


def metric_newton(rows: SoftmaxObjective, tol: float) -> Iterator[Step]:
    """Steps in the metric of equal probabilities; where they are too many, Newton's."""
    factor = _factor(rows.metric())
    r, d = rows.shape

    def solve(right: Any) -> Any:
        return _solved(factor, right.reshape(r, d).T).T.reshape(-1)

    theta, left = rows.start(), PATIENCE
    value, gradient = rows.evaluate(theta)
    pairs: list[tuple[Any, Any, float]] = []
    while left and _size(gradient) > tol:
        left -= 1
        found = _search(rows, theta, value, gradient, _secant(pairs, gradient, solve, scaled=True))
        if found is None:
            break
        ahead, value, slope = found
        pairs = _paired(pairs, ahead - theta, slope - gradient)
        theta, gradient = ahead, slope
        yield Step(value, theta, _size(gradient) <= tol)
    if _size(gradient) > tol:
        small = r * d <= MAX_DENSE
        yield from (sampled_newton if small else conjugate_newton)(rows, tol, theta)


def sampled_newton(rows: SoftmaxObjective, tol: float, start: Any = None) -> Iterator[Step]:
    """Steps with the Hessian of a part of the rows; ends when no descent is left."""
    theta = rows.start() if start is None else start
    value, gradient = rows.evaluate(theta)
    unknowns = rows.shape[0] * rows.shape[1]
    every = max(1, rows.n // (ROWS_PER_UNKNOWN * unknowns))
    pairs: list[tuple[Any, Any, float]] = []
    factor: Any = None
    for count in range(10**9):
        if factor is None:
            factor = _factor(rows.hessian(theta, every))
        direction = _secant(pairs, gradient, partial(_solved, factor))
        found = _search(rows, theta, value, gradient, direction)
        if found is None:
            if not pairs and every == 1:
                return
            pairs, every, factor = [], 1, None
            continue
        before = _size(gradient)
        ahead, value, slope = found
        pairs = _paired(pairs, ahead - theta, slope - gradient)
        theta, gradient = ahead, slope
        yield Step(value, theta, _size(gradient) <= tol)
        shrunk = _size(gradient) / max(before, 1e-300)
        if count < 2 or (shrunk > SLOW and _size(gradient) > tol):
            if count >= 4:
                every = max(1, every // 4)
            factor, pairs = None, []


def conjugate_newton(rows: SoftmaxObjective, tol: float, start: Any = None) -> Iterator[Step]:
    """Truncated Newton: the Hessian is met only in products."""
    theta = rows.start() if start is None else start
    value, gradient = rows.evaluate(theta)
    while True:
        kept = rows.curvature(theta)
        direction = _conjugate(rows, kept, gradient)
        found = _search(rows, theta, value, gradient, direction)
        if found is None:
            return
        theta, value, gradient = found
        yield Step(value, theta, _size(gradient) <= tol)


def _size(gradient: Any) -> float:
    return float(abs(gradient).max())


def _search(rows: SoftmaxObjective, theta: Any, value: float, gradient: Any, direction: Any) -> Any:
    """Backtracking from the full step: θ, objective and gradient, or None."""
    slope = float((direction * gradient).sum())
    if not slope < 0.0:
        return None
    step = 1.0
    slack = 4e-15 * max(1.0, abs(value))  # the objective is known to rounding only
    for _ in range(30):
        ahead = theta + step * direction
        new, found = rows.evaluate(ahead)
        if new <= value + 1e-4 * step * slope + slack:
            if new >= value and _size(found) >= _size(gradient):
                return None
            return ahead, new, found
        step *= 0.5
    return None


def _descent(hessian: Any, gradient: Any) -> Any:
    """−H⁻¹∇, of the shape of the gradient."""
    if isinstance(hessian, np.ndarray):
        _, move, failed = dposv(hessian, -gradient.reshape(-1), lower=1)
        if failed == 0:
            return move.reshape(gradient.shape)
    return -_solved(_factor(hessian), gradient.reshape(-1)).reshape(gradient.shape)


def _factor(hessian: Any) -> Any:
    """A Cholesky factor; the diagonal is raised until there is one."""
    raised, n = 0.0, len(hessian)
    top = float(abs(hessian.reshape(-1)[:: n + 1]).max())
    for power in range(-12, 3):
        matrix = hessian + raised * (np.eye(n) if isinstance(hessian, np.ndarray) else torch.eye(
            n, dtype=hessian.dtype, device=hessian.device
        )) if raised else hessian  # fmt: skip
        if isinstance(hessian, np.ndarray):
            factor, failed = dpotrf(matrix, lower=1, clean=0)
        else:
            factor, info = torch.linalg.cholesky_ex(matrix)
            failed = int(info)
        if not failed:
            return factor
        raised = top * 10.0**power + 1e-300
    raise FloatingPointError("the Hessian holds NaN or infinity; scale the inputs")


def _solved(factor: Any, right: Any) -> Any:
    if isinstance(right, np.ndarray):
        return dpotrs(factor, right, lower=1)[0]
    columns = right if right.ndim == 2 else right[:, None]
    return torch.cholesky_solve(columns, factor).reshape(right.shape)


def _paired(
    pairs: list[tuple[Any, Any, float]], move: Any, change: Any
) -> list[tuple[Any, Any, float]]:
    """The secant pairs with a new one, unless its curvature is lost in rounding."""
    s, change = move.reshape(-1), change.reshape(-1)
    curvature = float(s @ change)
    if curvature <= 1e-14 * float(change @ change):
        return pairs
    return [*pairs[-MEMORY + 1 :], (s, change, 1.0 / curvature)]


def _secant(
    pairs: list[tuple[Any, Any, float]],
    gradient: Any,
    solve: Callable[[Any], Any],
    scaled: bool = False,
) -> Any:
    """−(B corrected by secant pairs)⁻¹∇: the two-loop recursion; B scaled by the last pair or not."""
    q = gradient.reshape(-1)
    q = q + 0.0
    kept = []
    for s, change, inverse in reversed(pairs):
        a = inverse * float(s @ q)
        kept.append(a)
        q -= a * change
    q = solve(q)
    if scaled and pairs:
        _, change, inverse = pairs[-1]
        q *= 1.0 / (inverse * float(change @ solve(change)))
    for (s, change, inverse), a in zip(pairs, reversed(kept), strict=True):
        q += (a - inverse * float(change @ q)) * s
    return -q.reshape(gradient.shape)


def _conjugate(rows: SoftmaxObjective, kept: Any, gradient: Any) -> Any:
    """CG on H Δ = −∇, as far as the size of the gradient deserves."""
    size = float((gradient * gradient).sum()) ** 0.5
    goal = size * min(0.5, size**0.5)
    most = min(200, 10 + gradient.size) if isinstance(gradient, np.ndarray) else 200
    move = truncated(lambda d: rows.product(kept, d), -gradient, goal, most)
    return move if float((move * gradient).sum()) < 0 else -gradient
