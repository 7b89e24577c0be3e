"""Cuts of a column of codes, by sums per code."""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.compute.kernels.compile_numba import inner
from groundstate.compute.kernels.order_numba import sort_by
from groundstate.learn.solvers.trees.impurity_numba import (
    ENTROPY,
    GAP,
    LOW,
    SIDE,
    TOTAL,
    Rule,
    add,
    both,
    keep,
    weight_of,
)


@inner
def _fill(
    codes: Any, bins: int, missing: int, rule: Rule, rows: Any, lo: int, hi: int, stats: Any,
    hist: Any, present: Any, sums: Any,
) -> int:  # fmt: skip
    """Sums per code, which `_clear` empties; returns how many codes are present (NaN apart)."""
    for k in range(rule.size):
        sums[GAP, k] = 0.0
    few = (hi - lo) * 6 <= bins
    found = 0
    for i in range(hi - lo):
        c = np.int64(codes[rows[lo + i]])
        if c == missing:
            add(rule, stats, i, 1.0, sums, GAP)
            continue
        if few and hist[c, rule.size] == 0:
            present[found] = c
            found += 1
        hist[c, rule.size] += 1
        add(rule, stats, i, 1.0, hist, c)
    if few:  # sorting them is cheaper than walking over all codes
        for i in range(1, found):
            c, k = present[i], i
            while k > 0 and present[k - 1] > c:
                present[k] = present[k - 1]
                k -= 1
            present[k] = c
        return found
    for b in range(bins):
        present[found] = b
        found += hist[b, rule.size] > 0
    return found


@inner
def _clear(found: int, present: Any, hist: Any) -> None:
    for i in range(found):
        for k in range(hist.shape[1]):
            hist[present[i], k] = 0.0


@inner
def _by_target(rule: Rule, found: int, hist: Any, present: Any, sums: Any) -> None:
    """Order the present categories by their mean target, of the heaviest class for classes."""
    heaviest = 0
    for c in range(rule.size):
        heaviest = c if sums[TOTAL, c] > sums[TOTAL, heaviest] else heaviest
    key, order = np.empty(found), np.empty(found, np.int64)
    for i in range(found):
        order[i], at = i, present[i]
        if rule.kind > ENTROPY:
            key[i] = hist[at, 1] / hist[at, 0]
        else:
            w = 0.0
            for c in range(rule.size):
                w += hist[at, c]
            key[i] = hist[at, heaviest] / w
    sort_by(key, order, found)
    for i in range(found):
        order[i] = present[order[i]]
    for i in range(found):
        present[i] = order[i]


@inner
def coded_column(
    codes: Any, bins: int, missing: int, j: int, sign: int, rule: Rule, rows: Any, lo: int, hi: int,
    stats: Any, hist: Any, present: Any, sums: Any, chosen: Any, cut: Any,
) -> bool:  # fmt: skip
    """Try all cuts of one column; False when it is constant in this node.

    Codes are numbers in their order, or categories, of which ``chosen`` takes those that go left.
    """
    found = _fill(codes, bins, missing, rule, rows, lo, hi, stats, hist, present, sums)
    gap = weight_of(rule.kind, sums, GAP) > 0
    if found + gap <= 1:
        _clear(found, present, hist)
        return False
    if chosen is not None:
        _by_target(rule, found, hist, present, sums)
    for nan_left in range(2 if gap else 1):
        for k in range(rule.size):
            sums[SIDE, k] = sums[GAP, k] if nan_left else 0.0
        # with NaN on the right, all values may stand together on the left
        last = found if gap and not nan_left else found - 1
        for i in range(last):
            at = present[i]
            for k in range(rule.size):
                sums[SIDE, k] += hist[at, k]
            value = both(rule, sums, sign)
            high = present[i + 1] if i + 1 < found else -1
            if keep(cut, value, j, at, high, nan_left) and chosen is not None:
                for m in range(len(chosen)):
                    chosen[m] = False
                for m in range(i + 1):
                    chosen[present[m]] = True
                cut[LOW] = -1
    _clear(found, present, hist)
    return True
