r"""The best cut of a node by impurity, over codes of columns: compiled inner loops of CART.

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

from groundstate.learn.solvers.trees.compile_numba import inner, sort_by

GINI, ENTROPY, SQUARED, POISSON, ABSOLUTE = 0, 1, 2, 3, 4
TIE = 1e-11
NONE = -1e300
_U = np.uint64


class Columns(NamedTuple):
    """The table as the compiled loops see it."""

    codes: Any  # (d, n)
    n_bins: Any  # (d,)
    categories: Any  # (d,), 0 for numbers
    signs: Any  # (d,), +1 rising, −1 falling, 0 free
    levels: Any  # flat: the smallest value of every code, column after column
    start: Any  # (d + 1,) where a column begins in ``levels``
    missing: int  # code of NaN


class Rule(NamedTuple):
    """What is a good cut, and which are allowed."""

    kind: int
    size: int  # sums per side: classes, or 1 + outputs
    least: float  # weight of a side
    columns: int  # columns tried per node
    fast: bool  # two sums per side, columns of numbers: see `tree_fast`


class Cut(NamedTuple):
    """Where the best cut of a node is written; one entry each, so that it can be changed."""

    number: Any  # gain, threshold or NaN
    place: Any  # column, last code on the left, first on the right, NaN goes left
    chosen: Any  # (codes,) categories that go left


class Work(NamedTuple):
    """Memory that lives as long as a tree grows."""

    hist: Any  # (codes * size,)
    count: Any  # (codes,)
    present: Any  # (codes,)
    order: Any  # (d,)
    total: Any  # (size,)
    gap: Any  # (size,) sums of the rows with NaN
    side: Any  # (size,)
    label: Any  # (n,) of the rows of a node
    stats: Any  # (n, size), (n, 1) weights, or (n, 2) weights and weighted values
    spare: Any  # (n,) rows
    keys: Any  # (2, n) codes with places


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
def score(kind: int, s: Any) -> float:
    """The table above, for one side."""
    w, out = 0.0, 0.0
    if kind in (GINI, ENTROPY):
        for c in range(len(s)):
            w += s[c]
            if kind == GINI:
                out += s[c] * s[c]
            elif s[c] > 0:
                out += s[c] * np.log(s[c])
        return out / w if kind == GINI else out - w * np.log(w)
    w = s[0]
    for m in range(1, len(s)):
        if kind == SQUARED:
            out += s[m] * s[m] / w
        elif s[m] > 0:
            out += s[m] * np.log(s[m] / w)
        else:
            return NONE
    return out


@inner
def weight_of(kind: int, s: Any) -> float:
    """The weight behind sums."""
    if kind != GINI and kind != ENTROPY:
        return s[0]
    w = 0.0
    for c in range(len(s)):
        w += s[c]
    return w


@inner
def both(rule: Rule, total: Any, left: Any, right: Any, sign: int) -> float:
    """Score of a cut from the sums of its left side, NONE where it is not allowed."""
    kind = rule.kind
    for c in range(len(total)):
        right[c] = total[c] - left[c]
    wl, wr = weight_of(kind, left), weight_of(kind, right)
    if wl < rule.least or wr < rule.least or wl <= 0 or wr <= 0:
        return NONE
    if sign != 0:
        class_like = kind in (GINI, ENTROPY)
        k = len(total) - 1  # the second of two classes, or the only output
        vl, vr = left[k] / wl, right[k] / wr
        if (sign > 0 and vl > vr) or (sign < 0 and vl < vr):
            return NONE
        if class_like and len(total) > 2:
            return NONE
    a, b = score(kind, left), score(kind, right)
    return NONE if a <= NONE or b <= NONE else a + b


@inner
def _sorted_present(present: Any, n: int) -> None:
    gap = 1
    while gap < n // 9:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, n):
            v = present[i]
            k = i
            while k >= gap and present[k - gap] > v:
                present[k] = present[k - gap]
                k -= gap
            present[k] = v
        gap //= 3


@inner
def _fill(cols: Columns, rule: Rule, j: int, rows: Any, lo: int, hi: int, work: Work) -> int:
    """Sums per code of one column; returns how many codes are present (NaN apart)."""
    size, classes = rule.size, rule.kind == GINI or rule.kind == ENTROPY
    hist, count, present, codes = work.hist, work.count, work.present, cols.codes[j]
    n, bins = hi - lo, cols.n_bins[j]
    for k in range(size):
        work.gap[k] = 0.0
    found = 0
    for i in range(n):
        c = np.int64(codes[rows[lo + i]])
        if c == cols.missing:
            if classes:
                work.gap[work.label[i]] += work.stats[i, 0]
            else:
                for k in range(size):
                    work.gap[k] += work.stats[i, k]
            continue
        if count[c] == 0:
            present[found] = c
            found += 1
        count[c] += 1
        if classes:
            hist[c * size + work.label[i]] += work.stats[i, 0]
        else:
            for k in range(size):
                hist[c * size + k] += work.stats[i, k]
    if found * 6 > bins:  # walking over all codes is cheaper than sorting
        found = 0
        for b in range(bins):
            present[found] = b
            found += count[b] > 0
    else:
        _sorted_present(present, found)
    return found


@inner
def _clear(size: int, found: int, work: Work) -> None:
    for i in range(found):
        c = work.present[i]
        work.count[c] = 0
        for k in range(size):
            work.hist[c * size + k] = 0.0


@inner
def _by_target(rule: Rule, found: int, work: Work) -> None:
    """Order the present categories by their mean target, of the heaviest class for classes."""
    size = rule.size
    k = 0
    for c in range(size):
        k = c if work.total[c] > work.total[k] else k
    key = np.empty(found)
    for i in range(found):
        at = work.present[i] * size
        if rule.kind > ENTROPY:
            key[i] = work.hist[at + 1] / work.hist[at]
        else:
            w = 0.0
            for c in range(size):
                w += work.hist[at + c]
            key[i] = work.hist[at + k] / w
    order = np.arange(found)
    sort_by(key, order, found)
    for i in range(found):
        order[i] = work.present[order[i]]
    for i in range(found):
        work.present[i] = order[i]


@inner
def column(
    cols: Columns, rule: Rule, j: int, rows: Any, lo: int, hi: int, work: Work, right: Any, cut: Cut
) -> bool:
    """Try all cuts of one column; False when it is constant in this node."""
    size = rule.size
    found = _fill(cols, rule, j, rows, lo, hi, work)
    gap = weight_of(rule.kind, work.gap) > 0
    if found + gap <= 1:
        _clear(size, found, work)
        return False
    if cols.categories[j]:
        _by_target(rule, found, work)
    side = work.side
    for nan_left in range(2 if gap else 1):
        for k in range(size):
            side[k] = work.gap[k] if nan_left else 0.0
        # with NaN on the right, all values may stand together on the left
        last = found if gap and not nan_left else found - 1
        for i in range(last):
            at = work.present[i] * size
            for k in range(size):
                side[k] += work.hist[at + k]
            value = both(rule, work.total, side, right, cols.signs[j])
            if value > cut.number[0] + TIE * abs(cut.number[0]):
                cut.number[0], cut.number[1] = value, np.nan
                cut.place[0], cut.place[1] = j, work.present[i]
                cut.place[2] = work.present[i + 1] if i + 1 < found else -1
                cut.place[3] = nan_left
                if cols.categories[j]:
                    for m in range(len(cut.chosen)):
                        cut.chosen[m] = False
                    for m in range(i + 1):
                        cut.chosen[work.present[m]] = True
                    cut.place[1] = -1
    _clear(size, found, work)
    return True


__all__ = ["ABSOLUTE", "ENTROPY", "GINI", "NONE", "POISSON", "SQUARED", "TIE", "Columns", "Cut", "Rule",
           "Work", "both", "column", "drawn", "mix", "score", "weight_of"]  # fmt: skip
