r"""A path of lasso or elastic-net penalties on a whole Gram matrix, compiled.

The rounds are those of `coordinate_path`, for :math:`G = X^\top X`, :math:`q = X^\top y` and
:math:`\|y\|^2`, which are all that is known of the rows: certificate, safe screening, working set,
descent. A round on few columns takes microseconds, less than the interpreter needs to ask for it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.compute.kernels.order_numba import select_by
from groundstate.learn.solvers.lasso.working_set_numba import (
    descent,
    gap_at,
    inner,
    outer,
    without,
)

START = 10  # columns of the first working set
ROUNDS = 100


@inner
def near(
    reach: Any,
    w: Any,
    alive: Any,
    m: int,
    lam: float,
    before: float,
    size: int,
    chosen: Any,
    outside: Any,
) -> Any:
    """``chosen``: the support and the columns of alive[:m] that violate or come near.

    How many there are, and whether all that come near are among them.
    """
    # sequential strong rule: along a path a column below it is rarely needed
    bar = max(2 * lam - before, 0.5 * lam) if before < np.inf else lam
    support, others = 0, 0
    for a in range(m):
        j = alive[a]
        if w[j] != 0.0:
            support += 1
        elif reach[j] > bar:
            outside[others] = j
            others += 1
    room = max(size, 2 * support, START) - support
    cut, ties = bar, others
    if others > room:  # the `room` farthest, and of equal ones the first
        select_by(reach, outside, 0, others, others - room)
        cut, ties = reach[outside[others - room]], room
        for a in range(others):
            ties -= reach[outside[a]] > cut
    count = 0
    for a in range(m):
        j = alive[a]
        take = w[j] != 0.0 or reach[j] > cut
        if not take and reach[j] == cut and cut > bar and ties > 0:
            take = True
            ties -= 1
        if take:
            chosen[count] = j
            count += 1
    return count, others <= room


@outer
def working_set(reach: Any, w: Any, alive: Any, lam: float, before: float, size: int) -> Any:
    """`near` for Python: the columns, and whether all that come near are among them."""
    chosen, spare = np.empty(len(alive), np.int64), np.empty(len(alive), np.int64)
    count, complete = near(reach, w, alive, len(alive), lam, before, size, chosen, spare)
    return chosen[:count], complete


@outer
def gram_path(
    G: Any, q: Any, yy: float, norms: Any, w: Any, lams: Any, mus: Any, before: float, goal: float,
    most: int, positive: bool, coefs: Any, gaps: Any, epochs: Any, values: Any, rounds: Any,
    dead: Any, ints: Any, reals: Any,
) -> None:  # fmt: skip
    """Pairs (λ, μ), each from the solution w of the one before; a row of every output for each.

    ``before`` is the λ whose solution w is at first, infinite if there is none; ``values`` are those
    of P, as many as there were ``rounds``; ``dead`` is set where a column is proved to be zero;
    ``ints`` (3, p) and ``reals`` (2, p) are room.
    """
    p = len(w)
    alive, ws, g, reach = ints[0], ints[1], reals[0], reals[1]
    for t in range(len(lams)):
        lam, mu, m = lams[t], mus[t], 0
        for j in range(p):
            dead[t, j] = not norms[j] > 0.0
            if not dead[t, j]:
                alive[m] = j
                m += 1
        size, passes, gap, done, changed = START, 0, np.inf, 0, False
        while done < ROUNDS:
            without(q, G, w, g)
            wq, wg, top, one, two = 0.0, 0.0, 0.0, 0.0, 0.0
            for j in range(p):
                wq += w[j] * q[j]
                wg += w[j] * g[j]
                one += abs(w[j])
                two += w[j] * w[j]
            for a in range(m):
                j = alive[a]
                far = g[j] - mu * w[j]
                reach[j] = far if positive else abs(far)
                top = max(top, reach[j])
            if not changed:
                rr = max(yy - wq - wg, 0.0)
                values[t, done], gap, s = gap_at(yy, yy - wq, rr, top, one, two, lam, mu, positive)
                done += 1
                if gap <= goal or passes >= most or m == 0:
                    break
                if s > 0.0:
                    ball = np.sqrt(2.0 * gap)
                    left = 0
                    for a in range(m):
                        j = alive[a]
                        if s * reach[j] + np.sqrt(norms[j] + mu) * ball < lam:
                            dead[t, j] = True
                            changed |= w[j] != 0.0
                            w[j] = 0.0
                        else:
                            alive[left] = j
                            left += 1
                    m = left
                    if changed:  # the proof says zero: the gradient must follow
                        continue
            changed = False
            k, complete = near(reach, w, alive, m, lam, before, size, ws, ints[2])
            size = max(size, 2 * k)
            H = np.empty((k + 2, k))
            r, part = H[k], H[k + 1]
            for a in range(k):
                r[a], part[a] = q[ws[a]], w[ws[a]]
                for b in range(k):
                    H[a, b] = G[ws[a], ws[b]]
            close = 0.3 * goal if complete else max(0.3 * goal, 0.1 * gap)
            passes += descent(H, r, yy, part, lam, mu, positive, close, most - passes)
            for a in range(k):
                w[ws[a]] = part[a]
        epochs[t], gaps[t], rounds[t], before = passes, gap, done, lam
        for j in range(p):
            coefs[t, j] = w[j]
