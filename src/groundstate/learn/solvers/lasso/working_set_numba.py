r"""Coordinate descent on a working set, compiled.

One step solves :math:`\min_{w_j} \tfrac12\|r\|^2 + \lambda|w_j| + \tfrac\mu2 w_j^2` in one coordinate:
:math:`w_j \leftarrow S(x_j^\top r + \|x_j\|^2w_j, \lambda)/(\|x_j\|^2 + \mu)` with the soft threshold S.
Every five epochs the last iterates are extrapolated (Anderson) and kept if the objective falls.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from groundstate.compute.kernels import compile_numba

MEMORY = 5  # epochs between extrapolations
_U = np.uint64  # no question whether an index counts from the end
_FAST = {"contract", "reassoc", "nsz"}

inner = partial(compile_numba.inner, fastmath=_FAST)
outer = partial(compile_numba.outer, fastmath=_FAST)


def gap_of(
    yy: float, yr: float, rr: float, top: float, one: float, two: float, lam: float, mu: float,
    positive: bool,
) -> tuple[float, float, float]:  # fmt: skip
    """Objective and duality gap, and the dual scale.

    From ‖y‖², yᵀr, ‖r‖², the largest |g| (g where weights are positive) of g = Xᵀr − μw, ‖w‖₁, ‖w‖².
    """
    primal = 0.5 * rr + lam * one + 0.5 * mu * two
    size = rr + mu * two
    s = yr / size if size > 0 else 0.0
    if top > 0:
        s = min(max(s, -lam / top if not positive else 0.0), lam / top)
    if positive:
        s = max(s, 0.0)
    return primal, max(primal - (s * yr - 0.5 * s * s * size), 0.0), s


gap_at: Any = inner(gap_of)


@inner
def _soft(u: float, lam: float, positive: bool) -> float:
    if u > lam:
        return u - lam
    if u < -lam and not positive:
        return u + lam
    return 0.0


@inner
def dot(a: Any, b: Any) -> float:
    """aᵀb on the thread that asks: a library would wake others for vectors this short."""
    s = 0.0
    for i in range(len(a)):
        s += a[i] * b[i]
    return s


@inner
def without(q: Any, H: Any, w: Any, g: Any) -> None:
    """g = q − Hw for a symmetric H and a w with many zeros."""
    for i in range(len(g)):
        g[i] = q[i]
    for j in range(len(w)):
        if w[j] != 0.0:
            for i in range(len(g)):
                g[i] -= w[j] * H[j, i]


@inner
def _extrapolate(past: Any, U: Any) -> bool:
    """U[MEMORY], the weights of the last iterates ``(MEMORY + 1, m)`` whose differences cancel best.

    They solve (DDᵀ) c = 1, by Cholesky's factors in place, and are divided by their sum.
    """
    m, top = past.shape[1], 0.0
    for a in range(MEMORY):
        for b in range(a + 1):
            s = 0.0
            for j in range(m):
                s += (past[a + 1, j] - past[a, j]) * (past[b + 1, j] - past[b, j])
            U[a, b] = s
        top += U[a, a]
    if not top > 0:
        return False
    for a in range(MEMORY):
        U[a, a] += 1e-14 * top
        for b in range(a + 1):
            s = U[a, b]
            for k in range(b):
                s -= U[a, k] * U[b, k]
            if a > b:
                U[a, b] = s / U[b, b]
            elif s > 0:
                U[a, a] = np.sqrt(s)
            else:
                return False
    c, total = U[MEMORY], 0.0
    for a in range(MEMORY):
        s = 1.0
        for k in range(a):
            s -= U[a, k] * c[k]
        c[a] = s / U[a, a]
    for a in range(MEMORY - 1, -1, -1):
        s = c[a]
        for k in range(a + 1, MEMORY):
            s -= U[k, a] * c[k]
        c[a] = s / U[a, a]
        total += c[a]
    if not abs(total) > 1e-300:
        return False
    for a in range(MEMORY):
        c[a] /= total
    return True


@inner
def _quadratic(yy: float, q: Any, g: Any, w: Any, lam: float, mu: float) -> float:
    one, two, cross = 0.0, 0.0, 0.0
    for j in range(len(w)):
        one += abs(w[j])
        two += w[j] * w[j]
        cross += w[j] * (q[j] + g[j])
    return 0.5 * (yy - cross) + lam * one + 0.5 * mu * two


@inner
def descent(
    H: Any, q: Any, yy: float, w: Any, lam: float, mu: float, positive: bool, tol: float, most: int
) -> int:
    """Descent with the Gram matrix H ``(m, m)`` and q = Xᵀy; w in place. Epochs."""
    m = len(w)
    past, U = np.empty((MEMORY + 4, m)), np.empty((MEMORY + 1, MEMORY))
    g, far, g_far = past[MEMORY + 1], past[MEMORY + 2], past[MEMORY + 3]
    without(q, H, w, g)  # Xᵀr
    for j in range(m):
        past[0, j] = w[j]
    kept, epoch = 1, 0
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
        for j in range(m):
            past[kept, j] = w[j]
        kept += 1
        if kept > MEMORY:
            kept = 1
            if moved and _extrapolate(past, U):
                for j in range(m):
                    s = 0.0
                    for a in range(MEMORY):
                        s += U[MEMORY, a] * past[a + 1, j]
                    far[j] = max(s, 0.0) if positive else s
                without(q, H, far, g_far)
                now = _quadratic(yy, q, g, w, lam, mu)
                if _quadratic(yy, q, g_far, far, lam, mu) < now:
                    for j in range(m):
                        w[j], g[j] = far[j], g_far[j]
            for j in range(m):
                past[0, j] = w[j]
        if epoch % MEMORY == 0 or not moved or epoch == most:
            wq, wg, top, one, two = 0.0, 0.0, 0.0, 0.0, 0.0
            for j in range(m):
                wq += w[j] * q[j]
                wg += w[j] * g[j]
                slope = g[j] - mu * w[j]
                top = max(top, slope if positive else abs(slope))
                one += abs(w[j])
                two += w[j] * w[j]
            rr = max(yy - wq - wg, 0.0)
            gap = gap_at(yy, yy - wq, rr, top, one, two, lam, mu, positive)[1]
            if gap <= tol or not moved:
                break
    return epoch


@outer
def gram_descent(
    H: Any, q: Any, yy: float, w: Any, lam: float, mu: float, positive: bool, tol: float, most: int
) -> int:
    """`descent` for Python."""
    return descent(H, q, yy, w, lam, mu, positive, tol, most)


@inner
def _correlation(data: Any, rows: Any, lo: int, hi: int, r: Any) -> float:
    s = 0.0
    for k in range(_U(lo), _U(hi)):
        s += data[k] * r[_U(rows[k])]
    return s


@outer
def sparse_correlations(
    data: Any, rows: Any, starts: Any, mean: Any, r: Any, total: float, columns: Any, out: Any
) -> None:
    """Centred xⱼᵀr of the listed columns; ``total`` is the weighted sum of r."""
    for a in range(len(columns)):
        j = columns[a]
        out[j] = _correlation(data, rows, starts[j], starts[j + 1], r) - mean[j] * total


@inner
def _move(data: Any, rows: Any, lo: int, hi: int, r: Any, d: float) -> None:
    """Residual after w_j += d."""
    for k in range(_U(lo), _U(hi)):
        r[_U(rows[k])] -= d * data[k]


@outer
def sparse_descent(
    data: Any, rows: Any, starts: Any, mean: Any, root: Any, W: float, norms: Any, yy: float,
    y: Any, r: Any, total: float, w: Any, ws: Any, lam: float, mu: float, positive: bool,
    tol: float, most: int,
) -> Any:  # fmt: skip
    """Descent on columns ``ws`` of a CSC matrix, implicitly centred; w ``(p,)`` and r in place.

    r is not centred itself: the true residual is ``r − root·total/W`` with ``root`` the square roots
    of the row weights and W their sum of squares. Epochs and the new ``total``.
    """
    m = len(ws)
    past, U = np.empty((MEMORY + 1, m)), np.empty((MEMORY + 1, MEMORY))
    for a in range(m):
        past[0, a] = w[ws[a]]
    own, far_r = np.empty(m), np.empty(len(r))
    kept, epoch = 1, 0
    while epoch < most:
        epoch += 1
        moved = False
        for a in range(m):
            j = ws[a]
            h = norms[j]
            if h <= 0.0:
                continue
            s = _correlation(data, rows, starts[j], starts[j + 1], r)
            old = w[j]
            new = _soft(s - mean[j] * total + h * old, lam, positive) / (h + mu)
            if new != old:
                w[j] = new
                moved = True
                _move(data, rows, starts[j], starts[j + 1], r, new - old)
                total -= (new - old) * W * mean[j]
        for a in range(m):
            past[kept, a] = w[ws[a]]
        kept += 1
        if kept > MEMORY:
            kept = 1
            if moved and _extrapolate(past, U):
                for i in range(len(r)):
                    far_r[i] = r[i]
                far_total, before, after = total, 0.0, 0.0
                for a in range(m):
                    far = 0.0
                    for b in range(MEMORY):
                        far += U[MEMORY, b] * past[b + 1, a]
                    own[a] = max(far, 0.0) if positive else far
                    j = ws[a]
                    if own[a] != w[j]:
                        _move(data, rows, starts[j], starts[j + 1], far_r, own[a] - w[j])
                        far_total -= (own[a] - w[j]) * W * mean[j]
                    before += lam * abs(w[j]) + 0.5 * mu * w[j] * w[j]
                    after += lam * abs(own[a]) + 0.5 * mu * own[a] * own[a]
                before += 0.5 * (dot(r, r) - total * total / W)
                after += 0.5 * (dot(far_r, far_r) - far_total * far_total / W)
                if after < before:
                    total = far_total
                    for i in range(len(r)):
                        r[i] = far_r[i]
                    for a in range(m):
                        w[ws[a]] = own[a]
            for a in range(m):
                past[0, a] = w[ws[a]]
        if epoch % MEMORY == 0 or not moved or epoch == most:
            top, one, two = 0.0, 0.0, 0.0
            for a in range(m):
                j = ws[a]
                s = _correlation(data, rows, starts[j], starts[j + 1], r)
                slope = s - mean[j] * total - mu * w[j]
                top = max(top, slope if positive else abs(slope))
                one += abs(w[j])
                two += w[j] * w[j]
            rr = dot(r, r) - total * total / W
            yr = dot(y, r) - dot(y, root) * total / W
            if gap_at(yy, yr, rr, top, one, two, lam, mu, positive)[1] <= tol or not moved:
                break
    return epoch, total
