r"""One pass of EM over rows, compiled: densities, responsibilities and statistics of a tile.

The log density of every component is linear in features φ(y) of a row, and so are its statistics,

.. math:: \log\pi_z N(y; z) = \theta_z^\top\varphi(y),\qquad
          S_z = \sum_i w_i\,r_{iz}\,\varphi(y_i),\qquad \varphi = (y_iy_j)_{i\le j},\,y,\,1,

so a pass is two matrix products per tile, which never leaves the cache. Components so narrow that the
digits of θ would not do are measured from the differences :math:`x - \mu_z` themselves.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.compute.kernels.compile_numba import inner, outer

FULL, DIAGONAL, LINEAR = 0, 1, 2  # φ = (y yᵀ, y, 1), (y², y, 1), (y, 1), less what all share

_LOG2E = 1.4426950408889634
_LN2_HIGH, _LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10
_ROUND = 6755399441055744.0  # 1.5·2^52: adding it leaves the nearest integer in the low bits
_LOWEST = -708.0
NOTHING = 1e-290  # the share of a row so far away that its exponential was cut at e⁻⁷⁰⁸
_C = tuple(1.0 / float(np.prod(np.arange(1.0, i + 1.0))) for i in range(14))  # Taylor, |r| ≤ ln2/2


_FAST = {"contract", "reassoc", "nsz"}


@outer(fastmath={"contract"})  # reassociation would undo the rounding
def exp_in_place(x: Any, bits: Any, scale: Any) -> None:
    """x ← eˣ for x ≤ 0, to the last bits, in loops that vectorise (math.exp does not).

    ``bits`` is the integer view of ``scale``, a buffer as long as x.
    """
    for i in range(x.size):
        x[i] = max(x[i], _LOWEST)
        scale[i] = x[i] * _LOG2E + _ROUND
    for i in range(x.size):
        n = scale[i] - _ROUND
        r = (x[i] - n * _LN2_HIGH) - n * _LN2_LOW
        p = _C[13]
        p = p * r + _C[12]
        p = p * r + _C[11]
        p = p * r + _C[10]
        p = p * r + _C[9]
        p = p * r + _C[8]
        p = p * r + _C[7]
        p = p * r + _C[6]
        p = p * r + _C[5]
        p = p * r + _C[4]
        p = p * r + _C[3]
        p = p * r + _C[2]
        p = p * r + 1.0
        x[i] = p * r + 1.0
    for i in range(x.size):
        bits[i] = (bits[i] + 1023) << 52
    for i in range(x.size):
        x[i] *= scale[i]


@inner(fastmath=_FAST)
def _features(y: Any, phi: Any, kind: int) -> None:
    """φ ``(F, n)`` of rows that stand as columns of ``y`` ``(d, n)``."""
    d, n = y.shape
    at = 0
    if kind == FULL:
        for a in range(d):
            for b in range(a, d):
                for i in range(n):
                    phi[at, i] = y[a, i] * y[b, i]
                at += 1
    elif kind == DIAGONAL:
        for a in range(d):
            for i in range(n):
                phi[at, i] = y[a, i] * y[a, i]
            at += 1
    for a in range(d):
        for i in range(n):
            phi[at, i] = y[a, i]
        at += 1
    for i in range(n):
        phi[at, i] = 1.0


@inner(fastmath=_FAST)
def _soften(r: Any, top: Any, total: Any, buffer: Any) -> None:
    """r ← exp(r − top), with the largest and the summed entry of every column."""
    k, n = r.shape
    for i in range(n):
        top[i] = r[0, i]
        total[i] = 0.0
    for z in range(1, k):
        for i in range(n):
            top[i] = max(top[i], r[z, i])
    for z in range(k):
        for i in range(n):
            r[z, i] -= top[i]
    exp_in_place(r.reshape(k * n), buffer[: k * n].view(np.int64), buffer[: k * n])
    for z in range(k):
        for i in range(n):
            total[i] += r[z, i]


@inner(fastmath=_FAST)
def _narrow_logs(x: Any, start: int, mu: Any, U: Any, constant: float, gap: Any, out: Any) -> None:
    """out ← constant − ½‖Uᵀ(x − μ)‖² of the rows of a tile; U ``(d, d)``, or ``(1, d)`` if diagonal."""
    n, d = gap.shape
    for i in range(n):
        for j in range(d):
            gap[i, j] = x[start + i, j] - mu[j]
    if len(U) == d:
        for i in range(n):
            s = 0.0
            for b in range(d):
                v = 0.0
                for a in range(b + 1):  # U is upper triangular
                    v += gap[i, a] * U[a, b]
                s += v * v
            out[i] = constant - 0.5 * s
    else:
        for i in range(n):
            s = 0.0
            for j in range(d):
                s += (gap[i, j] * U[0, j]) ** 2
            out[i] = constant - 0.5 * s


@inner(fastmath=_FAST)
def _narrow_sums(share: Any, gap: Any, first: Any, second: Any) -> None:
    """Weighted sums ``(d,)`` and products ``(d, d)``, or squares ``(1, d)``, of differences."""
    n, d = gap.shape
    for i in range(n):
        r = share[i] if share[i] > NOTHING else 0.0
        for a in range(d):
            v = r * gap[i, a]
            first[a] += v
            if len(second) == d:
                for b in range(d):
                    second[a, b] += v * gap[i, b]
            else:
                second[0, a] += v * gap[i, a]


@outer(fastmath=_FAST)
def em_pass(
    x: Any, w: Any, origin: Any, turn: Any, theta: Any, kind: int, narrow: Any, mu: Any, U: Any,
    constant: Any, groups: int, tile: int, lo: int, hi: int,
) -> Any:  # fmt: skip
    r"""Statistics ``(F, R k)``, :math:`\sum w\log p` ``(R,)`` and :math:`\sum w` of rows lo..hi, and
    sums of differences for the components listed as ``narrow``, of R mixtures, the ``groups``.

    ``y = turn (x - origin)``, θ is ``(R k, F)``, ``w`` of length zero stands for ones. ``mu`` ``(s, d)``,
    ``U`` and ``constant`` are of the narrow ones. Rows are columns of a tile, so every loop runs along
    memory.
    """
    d, m, f = x.shape[1], theta.shape[0], theta.shape[1]
    k = m // groups
    part, sums = np.empty((f, m)), np.zeros((f, m))
    buffer = np.empty(tile * k)
    value, weight = np.zeros(groups), 0.0
    first, second = np.zeros(mu.shape), np.zeros(U.shape)
    n = 0
    for start in range(lo, hi, tile):
        if n != min(tile, hi - start):  # the first tile and the last
            n = min(tile, hi - start)
            diff, y, phi = np.empty((n, d)), np.empty((d, n)), np.empty((f, n))
            r, share = np.empty((m, n)), np.empty((n, m))
            top, total = np.empty(n), np.empty(n)
            gap = np.empty((len(narrow), n, d))
        for i in range(n):
            for j in range(d):
                diff[i, j] = x[start + i, j] - origin[j]
        if kind == DIAGONAL:
            for i in range(n):
                for j in range(d):
                    y[j, i] = diff[i, j] * turn[j, j]
        else:
            np.dot(turn, diff.T, y)
        _features(y, phi, kind)
        np.dot(theta, phi, r)
        for a in range(len(narrow)):
            _narrow_logs(x, start, mu[a], U[a], constant[a], gap[a], r[narrow[a]])
        for i in range(n):
            weight += w[start + i] if w.size else 1.0
        for g in range(groups):
            _soften(r[g * k : (g + 1) * k], top, total, buffer)
            for i in range(n):
                wi = w[start + i] if w.size else 1.0
                value[g] += wi * (top[i] + np.log(total[i]))
                total[i] = wi / total[i]
            for i in range(n):
                for z in range(g * k, (g + 1) * k):
                    share[i, z] = r[z, i] * total[i]
        for a in range(len(narrow)):
            _narrow_sums(share[:, narrow[a]], gap[a], first[a], second[a])
        np.dot(phi, share, part)
        for a in range(f):
            for z in range(m):
                sums[a, z] += part[a, z]
    return sums, first, second, value, weight
