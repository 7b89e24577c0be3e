r"""What a good cut of a node is.

With sums S over the rows of a side (weights per class, or weight and weighted targets), every
criterion is a score that is additive over the two sides and larger for purer ones:

=============  ==================================================================
gini           :math:`\sum_c S_c^2 / W`
entropy        :math:`\sum_c S_c \log S_c - W\log W`
squared        :math:`\sum_m (\sum w y_m)^2 / W`
poisson        :math:`\sum_m (\sum w y_m) \log(\sum w y_m / W)`
=============  ==================================================================
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from groundstate.compute.kernels.compile_numba import inner

GINI, ENTROPY, SQUARED, POISSON, ABSOLUTE = 0, 1, 2, 3, 4
TIE = 1e-11
NONE = -1e300
# the best cut of a node: score, threshold or NaN, column, last code on the left (−1: a set of
# categories), first code on the right (−1: only NaN goes right), whether NaN goes left
SCORE, THRESHOLD, COLUMN, LOW, HIGH, NAN_LEFT, CUT = 0, 1, 2, 3, 4, 5, 6
TOTAL, GAP, SIDE, REST = 0, 1, 2, 3  # sums of a node, of its NaN, of the left and the right side
_U = np.uint64


class Rule(NamedTuple):
    """What is a good cut, and which are allowed."""

    kind: int
    size: int  # sums per side: classes, or 1 + outputs
    least: float  # weight of a side
    columns: int  # columns tried per node


@inner
def mix(word: Any) -> Any:
    """The finaliser of SplitMix64."""
    w = (word ^ (word >> _U(30))) * _U(0xBF58476D1CE4E5B9)
    w = (w ^ (w >> _U(27))) * _U(0x94D049BB133111EB)
    return w ^ (w >> _U(31))


@inner
def drawn(columns: int, order: Any, t: int, seed: Any) -> Any:
    """The column that comes at place t: all in order, or by a shuffle that goes as far as asked."""
    d = len(order)
    if columns < d:
        pick = t + np.int64(mix(seed + _U(t) * _U(0x9E3779B97F4A7C15)) % _U(d - t))
        order[t], order[pick] = order[pick], order[t]
    return np.int64(order[t])


@inner
def score(kind: int, sums: Any, at: int) -> float:
    """The table above, for one side."""
    w, out = 0.0, 0.0
    size = sums.shape[1]
    if kind <= ENTROPY:
        for c in range(size):
            s = sums[at, c]
            w += s
            if kind == GINI:
                out += s * s
            elif s > 0:
                out += s * np.log(s)
        return out / w if kind == GINI else out - w * np.log(w)
    w = sums[at, 0]
    for m in range(1, size):
        s = sums[at, m]
        if kind == SQUARED:
            out += s * s / w
        elif s > 0:
            out += s * np.log(s / w)
        else:
            return NONE
    return out


@inner
def weight_of(kind: int, sums: Any, at: int) -> float:
    """The weight behind sums."""
    w = sums[at, 0]
    if kind <= ENTROPY:
        for c in range(1, sums.shape[1]):
            w += sums[at, c]
    return w


@inner
def both(rule: Rule, sums: Any, sign: int) -> float:
    """Score of a cut from the sums of its left side, NONE where it is not allowed."""
    kind, size = rule.kind, sums.shape[1]
    for c in range(size):
        sums[REST, c] = sums[TOTAL, c] - sums[SIDE, c]
    wl, wr = weight_of(kind, sums, SIDE), weight_of(kind, sums, REST)
    if wl < rule.least or wr < rule.least or wl <= 0 or wr <= 0:
        return NONE
    if sign != 0:
        # of the second of two classes, or of the only output
        vl, vr = sums[SIDE, size - 1] / wl, sums[REST, size - 1] / wr
        if vl > vr if sign > 0 else vl < vr:
            return NONE
        if kind <= ENTROPY and size > 2:
            return NONE
    a, b = score(kind, sums, SIDE), score(kind, sums, REST)
    return NONE if a <= NONE or b <= NONE else a + b


@inner
def add(rule: Rule, stats: Any, r: Any, factor: float, sums: Any, at: int) -> None:
    """Add what is known of a row: weight and class, or weight and weighted targets."""
    if rule.kind <= ENTROPY:
        sums[at, np.int64(stats[r, 1])] += factor * stats[r, 0]
    else:
        for k in range(rule.size):
            sums[at, k] += factor * stats[r, k]


@inner
def keep(cut: Any, value: float, j: int, low: Any, high: Any, nan_left: int) -> bool:
    """Take a cut behind a code where it is better than the best so far."""
    if not value > cut[SCORE] + TIE * abs(cut[SCORE]):
        return False
    cut[SCORE], cut[THRESHOLD], cut[COLUMN] = value, np.nan, j
    cut[LOW], cut[HIGH], cut[NAN_LEFT] = low, high, nan_left
    return True
