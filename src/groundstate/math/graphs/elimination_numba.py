"""Compiled: the steps of an elimination, one after the other, for rows of evidence."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from groundstate.compute.kernels.compile_numba import outer


@outer
def run(
    flat: Any,
    starts: Any,
    known: Any,
    levels: Any,
    heads: Any,
    members: Any,
    strides: Any,
    sizes: Any,
    space: int,
    out: Any,
    log_scale: Any,
) -> None:
    """Fill ``out`` ``(B, cells)`` and ``log_scale`` ``(B,)``.

    Parameters
    ----------
    flat : all given tables one after the other
    starts : where each given table begins in it, ``(T,)``
    known : what one level of each given variable adds to that, ``(T, E)``
    levels : evidence, ``(B, E)``
    heads : for each step its first member, its first size, the place of its result and whether its
        last variable is summed out, ``(S + 1, 4)``; the last row closes the one before
    members : tables that each step joins; from T on they are results of steps
    strides : of every member along the variables of its step
    sizes : of the variables of each step
    space : numbers that the results of all steps take
    """
    given = len(starts)
    work = np.empty(space)
    first = np.empty(given, np.int64)
    at = np.empty(len(members), np.int64)
    count = np.empty(len(sizes) + 1, np.int64)
    for row in range(len(levels)):
        for t in range(given):
            first[t] = starts[t]
            for e in range(levels.shape[1]):
                first[t] += known[t, e] * levels[row, e]
        scale = 0.0
        stride = 0
        for s in range(len(heads) - 1):
            lo, hi = heads[s, 0], heads[s + 1, 0]
            size, dims = heads[s, 1], heads[s + 1, 1] - heads[s, 1]
            place, last = heads[s, 2], heads[s, 3] == 0
            others = dims if last else dims - 1
            width = 1 if last else sizes[size + dims - 1]
            cells = 1
            for d in range(others):
                cells *= sizes[size + d]
                count[d] = 0
            for m in range(lo, hi):
                t = members[m]
                at[m] = first[t] if t < given else heads[t - given, 2]
            top = 0.0
            for c in range(cells):
                total = 0.0
                for k in range(width):
                    p = 1.0
                    for m in range(lo, hi):
                        step = 0 if last else strides[stride + (m - lo) * dims + dims - 1]
                        p *= (
                            flat[at[m] + k * step] if members[m] < given else work[at[m] + k * step]
                        )
                    total += p
                if last:
                    out[row, c] = total
                else:
                    work[place + c] = total
                top = max(top, total)
                for d in range(others - 1, -1, -1):
                    count[d] += 1
                    back = count[d] == sizes[size + d]
                    turns = 1 - sizes[size + d] if back else 1
                    for m in range(lo, hi):
                        at[m] += turns * strides[stride + (m - lo) * dims + d]
                    if not back:
                        break
                    count[d] = 0
            if not last and 0.0 < top < 1e-50:  # results stay near 1
                for c in range(cells):
                    work[place + c] /= top
                scale += math.log(top)
            stride += (hi - lo) * dims
        log_scale[row] = scale
