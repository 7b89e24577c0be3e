r"""One step of persistent contrastive divergence for two layers of bits, compiled.

With :math:`E = e^{-|a|}` of a logit a, :math:`\sigma(a)` is 1 or E over 1 + E, a bit is one where
:math:`u(1 + E)` is below 1 or E, and :math:`\sum_j\log(1 + e^{a_j})` is the sum of the positive
logits plus the log of a product: one exponential per logit serves all three.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from groundstate.learn.solvers.latent.mixtures.pass_numba import exp_in_place

_TERMS = 512  # factors of at most 2 whose product is still finite


def _jit(function: Any) -> Any:
    return njit(cache=True, nogil=True, fastmath={"contract", "reassoc", "nsz"})(function)


@_jit
def _add(shift: Any, a: Any) -> None:
    """a ← a + shift, ``(n, m)`` and ``(m,)``."""
    for i in range(len(a)):
        for j in range(shift.size):
            a[i, j] += shift[j]


@_jit
def _exponentials(a: Any, E: Any, buffer: Any) -> None:
    """E ← exp(−|a|)."""
    for i in range(a.size):
        E[i] = -abs(a[i])
    exp_in_place(E, buffer[: a.size].view(np.int64), buffer[: a.size])


@_jit
def _throw(a: Any, E: Any, u: Any, bits: Any) -> None:
    """bits ← u < σ(a), from E = exp(−|a|); all ``(n, m)``."""
    n, m = bits.shape
    for i in range(n):
        for j in range(m):
            e = E[i * m + j]
            top = 1.0 if a[i, j] >= 0 else e
            bits[i, j] = 1.0 if u[i, j] * (1.0 + e) < top else 0.0


@_jit
def _means(a: Any, E: Any, share: Any, s: Any) -> float:
    """s ← share σ(a), and the weighted sum of log(1 + exp a)."""
    n, l = a.shape
    total = 0.0
    for i in range(n):
        soft = 0.0
        for start in range(0, l, _TERMS):
            product, positive = 1.0, 0.0
            for j in range(start, min(start + _TERMS, l)):
                e, logit = E[i * l + j], a[i, j]
                product *= 1.0 + e
                positive += max(logit, 0.0)
                s[i, j] = share[i] * (1.0 if logit >= 0 else e) / (1.0 + e)
            soft += positive + np.log(product)
        total += share[i] * soft
    return total


@_jit
def _sweep(u: Any, W: Any, shift: Any, given: Any, bits: Any, a: Any, E: Any, buffer: Any) -> None:
    """Bits of one layer from those of the other, by W ``(given, bits)`` and uniforms u ``(n, m)``."""
    n, m = bits.shape
    logits = a[: n * m].reshape(n, m)
    np.dot(given, W, logits)
    _add(shift, logits)
    _exponentials(a[: n * m], E[: n * m], buffer)
    _throw(logits, E, u, bits)


@_jit
def _learn(
    rows: Any, m: int, share: Any, u: Any, z: Any, W: Any, b: Any, c: Any,
    dW: Any, db: Any, dc: Any, rate: float, means: Any, a: Any, s: Any, E: Any, buffer: Any,
) -> float:  # fmt: skip
    """Gradients of the difference of free energies between the first m rows and the chains after
    them, and one step along them; the difference. Logits of the chains also give their next hidden
    bits z, with uniforms u ``(n, l)``."""
    size, d = rows.shape
    l = c.size
    logits, signed = a[: size * l].reshape(size, l), s[: size * l].reshape(size, l)
    np.dot(rows, W, logits)
    _add(c, logits)
    _exponentials(a[: size * l], E[: size * l], buffer)
    _throw(logits[m:], E[m * l :], u, z)
    means[0] = -_means(logits[:m], E, share, signed)
    means[1] = _means(logits[m:], E[m * l :], share[m:], signed[m:])
    np.dot(rows.T, signed, dW)
    db[:] = 0
    dc[:] = 0
    for i in range(size):
        w, seen = share[i], 0.0
        for k in range(d):
            seen += rows[i, k] * b[k]
            db[k] += w * rows[i, k]
        for j in range(l):
            dc[j] += signed[i, j]
        if i < m:
            means[0] -= w * seen
        else:
            means[1] += w * seen
    means[0], means[1] = -means[0], -means[1]
    step = W.dtype.type(rate)
    for k in range(d):
        b[k] -= step * db[k]
        for j in range(l):
            W[k, j] -= step * dW[k, j]
    for j in range(l):
        c[j] -= step * dc[j]
    return means[0] - means[1]


@_jit
def pcd_steps(
    x: Any, weight: Any, ends: Any, totals: Any, u: Any, z: Any, v: Any,
    W: Any, b: Any, c: Any, dW: Any, db: Any, dc: Any, rates: Any,
) -> Any:  # fmt: skip
    """Learning steps on batches of x that end at ``ends``, with uniforms u ``(T, k, n, l + d)``.

    The chains z, v and θ = W, b, c change in place, dW, db, dc hold the last gradients. Returns the
    difference of free energies of every step, ``(T,)``, and the mean free energies of rows and
    chains in the last.
    """
    values, means = np.empty(len(ends)), np.zeros(2)
    n, d, l = len(v), b.size, c.size
    most = ends[0]
    for t in range(1, len(ends)):
        most = max(most, ends[t] - ends[t - 1])
    stack, share = np.empty((most + n, d), W.dtype), np.empty(most + n)
    cells = max((most + n) * l, n * d)
    a, s = np.empty(cells, W.dtype), np.empty((most + n) * l, W.dtype)
    E, buffer = np.empty(cells), np.empty(cells)
    sweeps, lo = u.shape[1], 0
    for t in range(len(ends)):
        for i in range(sweeps):
            _sweep(u[t, i, :, l:], W.T, b, z, v, a, E, buffer)
            if i + 1 < sweeps:
                _sweep(u[t, i, :, :l], W, c, v, z, a, E, buffer)
        hi = ends[t]
        m = hi - lo
        rows = stack[: m + n]
        rows[:m] = x[lo:hi]
        rows[m:] = v
        for i in range(m):
            share[i] = -(weight[lo + i] if weight.size else 1.0) / totals[t]
        share[m : m + n] = 1.0 / n
        last = u[t, sweeps - 1, :, :l]
        values[t] = _learn(
            rows, m, share, last, z, W, b, c, dW, db, dc, rates[t], means, a, s, E, buffer
        )
        lo = hi
    return values, means
