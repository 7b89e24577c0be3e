"""Loops over the rows of a boosted tree: gradients as whole numbers, and values of leaves."""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.compute.kernels.compile_numba import outer
from groundstate.learn.solvers.boosting.histogram.cuts_numba import GROUP, MISSING
from groundstate.learn.solvers.boosting.histogram.tree_numba import COLUMN, LAST_CODE, LEFT


@outer
def descend(
    codes: Any, node: Any, sets: Any, nan_left: Any, value: Any, rows: Any, out: Any
) -> None:
    """Add the leaf values of these rows, which find their way by codes."""
    for i in range(len(rows)):
        r, v = rows[i], 0
        while node[v, LEFT] >= 0:
            j, last = node[v, COLUMN], node[v, LAST_CODE]
            c = codes[j // GROUP, r, j % GROUP]
            if c == MISSING:
                go = nan_left[v]
            elif last < 0:
                go = sets[v, c]
            else:
                go = c <= last
            v = node[v, LEFT] + (0 if go else 1)
        out[r] += value[v]


@outer
def quantised(
    g: Any, h: Any, weight: Any, rows: Any, bits: int, unit: float, pairs: Any, gw: Any, hw: Any
) -> Any:
    """Whole-number pairs of gradient, and hessian with weight; returns what one step of each is.

    A row's gradient is rounded before its weight multiplies it: twice the weight is the row twice.
    """
    plain = len(weight) == 0
    sum_g, sum_h = 0.0, 0.0
    for i in rows:
        w = 1.0 if plain else weight[i]
        gw[i], hw[i] = g[i] * w, h[i] * w
        sum_g += abs(gw[i])
        sum_h += hw[i]
    step_g = 2.0 ** (np.ceil(np.log2(sum_g)) + 1 - 60) if sum_g > 0 else 1.0
    step_h = 2.0 ** (np.ceil(np.log2(sum_h)) + 1 - (61 - bits)) if sum_h > 0 else 1.0
    per_g, per_h = 1.0 / step_g, 1.0 / step_h  # powers of two: exact
    for i in rows:
        w = 1.0 if plain else weight[i]
        whole = w == np.rint(w)
        a, b = g[i] * per_g, h[i] * per_h
        ga = np.rint(a) * w if whole else np.rint(a * w)
        hb = np.rint(b) * w if whole else np.rint(b * w)
        pairs[i, 0] = np.int64(ga)
        pairs[i, 1] = (np.int64(hb) << bits) + np.int64(np.rint(w / unit))
    return step_g, step_h


@outer
def add_values(value: Any, spans: Any, rows: Any, out: Any) -> None:
    """Add the values of leaves to their rows, spans (node, lo, hi) of ``rows``."""
    for k in range(len(spans)):
        v = value[spans[k, 0]]
        for i in range(spans[k, 1], spans[k, 2]):
            out[rows[i]] += v
