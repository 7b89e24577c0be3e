r"""Coordinate descent on a working set, compiled.

One step solves :math:`\min_{w_j} \tfrac12\|r\|^2 + \lambda|w_j| + \tfrac\mu2 w_j^2` in one coordinate:
:math:`w_j \leftarrow S(x_j^\top r + \|x_j\|^2w_j, \lambda)/(\|x_j\|^2 + \mu)` with the soft threshold S.
Every five epochs the last iterates are extrapolated (Anderson) and kept if the objective falls.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

MEMORY = 5  # epochs between extrapolations
_U = np.uint64  # no question whether an index counts from the end


def _jit(function: Any) -> Any:
    return njit(cache=True, nogil=True, fastmath={"contract", "reassoc", "nsz"})(function)


@_jit
def _soft(u: float, lam: float, positive: bool) -> float:
    if u > lam:
        return u - lam
    if u < -lam and not positive:
        return u + lam
    return 0.0


@_jit
def inner(a: Any, b: Any) -> float:
    """aᵀb on the thread that asks: a library would wake others for vectors this short."""
    s = 0.0
    for i in range(len(a)):
        s += a[i] * b[i]
    return s


@_jit
def without(q: Any, H: Any, w: Any) -> Any:
    """q − Hw for a symmetric H and a w with many zeros."""
    g = q.copy()
    for j in range(len(w)):
        if w[j] != 0.0:
            for i in range(len(g)):
                g[i] -= w[j] * H[j, i]
    return g


@_jit
def gap_of(
    yy: float, yr: float, rr: float, g: Any, w: Any, lam: float, mu: float, positive: bool
) -> Any:
    """Objective and duality gap from ‖y‖², yᵀr, ‖r‖², g = Xᵀr − μw and w; also the dual scale."""
    top, one, two = 0.0, 0.0, 0.0
    for j in range(len(g)):
        top = max(top, g[j] if positive else abs(g[j]))
    for j in range(len(w)):
        one += abs(w[j])
        two += w[j] * w[j]
    primal = 0.5 * rr + lam * one + 0.5 * mu * two
    size = rr + mu * two
    s = yr / size if size > 0 else 0.0
    if top > 0:
        s = min(max(s, -lam / top if not positive else 0.0), lam / top)
    if positive:
        s = max(s, 0.0)
    return primal, max(primal - (s * yr - 0.5 * s * s * size), 0.0), s


@_jit
def _extrapolate(past: Any) -> Any:
    """Weights of the last iterates ``(MEMORY + 1, m)`` whose differences cancel best."""
    m = past.shape[1]
    U = np.empty((MEMORY, MEMORY))
    for a in range(MEMORY):
        for b in range(a + 1):
            s = 0.0
            for j in range(m):
                s += (past[a + 1, j] - past[a, j]) * (past[b + 1, j] - past[b, j])
            U[a, b] = s
            U[b, a] = s
    top = 0.0
    for a in range(MEMORY):
        top += U[a, a]
    if not top > 0:
        return np.zeros(0)
    for a in range(MEMORY):
        U[a, a] += 1e-14 * top
    c = np.linalg.solve(U, np.ones(MEMORY))
    total = c.sum()
    if not abs(total) > 1e-300:
        return np.zeros(0)
    return c / total


@_jit
def gram_descent(
    H: Any, q: Any, yy: float, w: Any, lam: float, mu: float, positive: bool, tol: float, most: int
) -> Any:
    """Descent with the Gram matrix H ``(m, m)`` and q = Xᵀy; w in place. Epochs and the gap."""
    m = len(w)
    g = without(q, H, w)  # Xᵀr
    past = np.empty((MEMORY + 1, m))
    past[0] = w
    kept, epoch, gap = 1, 0, np.inf
    while epoch < most:
        epoch += 1
        moved = False
        for j in range(m):
            h = H[j, j]
            if h <= 0.0:
                continue
            old = w[j]
            new = _soft(g[j] + h * old, lam, positive) / (h + mu)
            if new != old:
                d = new - old
                w[j] = new
                moved = True
                for i in range(m):
                    g[i] -= d * H[j, i]
        past[kept] = w
        kept += 1
        if kept > MEMORY:
            kept = 1
            c = _extrapolate(past)
            if len(c) and moved:
                far = np.zeros(m)
                for a in range(MEMORY):
                    for j in range(m):
                        far[j] += c[a] * past[a + 1, j]
                if positive:
                    far = np.maximum(far, 0.0)
                g_far = without(q, H, far)
                now = _quadratic(yy, q, g, w, lam, mu)
                if _quadratic(yy, q, g_far, far, lam, mu) < now:
                    w[:] = far
                    g[:] = g_far
            past[0] = w
        if epoch % MEMORY == 0 or not moved or epoch == most:
            wq = inner(w, q)
            rr = max(yy - wq - inner(w, g), 0.0)
            gap = gap_of(yy, yy - wq, rr, g - mu * w, w, lam, mu, positive)[1]
            if gap <= tol or not moved:
                break
    return epoch, gap


@_jit
def _quadratic(yy: float, q: Any, g: Any, w: Any, lam: float, mu: float) -> float:
    one, two, cross = 0.0, 0.0, 0.0
    for j in range(len(w)):
        one += abs(w[j])
        two += w[j] * w[j]
        cross += w[j] * (q[j] + g[j])
    return 0.5 * (yy - cross) + lam * one + 0.5 * mu * two


@_jit
def sparse_correlations(
    data: Any, rows: Any, starts: Any, mean: Any, r: Any, total: float, columns: Any, out: Any
) -> None:
    """Centred xⱼᵀr of the listed columns; ``total`` is the weighted sum of r."""
    for a in range(len(columns)):
        j = columns[a]
        s = 0.0
        for k in range(_U(starts[j]), _U(starts[j + 1])):
            s += data[k] * r[_U(rows[k])]
        out[j] = s - mean[j] * total


@_jit
def sparse_move(
    data: Any, rows: Any, starts: Any, mean: Any, r: Any, total: float, W: float, j: int, d: float
) -> float:
    """Residual after w_j += d; the new weighted sum of r is returned."""
    for k in range(_U(starts[j]), _U(starts[j + 1])):
        r[_U(rows[k])] -= d * data[k]
    return total - d * W * mean[j]


@_jit
def sparse_descent(
    data: Any, rows: Any, starts: Any, mean: Any, root: Any, W: float, norms: Any, yy: float,
    y: Any, r: Any, total: float, w: Any, ws: Any, lam: float, mu: float, positive: bool,
    tol: float, most: int,
) -> Any:  # fmt: skip
    """Descent on columns ``ws`` of a CSC matrix, implicitly centred; w ``(p,)`` and r in place.

    r is not centred itself: the true residual is ``r − root·total/W`` with ``root`` the square roots
    of the row weights and W their sum of squares. Epochs, the gap and the new ``total``.
    """
    m = len(ws)
    past = np.empty((MEMORY + 1, m))
    for a in range(m):
        past[0, a] = w[ws[a]]
    g, own = np.empty(m), np.empty(m)
    kept, epoch, gap = 1, 0, np.inf
    while epoch < most:
        epoch += 1
        moved = False
        for a in range(m):
            j = ws[a]
            h = norms[j]
            if h <= 0.0:
                continue
            s = 0.0
            for k in range(_U(starts[j]), _U(starts[j + 1])):
                s += data[k] * r[_U(rows[k])]
            old = w[j]
            new = _soft(s - mean[j] * total + h * old, lam, positive) / (h + mu)
            if new != old:
                w[j] = new
                moved = True
                total = sparse_move(data, rows, starts, mean, r, total, W, j, new - old)
        for a in range(m):
            past[kept, a] = w[ws[a]]
        kept += 1
        if kept > MEMORY:
            kept = 1
            c = _extrapolate(past)
            if len(c) and moved:
                far_r, far_total = r.copy(), total
                before, after = 0.0, 0.0
                for a in range(m):
                    far = 0.0
                    for b in range(MEMORY):
                        far += c[b] * past[b + 1, a]
                    own[a] = max(far, 0.0) if positive else far
                    j = ws[a]
                    if own[a] != w[j]:
                        far_total = sparse_move(
                            data, rows, starts, mean, far_r, far_total, W, j, own[a] - w[j]
                        )
                    before += lam * abs(w[j]) + 0.5 * mu * w[j] ** 2
                    after += lam * abs(own[a]) + 0.5 * mu * own[a] ** 2
                before += 0.5 * (inner(r, r) - total * total / W)
                after += 0.5 * (inner(far_r, far_r) - far_total * far_total / W)
                if after < before:
                    r[:] = far_r
                    total = far_total
                    for a in range(m):
                        w[ws[a]] = own[a]
            for a in range(m):
                past[0, a] = w[ws[a]]
        if epoch % MEMORY == 0 or not moved or epoch == most:
            for a in range(m):
                j = ws[a]
                s = 0.0
                for k in range(_U(starts[j]), _U(starts[j + 1])):
                    s += data[k] * r[_U(rows[k])]
                own[a] = w[j]
                g[a] = s - mean[j] * total - mu * w[j]
            rr = inner(r, r) - total * total / W
            yr = inner(y, r) - inner(y, root) * total / W
            gap = gap_of(yy, yr, rr, g, own, lam, mu, positive)[1]
            if gap <= tol or not moved:
                break
    return epoch, gap, total


__all__ = ["gap_of", "gram_descent", "inner", "without", "sparse_correlations", "sparse_descent"]
