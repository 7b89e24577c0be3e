"""A random cut of a column, as extremely random trees take them."""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.learn.tree_jit import inner
from groundstate.learn.tree_kernels import ENTROPY, GINI, TIE, Columns, Cut, Rule, Work, both, mix

_U = np.uint64


@inner
def _last(cols: Columns, begin: int, low: int, high: int, threshold: float) -> int:
    """The last code whose level is not above a threshold, which lies between two levels."""
    last, above = low, high
    while last + 1 < above:
        middle = (last + above) // 2
        if cols.levels[begin + middle] <= threshold:
            last = middle
        else:
            above = middle
    return last


@inner
def _add_left(
    cols: Columns, rule: Rule, begin: int, n: int, low: int, high: int, last: int, few: bool,
    threshold: float, nan_left: int, work: Work,
) -> None:  # fmt: skip
    """Sums of the left side of a cut, over the codes in ``work.spare``.

    A side is a product, not a branch: half of the branches would be foreseen wrongly. Two sums are
    kept beside each other and not in memory.
    """
    classes, a, b = rule.kind == GINI or rule.kind == ENTROPY, 0.0, 0.0
    for k in range(rule.size):
        work.side[k] = 0.0
    for u in range(n):
        c = np.int64(work.spare[u])
        if c == cols.missing:
            goes = 1.0 if nan_left > 0 else 0.0
        elif few and c != low:
            goes = 1.0 if c != high and cols.levels[begin + c] <= threshold else 0.0
        else:
            goes = 1.0 if c <= last else 0.0
        if rule.size == 2:
            x = goes * work.stats[u, 0]
            if classes:
                second = 1.0 if work.label[u] > 0 else 0.0
                a += x * (1.0 - second)
                b += x * second
            else:
                a += x
                b += goes * work.stats[u, 1]
        elif classes:
            work.side[work.label[u]] += goes * work.stats[u, 0]
        else:
            for k in range(rule.size):
                work.side[k] += goes * work.stats[u, k]
    if rule.size == 2:
        work.side[0], work.side[1] = a, b


@inner
def random_column(
    cols: Columns, rule: Rule, j: int, rows: Any, lo: int, hi: int, work: Work, right: Any,
    seed: Any, cut: Cut,
) -> bool:  # fmt: skip
    """Try one cut of a column, uniform between its smallest and largest value in the node."""
    codes, size, own = cols.codes[j], rule.size, work.spare
    low, high, gaps, n = 1 << 40, -1, 0, _U(hi - lo)
    for u in range(n):
        c = np.int64(codes[rows[_U(lo) + u]])
        own[u] = c
        if c == cols.missing:
            gaps += 1
        else:
            low = min(low, int(c))
            high = max(high, int(c))
    if high < 0 or (low == high and gaps == 0):
        return False
    share = (mix(seed ^ mix(_U(j + 1))) >> _U(11)) * 2.0**-53
    nan_left = np.int64(mix(seed ^ mix(_U(j + 1)) ^ _U(0xD1B54A32D192ED03)) & _U(1)) if gaps else 0
    begin = cols.start[j]
    a, b = cols.levels[begin + low], cols.levels[begin + high]
    threshold = a + share * (b - a)
    if low == high:
        if nan_left:
            return False
        threshold = a
    few = n <= _U(8)  # then values are compared, and codes only for a cut that is taken
    last = low if few else _last(cols, begin, low, high, threshold)
    _add_left(cols, rule, begin, n, low, high, last, few, threshold, nan_left, work)
    value = both(rule, work.total, work.side, right, cols.signs[j])
    if value > cut.number[0] + TIE * abs(cut.number[0]):
        if few:
            last = _last(cols, begin, low, high, threshold)
        cut.number[0], cut.number[1] = value, threshold
        cut.place[0], cut.place[1], cut.place[2], cut.place[3] = j, last, last + 1, nan_left
        for k in range(size):
            cut.left[k] = work.side[k]
    return True


__all__ = ["random_column"]
