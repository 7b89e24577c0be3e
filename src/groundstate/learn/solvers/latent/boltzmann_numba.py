r"""One step of persistent contrastive divergence for two layers of bits, compiled, in float32.

With :math:`E = e^{-|a|}` of a logit a, :math:`\sigma(a)` is 1 or E over 1 + E, a bit is one where
:math:`u(1 + E)` is below 1 or E, and :math:`\sum_j\log(1 + e^{a_j})` is the sum of the positive
logits plus the log of a product: one exponential per logit serves all three.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from groundstate.math.distributions.bernoulli_numba import exp_float

_TERMS = 64  # factors of at most 2 whose product is still finite
_ONE, _ZERO = np.float32(1.0), np.float32(0.0)


def _jit(function: Any) -> Any:
    exact = {"contract", "nnan", "nsz"}
    # a check for zero before every quotient would keep loops from vectorising
    return njit(cache=True, nogil=True, error_model="numpy", fastmath=exact | {"reassoc"})(function)


@njit(cache=True, nogil=True, fastmath={"contract", "nnan", "nsz"})
def _exponentials(a: Any, shift: Any, E: Any) -> None:
    """a ← a + shift and E ← exp(−|a|), ``(n, m)``; sums in another order would undo the rounding."""
    n, m = a.shape
    for i in range(n):
        for j in range(m):
            logit = a[i, j] + shift[j]
            a[i, j] = logit
            E[i, j] = exp_float(-abs(logit))


@_jit
def _throw(a: Any, E: Any, u: Any, bits: Any) -> None:
    """bits ← u < σ(a), from E = exp(−|a|); all ``(n, m)``."""
    n, m = bits.shape
    for i in range(n):
        for j in range(m):
            e = E[i, j]
            top = _ONE if a[i, j] >= _ZERO else e
            bits[i, j] = _ONE if u[i, j] * (_ONE + e) < top else _ZERO


@_jit
def _softplus(a: Any, E: Any) -> float:
    """The sum of log(1 + exp a), ``(m,)``."""
    found = 0.0
    for start in range(0, a.size, _TERMS):
        logits, falls = a[start : start + _TERMS], E[start : start + _TERMS]
        product, positive = _ONE, _ZERO
        for j in range(logits.size):
            product *= _ONE + falls[j]
            positive += max(logits[j], _ZERO)
        found += positive + np.log(product)
    return found


@_jit
def _means(a: Any, E: Any, share: Any, s: Any) -> float:
    """s ← share σ(a), and the weighted sum of log(1 + exp a)."""
    n, l = a.shape
    total = 0.0
    for i in range(n):
        w, logits, falls, signed = share[i], a[i], E[i], s[i]
        for j in range(l):
            top = _ONE if logits[j] >= _ZERO else falls[j]
            signed[j] = w * top / (_ONE + falls[j])
        total += w * _softplus(logits, falls)
    return total


@_jit
def _sweep(u: Any, W: Any, shift: Any, given: Any, bits: Any, a: Any, E: Any) -> None:
    """Bits of one layer from those of the other, by W ``(given, bits)`` and uniforms u ``(n, m)``."""
    n, m = bits.shape
    logits, falls = a[: n * m].reshape(n, m), E[: n * m].reshape(n, m)
    np.dot(given, W, logits)
    _exponentials(logits, shift, falls)
    _throw(logits, falls, u, bits)


@_jit
def _learn(
    rows: Any, m: int, share: Any, u: Any, z: Any, W: Any, b: Any, c: Any,
    dW: Any, db: Any, dc: Any, rate: float, means: Any, a: Any, s: Any, E: Any,
) -> float:  # fmt: skip
    """Gradients of the difference of free energies between the first m rows and the chains after
    them, and one step along them; the difference. Logits of the chains also give their next hidden
    bits z, with uniforms u ``(n, l)``."""
    size, d = rows.shape
    l = c.size
    logits, signed = a[: size * l].reshape(size, l), s[: size * l].reshape(size, l)
    falls = E[: size * l].reshape(size, l)
    np.dot(rows, W, logits)
    _exponentials(logits, c, falls)
    _throw(logits[m:], falls[m:], u, z)
    means[0] = -_means(logits[:m], falls[:m], share[:m], signed[:m])
    means[1] = _means(logits[m:], falls[m:], share[m:], signed[m:])
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
    """Learning steps on batches of x that end at ``ends``, with uniforms u ``(T, k, n (l + d))``, those of
    hidden bits first.

    The chains z, v and θ = W, b, c change in place, dW, db, dc hold the last gradients. Returns the
    difference of free energies of every step, ``(T,)``, and the mean free energies of rows and
    chains, ``(T, 2)``.
    """
    values, means = np.empty(len(ends)), np.empty((len(ends), 2))
    n, d, l = len(v), b.size, c.size
    most = ends[0]
    for t in range(1, len(ends)):
        most = max(most, ends[t] - ends[t - 1])
    stack, share = np.empty((most + n, d), W.dtype), np.empty(most + n, W.dtype)
    cells = max((most + n) * l, n * d)
    a, s = np.empty(cells, W.dtype), np.empty((most + n) * l, W.dtype)
    E = np.empty(cells, W.dtype)
    sweeps, lo = u.shape[1], 0
    for t in range(len(ends)):
        for i in range(sweeps):
            _sweep(u[t, i, n * l :].reshape(n, d), W.T, b, z, v, a, E)
            if i + 1 < sweeps:
                _sweep(u[t, i, : n * l].reshape(n, l), W, c, v, z, a, E)
        hi = ends[t]
        m = hi - lo
        rows = stack[: m + n]
        rows[:m] = x[lo:hi]
        rows[m:] = v
        for i in range(m):
            share[i] = -(weight[lo + i] if weight.size else 1.0) / totals[t]
        share[m : m + n] = 1.0 / n
        last = u[t, sweeps - 1, : n * l].reshape(n, l)
        values[t] = _learn(
            rows, m, share, last, z, W, b, c, dW, db, dc, rates[t], means[t], a, s, E
        )
        lo = hi
    return values, means
