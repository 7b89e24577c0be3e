r"""Expected right neighbours and what they pull, compiled: one row against all others at a time.

Coordinates are ``(p, n)`` and rows stand sorted by class, so that loops run along contiguous memory. The
chances of a row are relative to that of its nearest neighbour and so cannot all vanish.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.compute.kernels.compile_numba import inner, outer
from groundstate.learn.solvers.latent.mixtures.pass_numba import exp_in_place

_FAST = {"contract", "reassoc", "nsz", "nnan"}
_FAR = 1e300
_LOWEST = -100.0  # smaller chances add nothing, and products with this one stay normal numbers


@inner(fastmath=_FAST)
def _chances(z: Any, w: Any, i: int, u: Any, buffer: Any) -> None:
    """u ← numbers proportional to the chance that row i takes row j; a row of weight 3 has two twins."""
    n = w.size
    for j in range(n):
        gap = z[0, j] - z[0, i]
        u[j] = gap * gap
    for c in range(1, len(z)):
        for j in range(n):
            gap = z[c, j] - z[c, i]
            u[j] += gap * gap
    twins = max(w[i] - 1.0, 0.0)
    u[i] = 0.0 if twins > 0.0 else _FAR
    least = _FAR
    for j in range(n):
        least = min(least, u[j])
    for j in range(n):
        u[j] = max(least - u[j], _LOWEST)
    exp_in_place(u, buffer.view(np.int64), buffer)
    for j in range(n):
        u[j] *= w[j]
    u[i] = twins


@inner(fastmath=_FAST)
def _pull(z: Any, v: Any, i: int, out: Any) -> None:
    for c in range(len(z)):
        mine, here = 0.0, z[c, i]
        for j in range(v.size):
            step = v[j] * (here - z[c, j])
            mine += step
            out[c, j] -= step
        out[c, i] += mine


@outer(fastmath=_FAST)
def neighborhood(z: Any, w: Any, starts: Any, ends: Any, lo: int, hi: int, out: Any) -> float:
    r""":math:`\sum_iw_ip_i` of rows lo..hi, and ``out`` ← :math:`\sum_iW_{ij}(z_i - z_j)` from both ends
    of each pair, ``(p, n)``; the class of row i stands at starts[i]..ends[i]."""
    n = w.size
    total, u, buffer = 0.0, np.empty(n), np.empty(n)
    for i in range(lo, hi):
        _chances(z, w, i, u, buffer)
        whole = mine = 0.0
        for j in range(n):
            whole += u[j]
        for j in range(starts[i], ends[i]):
            mine += u[j]
        if not whole > 0.0:  # a row without neighbours
            continue
        share = mine / whole
        scale = w[i] / whole
        total += w[i] * share
        for j in range(starts[i]):
            u[j] *= -scale * share
        for j in range(starts[i], ends[i]):
            u[j] *= scale * (1.0 - share)
        for j in range(ends[i], n):
            u[j] *= -scale * share
        _pull(z, u, i, out)
    return total
