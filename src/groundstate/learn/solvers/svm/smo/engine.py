r"""Sequential minimal optimisation of :math:`\min_\beta \tfrac12\beta^\top K\beta - p^\top\beta`
with :math:`\sum_i\beta_i = 0` and :math:`l \le \beta \le u`.

For a support vector machine :math:`\beta_i = \alpha_i t_i`, :math:`p = t`, and
:math:`F = p - K\beta` is the error of each row before the intercept. With a tube the objective has
:math:`\varepsilon\|\beta\|_1` too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from groundstate.learn.solvers.svm.smo.device import device_rounds
from groundstate.learn.solvers.svm.smo.loops_numba import solve_pairs
from groundstate.learn.solvers.svm.smo.polish import polished, polished_tube
from groundstate.learn.solvers.svm.smo.rows import KernelRows, RowCache, gram
from groundstate.math.kernels import Kernel

F64 = NDArray[np.float64]
BLOCK = 512  # rows of a working set
WHOLE = 1200  # up to this many rows the matrix is computed in one piece, if the cache holds it
DEVICE_BLOCK = 1024  # the same on a GPU, where rows are cheap and rounds are not
MOST_STEPS = 10_000_000  # where no limit is given; an ill-scaled table would not end
ROUND_STEPS = 20_000  # pair steps within one working set, at most


@dataclass
class Solution:
    """Coefficients, errors :math:`F = p - K\beta`, intercept, and how it went."""

    beta: F64
    F: F64
    intercept: float
    violation: float
    steps: int
    rounds: int
    converged: bool

    def dual(self, p: F64, epsilon: float = 0.0) -> float:
        r""":math:`p^\top\beta - \varepsilon\|\beta\|_1 - \tfrac12\beta^\top K\beta`."""
        return float(0.5 * (self.beta @ (p + self.F)) - epsilon * np.abs(self.beta).sum())


def smo(
    kernel: Kernel | None,
    x: Tensor,
    p: F64,
    lo: F64,
    hi: F64,
    *,
    tol: float = 1e-3,
    max_steps: int = -1,
    megabytes: float = 200.0,
    shrinking: bool = True,
    block: int = BLOCK,
    watch: Callable[[float], bool] | None = None,
    start: tuple[F64, F64] | None = None,
    epsilon: float | None = None,
) -> Solution:
    r"""Solve the dual of a support vector machine to a violation of at most ``tol``.

    Parameters
    ----------
    kernel : of the rows, or None when ``x`` is the Gram matrix
    x : rows ``(n, d)`` or Gram matrix ``(n, n)``; on a GPU its kernel rows are computed and kept there
    p, lo, hi : linear term and box, ``(n,)``
    tol : largest :math:`\max_{\beta_i < u_i} F_i - \min_{\beta_j > l_j} F_j` at the end
    max_steps : pair steps at most, −1 for ten million or a hundred for each row
    megabytes : size of the cache of kernel rows
    shrinking : set coordinates aside that cannot move
    block : rows of a working set; tables of at most 1,200 rows whose matrix fits into the cache are
        solved in one piece
    watch : called with the violation after each working set; True stops
    start : β within the box and of sum zero, and its F, to begin with on the CPU; zero otherwise
    epsilon : half width of the tube of a regression; None is a machine of classes

    Examples
    --------
    >>> import torch
    >>> from groundstate.math.kernels import Linear
    >>> t = np.array([-1.0, 1.0])
    >>> x = torch.tensor([[-1.0], [1.0]], dtype=torch.float64)
    >>> smo(Linear(), x, t, np.minimum(t, 0), np.maximum(t, 0)).beta.tolist()
    [-0.5, 0.5]
    """
    n = len(p)
    limit = max_steps if max_steps >= 0 else max(MOST_STEPS, 100 * n)
    beta, F = (np.zeros(n), p.astype(np.float64)) if start is None else start
    beta, F = beta.copy(), F.copy()
    if n <= block or in_one_piece(n, megabytes):
        K = x.double().cpu().numpy() if kernel is None else gram(kernel, x)
        every = min(n, 1000) if shrinking else 2**62
        steps, violation = solve_pairs(K, beta, lo, hi, F, tol, limit, every, epsilon)
        if watch is not None:
            watch(violation)
        solved = violation <= tol
        if solved:
            if epsilon is None:
                beta, F = polished(K, p, lo, hi, beta, F)
            else:
                beta, F = polished_tube(K, p, lo, hi, beta, F, epsilon)
        rising, falling = moves(beta, lo, hi, F, epsilon)
        if solved:
            violation = min(violation, max(0.0, float(rising.max() - falling.min())))
        b = _level(rising, falling)
        return Solution(beta, F, b, violation, steps, 1, solved)
    values = KernelRows(kernel, x, single=tol >= 1e-5)
    if x.device.type != "cpu":
        beta, F, steps, rounds, violation = device_rounds(
            values, p, lo, hi, tol, limit, max(block, DEVICE_BLOCK), watch, epsilon
        )
        b = intercept(beta, lo, hi, F, epsilon)
        return Solution(beta, F, b, violation, steps, rounds, violation <= tol)
    rows = RowCache(values, megabytes, min(n, 2 * block))
    work = _Blocks(block)
    steps = rounds = 0
    violation = math.inf
    K = np.zeros((0, 0))
    while True:
        violation, chosen, kept = work.choose(*moves(beta, lo, hi, F, epsilon))
        stop = watch is not None and rounds > 0 and watch(violation)
        if violation <= tol or steps >= limit or stop:
            break
        slots = rows.slots(chosen)
        K = rows.square(slots, chosen, K[-kept:, -kept:] if kept else None)
        before, local = beta[chosen], F[chosen]
        after = before.copy()
        # far from the end, a rough answer within the set is enough
        goal = max(tol * 0.5, 0.1 * violation)
        budget = min(ROUND_STEPS, limit - steps)
        shrink = min(len(chosen), 1000) if shrinking else 2**62
        done, _ = solve_pairs(
            K, after, lo[chosen], hi[chosen], local, goal, budget, shrink, epsilon
        )
        steps += done
        rounds += 1
        beta[chosen] = after
        rows.subtract(F, slots, after - before)
        if done == 0:
            break  # no pair can move in floating point
    b = intercept(beta, lo, hi, F, epsilon)
    return Solution(beta, F, b, violation, steps, rounds, violation <= tol)


def in_one_piece(n: int, megabytes: float) -> bool:
    """Whether so few rows are best solved with their whole matrix."""
    return n <= WHOLE and n * n <= megabytes * 2**17


class _Blocks:
    """Chooses working sets: half is kept, half are the rows that violate optimality most."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.last = np.zeros(0, np.int64)

    def choose(self, up: F64, down: F64) -> tuple[float, NDArray[np.int64], int]:
        """The violation, the next working set, and how many of its rows the last one ended with."""
        violation = float(up.max() - down.min())
        half = self.size // 2 if len(self.last) else self.size
        kept = self.last[-(self.size - half) :] if half < self.size else self.last[:0]
        up[kept], down[kept] = -np.inf, np.inf
        rising = _largest(up, half // 2)
        down[rising] = np.inf
        falling = _largest(-down, half - half // 2)
        new = np.concatenate([rising, falling])
        self.last = np.concatenate([kept, new])
        return violation, self.last, len(kept)


def _largest(values: F64, k: int) -> NDArray[np.int64]:
    """Indices of the k largest finite values."""
    k = min(k, len(values))
    found = np.argpartition(values, len(values) - k)[len(values) - k :]
    found = found[values[found] > -np.inf]
    return np.sort(found)


def moves(beta: F64, lo: F64, hi: F64, F: F64, epsilon: float | None) -> tuple[F64, F64]:
    """What the objective gains as each coefficient rises, and loses as it falls; −∞ and ∞ at bounds."""
    if epsilon is None:
        return np.where(beta < hi, F, -np.inf), np.where(beta > lo, F, np.inf)
    rise = np.where(beta < 0.0, F + epsilon, F - epsilon)
    fall = np.where(beta > 0.0, F - epsilon, F + epsilon)
    return np.where(beta < hi, rise, -np.inf), np.where(beta > lo, fall, np.inf)


def intercept(beta: F64, lo: F64, hi: F64, F: F64, epsilon: float | None = None) -> float:
    """The mean error of the free rows; with none, the middle of the interval that is optimal."""
    return _level(*moves(beta, lo, hi, F, epsilon))


def _level(up: F64, down: F64) -> float:
    """`intercept` of what coefficients gain and lose as they move."""
    free = up == down
    if free.any():
        return float(up[free].mean())
    low, high = float(up.max()), float(down.min())
    if math.isinf(low) or math.isinf(high):
        return low if math.isfinite(low) else high if math.isfinite(high) else 0.0
    return 0.5 * (low + high)
