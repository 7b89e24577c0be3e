"""Compiled: the loss of a mixture density and its gradient, row by row in one pass."""

from __future__ import annotations

import math
from typing import Any

from numba import njit


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def head_rows(
    out: Any,
    y: Any,
    k: int,
    scales: int,
    learned: bool,
    min_scale: float,
    nll: Any,
    grad: Any,
    gy: Any,
) -> None:
    """Fill −log p ``(B,)`` and its gradients in the outputs ``(B, O)`` and in y ``(B, d)``.

    ``out`` holds k·d means, k·scales raw scales and, if ``learned``, k logits per row.
    """
    d = y.shape[1]
    first, last = k * d, k * (d + scales)
    joint = [0.0] * k
    for b in range(len(out)):
        top, total, most = -math.inf, 0.0, -math.inf
        if learned:
            for z in range(k):
                most = max(most, out[b, last + z])
            for z in range(k):
                total += math.exp(out[b, last + z] - most)
        for z in range(k):
            value = out[b, last + z] if learned else 0.0
            for j in range(d):
                at = first + z * scales + (j if scales > 1 else 0)
                if j == 0 or scales > 1:
                    scale = math.exp(out[b, at])
                    sigma = scale + min_scale
                    log_sigma = math.log(sigma)
                    grad[b, at] = 0.0
                u = (y[b, j] - out[b, z * d + j]) / sigma
                value -= log_sigma + 0.5 * u * u
                grad[b, z * d + j] = -u / sigma
                grad[b, at] += (1.0 - u * u) * (scale / sigma)
            joint[z] = value
            top = max(top, value)
        mass = 0.0
        for z in range(k):
            joint[z] = math.exp(joint[z] - top)
            mass += joint[z]
        weights = math.log(total) + most if learned else math.log(k)
        nll[b] = weights + 0.5 * d * math.log(2 * math.pi) - top - math.log(mass)
        for j in range(d):
            gy[b, j] = 0.0
        for z in range(k):
            r = joint[z] / mass
            for j in range(d):
                grad[b, z * d + j] *= r
                gy[b, j] -= grad[b, z * d + j]
            for j in range(scales):
                grad[b, first + z * scales + j] *= r
            if learned:
                grad[b, last + z] = math.exp(out[b, last + z] - most) / total - r
