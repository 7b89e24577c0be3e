"""The noise of rows in one compiled pass on the CPU, the same numbers as `row_noise`'s tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.compute.kernels.compile_numba import inner, outer

_U = np.uint64
_GOLDEN, _M1, _M2 = _U(0x9E3779B97F4A7C15), _U(0xBF58476D1CE4E5B9), _U(0x94D049BB133111EB)
_S27, _S30, _S31, _S32, _LOW = _U(27), _U(30), _U(31), _U(32), _U(0xFFFFFFFF)
_HALF = 2.0**-32
_TURN = 2 * np.pi * _HALF


@inner
def _mix(w: Any) -> Any:
    w = (w ^ (w >> _S30)) * _M1
    w = (w ^ (w >> _S27)) * _M2
    return w ^ (w >> _S31)


@outer
def fill(words: Any, keys: Any, seed: int, out: Any) -> None:
    """Noise of rows of words ``(B, d)`` into ``(B, n k)``."""
    for b in range(words.shape[0]):
        h = np.int64(0)
        for j in range(words.shape[1]):
            h += np.int64(words[b, j]) * keys[j]
        w = _mix(_U(h) ^ _U(seed))
        for i in range(out.shape[1]):
            bits = _mix(w + _U(i + 1) * _GOLDEN)
            radius = np.sqrt(-2.0 * np.log((np.float64(bits >> _S32) + 1.0) * _HALF))
            out[b, i] = radius * np.cos(np.float64(bits & _LOW) * _TURN)
