"""Compiled passes over stacked activations (P, H, B): one walk through memory for each."""

from __future__ import annotations

from types import FunctionType
from typing import Any

import numba
import numpy as np
from numba import prange
from numba.extending import overload

from groundstate.compute.weight_line.line_numba import _GOLDEN, _S32, _mix

_njit: Any = numba.njit
_FAST = {"reassoc", "contract", "nsz", "arcp"}  # NaN and infinity keep their meaning


def passes(function: Any) -> tuple[Any, Any]:
    """The same loop for one thread and for all threads that numba has."""
    options = {"nogil": True, "error_model": "numpy", "fastmath": _FAST, "cache": True}
    twin = FunctionType(function.__code__, function.__globals__, function.__name__)
    twin.__module__ = function.__module__
    twin.__qualname__ = f"{function.__qualname__}_together"  # numba's cache knows it by this alone
    return _njit(**options)(function), _njit(parallel=True, **options)(twin)


def _tanh(x: Any) -> Any:
    raise TypeError("compiled code alone calls this")


@overload(_tanh, inline="always")
def _tanh_of(x: Any) -> Any:
    def plain(x: Any) -> Any:
        return np.tanh(x)

    if x != numba.float32:
        return plain

    # The rational function of Eigen: within a few units in the last place, and it vectorises.
    c = [np.float32(v) for v in (
        -2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08,
        1.48572235717979e-05, 6.37261928875436e-04, 4.89352455891786e-03,
    )]  # fmt: skip
    d = [np.float32(v) for v in (
        1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03,
    )]  # fmt: skip
    c0, c1, c2, c3, c4, c5, c6 = c
    d0, d1, d2, d3 = d
    top = np.float32(7.90531110763549805)

    def rational(x: Any) -> Any:
        t = min(max(x, -top), top)
        t = t if x == x else x  # NaN stays NaN
        s = t * t
        upper = t * ((((((c0 * s + c1) * s + c2) * s + c3) * s + c4) * s + c5) * s + c6)
        return upper / (((d0 * s + d1) * s + d2) * s + d3)

    return rational


def _bias_tanh(z: Any, b: Any) -> None:
    for p in prange(z.shape[0]):
        for h in range(z.shape[1]):
            for j in range(z.shape[2]):
                z[p, h, j] = _tanh(z[p, h, j] + b[p, h])


def _bias_relu(z: Any, b: Any) -> None:
    zero = z.dtype.type(0)
    for p in prange(z.shape[0]):
        for h in range(z.shape[1]):
            for j in range(z.shape[2]):
                v = z[p, h, j] + b[p, h]
                z[p, h, j] = zero if v < zero else v


def _bias(z: Any, b: Any) -> None:
    for p in prange(z.shape[0]):
        for h in range(z.shape[1]):
            for j in range(z.shape[2]):
                z[p, h, j] += b[p, h]


def _back_tanh(g: Any, a: Any, sums: Any) -> None:
    one = g.dtype.type(1)
    for p in prange(g.shape[0]):
        for h in range(g.shape[1]):
            total = g.dtype.type(0)
            for j in range(g.shape[2]):
                v = g[p, h, j] * (one - a[p, h, j] * a[p, h, j])
                g[p, h, j] = v
                total += v
            sums[p, h] = total


def _back_relu(g: Any, a: Any, sums: Any) -> None:
    zero = g.dtype.type(0)
    for p in prange(g.shape[0]):
        for h in range(g.shape[1]):
            total = zero
            for j in range(g.shape[2]):
                v = g[p, h, j] if a[p, h, j] > zero else zero
                g[p, h, j] = v
                total += v
            sums[p, h] = total


def _row_sums(g: Any, sums: Any) -> None:
    for p in prange(g.shape[0]):
        for h in range(g.shape[1]):
            total = g.dtype.type(0)
            for j in range(g.shape[2]):
                total += g[p, h, j]
            sums[p, h] = total


def _softmax(s: Any, y: Any, c: Any, losses: Any) -> None:
    """Cross-entropy of logits s (P, K, B), which become its gradient; c are shares of the rows."""
    for p in prange(s.shape[0]):
        q, r = p % len(y), p % len(c)
        top, norm = s[p, 0].copy(), np.zeros_like(s[p, 0])
        for k in range(1, s.shape[1]):
            for j in range(s.shape[2]):
                top[j] = max(top[j], s[p, k, j])
        total = 0.0
        for j in range(s.shape[2]):
            total += c[r, j] * np.float64(top[j] - s[p, y[q, j], j])
        for k in range(s.shape[1]):
            for j in range(s.shape[2]):
                v = np.exp(s[p, k, j] - top[j])
                s[p, k, j] = v
                norm[j] += v
        for j in range(s.shape[2]):
            total += c[r, j] * np.log(norm[j])
            norm[j] = c[r, j] / norm[j]
        for k in range(s.shape[1]):
            for j in range(s.shape[2]):
                s[p, k, j] *= norm[j]
        for j in range(s.shape[2]):
            s[p, y[q, j], j] -= c[r, j]
        losses[p] = total


def _squared(s: Any, y: Any, c: Any, losses: Any) -> None:
    """½(s - y)² of outputs s (P, M, B) and targets (1 or P, B, M)."""
    for p in prange(s.shape[0]):
        q, r = p % len(y), p % len(c)
        total = 0.0
        for m in range(s.shape[1]):
            for j in range(s.shape[2]):
                v = s[p, m, j] - y[q, j, m]
                total += 0.5 * c[r, j] * np.float64(v * v)
                s[p, m, j] = c[r, j] * v
        losses[p] = total


def _logistic(s: Any, y: Any, c: Any, losses: Any) -> None:
    """log(1 + exp s) - y s of logits s (P, M, B) and targets (1 or P, B, M) in [0, 1]."""
    one = s.dtype.type(1)
    for p in prange(s.shape[0]):
        q, r = p % len(y), p % len(c)
        total = 0.0
        for m in range(s.shape[1]):
            for j in range(s.shape[2]):
                v, t = s[p, m, j], y[q, j, m]
                e = np.exp(-abs(v))
                soft = np.log1p(e) + max(v, s.dtype.type(0))
                total += c[r, j] * np.float64(soft - t * v)
                s[p, m, j] = c[r, j] * ((one if v >= 0 else e) / (one + e) - t)
        losses[p] = total


def _masks(out: Any, stream: Any, count: Any, cut: Any) -> None:
    """`dropout.keep` at places b * H + h, for masks (P, H, B)."""
    one = np.int64(1 << 32)
    for p in prange(out.shape[0]):
        limit = np.uint64(cut[p])
        word = _mix(np.uint64(stream[p]) ^ _mix(np.uint64(count[p]) * _GOLDEN))
        scale = out.dtype.type(one) / out.dtype.type(one - cut[p])
        for h in range(out.shape[1]):
            for b in range(out.shape[2]):
                i = np.uint64(b * out.shape[1] + h + 1)
                kept = (_mix(word + i * _GOLDEN) >> _S32) >= limit
                out[p, h, b] = scale if kept else out.dtype.type(0)


MASKS = passes(_masks)
FORWARD = {"tanh": passes(_bias_tanh), "relu": passes(_bias_relu), "linear": passes(_bias)}
BACKWARD = {"tanh": passes(_back_tanh), "relu": passes(_back_relu)}
ROW_SUMS = passes(_row_sums)
HEADS = {"softmax": passes(_softmax), "squared": passes(_squared), "logistic": passes(_logistic)}
