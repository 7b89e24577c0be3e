r"""Compiled passes of dual coordinate descent, for one class against the rest and for all at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.learn.solvers.svm.hinge.rows_numba import add_row, dot_row, inside, jit, shuffle


@jit
def dual_passes(
    rows: Any, y: Any, k: int, index: Any, upper: Any, curve: Any, diagonal: Any, alpha: Any,
    theta: Any, centre: float, scale: float, m: float, place: Any, state: Any, random: Any,
    tol: float, passes: int,
) -> tuple[int, bool]:  # fmt: skip
    r"""Passes of :math:`\alpha_i \leftarrow [\alpha_i - G_i/Q_{ii}]_0^{u_i}` over the active rows.

    ``state`` is the number of active rows and the extremes of the last pass, beyond which a row at
    its bound is set aside. Returns the passes made and whether all rows are optimal.
    """
    x, sparse = rows
    n, d = len(index), len(theta) - 1
    size = int(state[0])
    for done in range(1, passes + 1):
        shuffle(place, size, random)
        top, bottom = 0.0, 0.0  # of all that is left, which is to vanish and not only to agree
        p = 0
        while p < size:
            q = place[p]
            i = index[q]
            t = 1.0 if y[i] == k else -1.0
            f = dot_row(x, sparse, i, theta) + centre
            if scale > 0.0:
                f += scale * theta[d]
            a, u = alpha[q], upper[q]
            g = t * f - m + curve[q] * a
            projected = g
            if a <= 0.0:
                if g > state[1]:
                    size -= 1
                    place[p], place[size] = place[size], q
                    continue
                projected = min(g, 0.0)
            elif a >= u:
                if g < state[2]:
                    size -= 1
                    place[p], place[size] = place[size], q
                    continue
                projected = max(g, 0.0)
            top, bottom = max(top, projected), min(bottom, projected)
            if projected != 0.0:
                new = min(max(a - g / diagonal[q], 0.0), u)
                if new != a:
                    alpha[q] = new
                    by = (new - a) * t
                    add_row(x, sparse, i, by, theta)
                    if scale > 0.0:
                        theta[d] += by * scale
            p += 1
        if top - bottom <= tol:
            full = size == n
            size = n
            state[0], state[1], state[2] = n, np.inf, -np.inf
            if full:
                return done, True
            continue
        state[0] = size
        state[1] = top if top > 0.0 else np.inf
        state[2] = bottom if bottom < 0.0 else -np.inf
    return passes, False


@jit
def hinge_sum(
    rows: Any, y: Any, k: int, index: Any, weight: Any, theta: Any, intercept: bool, m: float,
    power: int,
) -> float:  # fmt: skip
    """Σ w max(0, m − t f)^power over the listed rows; the last entry of θ is the intercept."""
    x, sparse = rows
    total = 0.0
    for q in range(len(index)):
        i = index[q]
        f = dot_row(x, sparse, i, theta)
        if intercept:
            f += theta[len(theta) - 1]
        gap = m - f if y[i] == k else m + f
        if gap > 0.0:
            total += weight[q] * (gap if power == 1 else gap * gap)
    return total


@inside
def _scores(x: Any, sparse: Any, i: int, W: Any, out: Any) -> None:
    """out[k] += xᵢ·W[:, k]."""
    if x is not None:
        for j in range(x.shape[1]):
            for k in range(W.shape[1]):
                out[k] += x[i, j] * W[j, k]
    if sparse is not None:
        data, columns, starts = sparse
        for at in range(starts[i], starts[i + 1]):
            for k in range(W.shape[1]):
                out[k] += data[at] * W[columns[at], k]


@inside
def _spread(x: Any, sparse: Any, i: int, by: Any, W: Any) -> None:
    """W[:, k] += by[k] · xᵢ."""
    if x is not None:
        for j in range(x.shape[1]):
            for k in range(W.shape[1]):
                W[j, k] += x[i, j] * by[k]
    if sparse is not None:
        data, columns, starts = sparse
        for at in range(starts[i], starts[i + 1]):
            for k in range(W.shape[1]):
                W[columns[at], k] += data[at] * by[k]


@jit
def joint_passes(
    rows: Any, y: Any, index: Any, upper: Any, norms: Any, alpha: Any, W: Any, centre: Any,
    scale: float, m: float, place: Any, state: Any, random: Any, tol: float, passes: int,
) -> tuple[int, bool]:  # fmt: skip
    r"""Passes over rows whose coefficients of all classes move together.

    Row i solves :math:`\min_a \tfrac12 A\|a\|^2 + B^\top a` with :math:`\sum_k a_k = 0` and
    :math:`a_k \le u_i 1_{k = y}`: :math:`a_k = \min(u_i1_{k=y}, (\beta - B_k)/A)`, β found by sorting.
    """
    x, sparse = rows
    n, classes = len(index), W.shape[1]
    d = W.shape[0] - 1
    size = int(state[0])
    g, change = np.empty(classes), np.empty(classes)
    for done in range(1, passes + 1):
        shuffle(place, size, random)
        worst = 0.0
        p = 0
        while p < size:
            q = place[p]
            i = index[q]
            own, u, A = y[i], upper[q], norms[q]
            a = alpha[q]
            for k in range(classes):
                g[k] = centre[k] + (0.0 if k == own else m)
                if scale > 0.0:
                    g[k] += scale * W[d, k]
            _scores(x, sparse, i, W, g)
            high, low, other = -np.inf, np.inf, -np.inf
            for k in range(classes):
                high = max(high, g[k])
                if k != own:
                    other = max(other, g[k])
                if a[k] < (u if k == own else 0.0):
                    low = min(low, g[k])
            violation = high - low
            if a[own] == 0.0 and g[own] - other > state[1]:
                size -= 1
                place[p], place[size] = place[size], q
                continue
            worst = max(worst, violation)
            if violation > 1e-12 and A > 0.0:
                for k in range(classes):
                    g[k] -= A * a[k]  # now B
                change[:] = g
                change[own] += A * u
                ordered = np.sort(change)[::-1]
                beta = ordered[0] - A * u
                r = 1
                while r < classes and beta < r * ordered[r]:
                    beta += ordered[r]
                    r += 1
                beta /= r
                for k in range(classes):
                    new = min(u if k == own else 0.0, (beta - g[k]) / A)
                    change[k] = new - a[k]
                    a[k] = new
                _spread(x, sparse, i, change, W)
                if scale > 0.0:
                    for k in range(classes):
                        W[d, k] += scale * change[k]
            p += 1
        if worst <= tol:
            full = size == n
            size = n
            state[0], state[1] = n, np.inf
            if full:
                return done, True
            continue
        state[0], state[1] = size, worst
    return passes, False


@jit
def joint_sum(rows: Any, y: Any, index: Any, weight: Any, W: Any, b: Any, m: float) -> float:
    """Σ w max(0, m + e_y − e of the best wrong class) over the listed rows."""
    x, sparse = rows
    total, classes = 0.0, W.shape[1]
    score = np.empty(classes)
    for q in range(len(index)):
        i = index[q]
        score[:] = b
        _scores(x, sparse, i, W, score)
        other = -np.inf
        for k in range(classes):
            if k != y[i]:
                other = max(other, score[k])
        total += weight[q] * max(0.0, m + other - score[y[i]])
    return total
