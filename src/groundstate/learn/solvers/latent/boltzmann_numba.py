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
def _up(x: Any, W: Any, c: Any, a: Any) -> None:
    """Logits of z given x, ``(n, l)``."""
    np.dot(x, W, a)
    for i in range(len(a)):
        for j in range(c.size):
            a[i, j] += c[j]


@_jit
def _down(z: Any, W: Any, b: Any, a: Any) -> None:
    """Logits of x given z, ``(n, d)``."""
    np.dot(z, W.T, a)
    for i in range(len(a)):
        for k in range(b.size):
            a[i, k] += b[k]


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
def _raise(x: Any, s: Any, sign: float, grad: Any) -> None:
    """grad += sign xᵀ s, ``(d, l)``."""
    found = np.dot(x.T, s)
    for k in range(len(found)):
        for j in range(found.shape[1]):
            grad[k, j] += x.dtype.type(sign) * found[k, j]


@_jit
def _see(u: Any, W: Any, b: Any, z: Any, v: Any) -> None:
    """Visible bits of the chains from their hidden ones, with uniforms u ``(n, d)``."""
    n, d = v.shape
    back, E, buffer = np.empty((n, d), W.dtype), np.empty(n * d), np.empty(n * d)
    _down(z, W, b, back)
    _exponentials(back.reshape(n * d), E, buffer)
    _throw(back, E, u, v)


@_jit
def _hide(u: Any, W: Any, c: Any, v: Any, z: Any) -> None:
    """Hidden bits of the chains from their visible ones, with uniforms u ``(n, l)``."""
    n, l = z.shape
    a, E, buffer = np.empty((n, l), W.dtype), np.empty(n * l), np.empty(n * l)
    _up(v, W, c, a)
    _exponentials(a.reshape(n * l), E, buffer)
    _throw(a, E, u, z)


@_jit
def _learn(
    x: Any, weight: Any, total: float, u: Any, z: Any, v: Any, W: Any, b: Any, c: Any,
    dW: Any, db: Any, dc: Any, rate: float, means: Any,
) -> float:  # fmt: skip
    """Gradients of the difference of free energies between rows x and chains v, and one step
    along them; the difference. Logits of the chains also give their next hidden bits z, with
    uniforms u ``(n, l)``. ``weight`` of length zero stands for ones."""
    m, n = len(x), len(v)
    d, l = W.shape
    here, there = np.empty(m), np.full(n, 1.0 / n)
    for i in range(m):
        here[i] = (weight[i] if weight.size else 1.0) / total
    most = max(m, n) * l
    E, buffer, a = np.empty(most), np.empty(most), np.empty((max(m, n), l), W.dtype)
    s = np.empty((max(m, n), l), W.dtype)
    dW[:] = 0
    db[:] = 0
    dc[:] = 0
    value = 0.0
    for side in range(2):
        rows, share, sign = (x, here, -1.0) if side == 0 else (v, there, 1.0)
        size = len(rows)
        _up(rows, W, c, a[:size])
        _exponentials(a[:size].reshape(size * l), E[: size * l], buffer)
        soft = _means(a[:size], E, share, s[:size])
        for i in range(size):
            for k in range(d):
                soft += share[i] * rows[i, k] * b[k]
        means[side] = -soft
        value += sign * soft
        _raise(rows, s[:size], sign, dW)
        for i in range(size):
            for j in range(l):
                dc[j] += sign * s[i, j]
            for k in range(d):
                db[k] += sign * share[i] * rows[i, k]
    _throw(a[:n], E, u, z)
    step = W.dtype.type(rate)
    for k in range(d):
        b[k] -= step * db[k]
        for j in range(l):
            W[k, j] -= step * dW[k, j]
    for j in range(l):
        c[j] -= step * dc[j]
    return value


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
    values, means, l = np.empty(len(ends)), np.zeros(2), len(c)
    lo = 0
    for t in range(len(ends)):
        sweeps = u.shape[1]
        for s in range(sweeps):
            _see(u[t, s, :, l:], W, b, z, v)
            if s + 1 < sweeps:
                _hide(u[t, s, :, :l], W, c, v, z)
        hi = ends[t]
        w = weight[lo:hi] if weight.size else weight[:0]
        last = u[t, sweeps - 1, :, :l]
        values[t] = _learn(x[lo:hi], w, totals[t], last, z, v, W, b, c, dW, db, dc, rates[t], means)
        lo = hi
    return values, means
