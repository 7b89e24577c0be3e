r"""A path of lasso or elastic-net penalties on a whole Gram matrix, compiled.

The rounds are those of `coordinate_path`, for :math:`G = X^\top X`, :math:`q = X^\top y` and
:math:`\|y\|^2`, which are all that is known of the rows: certificate, safe screening, working set,
descent. A round on few columns takes microseconds, less than the interpreter needs to ask for it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.learn.solvers.lasso.working_set_numba import (
    _jit,
    gap_of,
    gram_descent,
    inner,
    without,
)

START = 10  # columns of the first working set
ROUNDS = 100


@_jit
def _select(a: Any, n: int, k: int) -> float:
    """The k-th smallest of the first n, which are put in another order."""
    lo, hi = 0, n - 1
    while lo < hi:  # by hand: np.partition takes seconds to compile
        pivot, i, j = a[(lo + hi) // 2], lo, hi
        while i <= j:
            while a[i] < pivot:
                i += 1
            while a[j] > pivot:
                j -= 1
            if i <= j:
                a[i], a[j] = a[j], a[i]
                i += 1
                j -= 1
        if k <= j:
            hi = j
        elif k >= i:
            lo = i
        else:
            break
    return float(a[k])


@_jit
def working_set(reach: Any, w: Any, alive: Any, lam: float, before: float, size: int) -> Any:
    """The support and the columns that violate or come near; whether all of those are in it."""
    # sequential strong rule: along a path a column below it is rarely needed
    bar = max(2 * lam - before, 0.5 * lam) if before < np.inf else lam
    support, others = 0, 0
    near = np.empty(len(alive))
    for a in range(len(alive)):
        j = alive[a]
        if w[j] != 0.0:
            support += 1
        elif reach[j] > bar:
            near[others] = reach[j]
            others += 1
    room = max(size, 2 * support, START) - support
    cut, ties = bar, others
    if others > room:  # the `room` farthest, and of equal ones the first
        cut = _select(near, others, others - room)
        ties = room
        for a in range(others):
            ties -= near[a] > cut
    chosen = np.empty(support + min(others, room), np.int64)
    count = 0
    for a in range(len(alive)):
        j = alive[a]
        take = w[j] != 0.0 or reach[j] > cut
        if not take and reach[j] == cut and cut > bar and ties > 0:
            take = True
            ties -= 1
        if take:
            chosen[count] = j
            count += 1
    return chosen, others <= room


@_jit
def gram_solve(
    G: Any, q: Any, yy: float, norms: Any, w: Any, lam: float, mu: float, before: float,
    goal: float, most: int, positive: bool, values: Any, dead: Any,
) -> Any:  # fmt: skip
    """One pair (λ, μ) from w, in place; epochs, gap, and how many ``values`` of P were written.

    ``before`` is the λ whose solution w is, infinite if there is none; ``dead`` is set where a
    column is proved to be zero.
    """
    p = len(w)
    alive = np.empty(p, np.int64)
    m = 0
    for j in range(p):
        dead[j] = not norms[j] > 0.0
        if not dead[j]:
            alive[m] = j
            m += 1
    size, epochs, gap = START, 0, np.inf
    far, reach = np.empty(p), np.empty(p)
    for done in range(ROUNDS):
        g = without(q, G, w)
        wq = inner(w, q)
        rr = max(yy - wq - inner(w, g), 0.0)
        for a in range(m):
            j = alive[a]
            far[a] = g[j] - mu * w[j]
            reach[j] = far[a] if positive else abs(far[a])
        values[done], gap, s = gap_of(yy, yy - wq, rr, far[:m], w, lam, mu, positive)
        if gap <= goal or epochs >= most or m == 0:
            return epochs, gap, done + 1
        if s > 0.0:
            ball = np.sqrt(2.0 * gap)
            left, changed = 0, False
            for a in range(m):
                j = alive[a]
                if s * reach[j] + np.sqrt(norms[j] + mu) * ball < lam:
                    dead[j] = True
                    changed |= w[j] != 0.0
                    w[j] = 0.0
                else:
                    alive[left] = j
                    left += 1
            m = left
            if changed:  # the proof says zero: the gradient must follow
                g = without(q, G, w)
                for a in range(m):
                    j = alive[a]
                    reach[j] = g[j] - mu * w[j]
                    reach[j] = reach[j] if positive else abs(reach[j])
        ws, complete = working_set(reach, w, alive[:m], lam, before, size)
        k = len(ws)
        size = max(size, 2 * k)
        H, r, part = np.empty((k, k)), np.empty(k), np.empty(k)
        for a in range(k):
            r[a], part[a] = q[ws[a]], w[ws[a]]
            row = G[ws[a]]
            for b in range(k):
                H[a, b] = row[ws[b]]
        close = 0.3 * goal if complete else max(0.3 * goal, 0.1 * gap)
        epochs += gram_descent(H, r, yy, part, lam, mu, positive, close, most - epochs)[0]
        for a in range(k):
            w[ws[a]] = part[a]
    return epochs, gap, ROUNDS


@_jit
def gram_path(
    G: Any, q: Any, yy: float, norms: Any, w: Any, lams: Any, mus: Any, before: float, goal: float,
    most: int, positive: bool, coefs: Any, gaps: Any, epochs: Any, values: Any, rounds: Any,
    dead: Any,
) -> None:  # fmt: skip
    """Pairs (λ, μ), each from the solution of the one before; one row of every output for each."""
    for k in range(len(lams)):
        epochs[k], gaps[k], rounds[k] = gram_solve(
            G, q, yy, norms, w, lams[k], mus[k], before, goal, most, positive, values[k], dead[k]
        )
        coefs[k] = w
        before = lams[k]


__all__ = ["ROUNDS", "START", "gram_path", "gram_solve", "working_set"]
