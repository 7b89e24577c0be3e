r"""Sequential minimal optimisation of :math:`\min_\beta \tfrac12\beta^\top K\beta - p^\top\beta`
with :math:`\sum_i\beta_i = 0` and :math:`l \le \beta \le u`.

For a support vector machine :math:`\beta_i = \alpha_i t_i`, :math:`p = t`, and
:math:`F = p - K\beta` is the error of each row before the intercept.
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
from groundstate.learn.solvers.svm.smo.polish import polished
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

    def dual(self, p: F64) -> float:
        r""":math:`p^\top\beta - \tfrac12\beta^\top K\beta`."""
        return float(0.5 * (self.beta @ (p + self.F)))


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
        steps, violation = solve_pairs(K, beta, lo, hi, F, tol, limit, every)
        if watch is not None:
            watch(violation)
        solved = violation <= tol
        if solved:
            beta, F = polished(K, p, lo, hi, beta, F)
            rising, falling = F[beta < hi], F[beta > lo]
            if len(rising) and len(falling):
                violation = min(violation, max(0.0, float(rising.max() - falling.min())))
        return Solution(beta, F, intercept(beta, lo, hi, F), violation, steps, 1, solved)
    values = KernelRows(kernel, x, single=tol >= 1e-5)
    if x.device.type != "cpu":
        beta, F, steps, rounds, violation = device_rounds(
            values, p, lo, hi, tol, limit, max(block, DEVICE_BLOCK), watch
        )
        solved = violation <= tol
        return Solution(beta, F, intercept(beta, lo, hi, F), violation, steps, rounds, solved)
    rows = RowCache(values, megabytes, min(n, 2 * block))
    work = _Blocks(block)
    steps = rounds = 0
    violation = math.inf
    K = np.zeros((0, 0))
    while True:
        violation, chosen, kept = work.choose(beta, lo, hi, F)
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
        done, _ = solve_pairs(K, after, lo[chosen], hi[chosen], local, goal, budget, shrink)
        steps += done
        rounds += 1
        beta[chosen] = after
        rows.subtract(F, slots, after - before)
        if done == 0:
            break  # no pair can move in floating point
    converged = violation <= tol
    return Solution(beta, F, intercept(beta, lo, hi, F), violation, steps, rounds, converged)


def in_one_piece(n: int, megabytes: float) -> bool:
    """Whether so few rows are best solved with their whole matrix."""
    return n <= WHOLE and n * n <= megabytes * 2**17


class _Blocks:
    """Chooses working sets: half is kept, half are the rows that violate optimality most."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.last = np.zeros(0, np.int64)

    def choose(self, beta: F64, lo: F64, hi: F64, F: F64) -> tuple[float, NDArray[np.int64], int]:
        """The violation, the next working set, and how many of its rows the last one ended with."""
        up = np.where(beta < hi, F, -np.inf)
        down = np.where(beta > lo, F, np.inf)
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


def intercept(beta: F64, lo: F64, hi: F64, F: F64) -> float:
    """The mean error of the free rows; with none, the middle of the interval that is optimal."""
    free = (beta > lo) & (beta < hi)
    if free.any():
        return float(F[free].mean())
    rising, falling = F[beta < hi], F[beta > lo]
    low = float(rising.max()) if len(rising) else -math.inf
    high = float(falling.min()) if len(falling) else math.inf
    if math.isinf(low) or math.isinf(high):
        return low if math.isfinite(low) else high if math.isfinite(high) else 0.0
    return 0.5 * (low + high)
