r"""Shapley values of sums of trees, compiled.

For a row x and a background row b a leaf counts for those sets S of players for which every
question on its path is answered its way by x (players in S) or by b (the others). Let A be the
players whom x alone answers so and B those whom b alone does: the leaf value v then adds

.. math:: \frac{(|A|-1)!\,|B|!}{(|A|+|B|)!} v \text{ to } A,\qquad
   -\frac{|A|!\,(|B|-1)!}{(|A|+|B|)!} v \text{ to } B.

Rows that answer the questions on a path alike are one group, so that a leaf costs groups of rows
times groups of background rows, and a branch that no pair can reach is left.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.compute.kernels.compile_numba import inner, outer

_ONE, _ZERO = np.uint64(1), np.uint64(0)
MOST = 62  # players on one path


@inner
def _left(
    v: float, at: int, threshold: Any, nan_left: Any, cat_start: Any, cat_size: Any, bits: Any
) -> Any:
    """Whether a value goes left at a node."""
    go = v <= threshold[at]
    if v != v:
        go = nan_left[at]
    elif cat_start[at] >= 0:
        if v < 0 or v >= cat_size[at]:
            go = nan_left[at]
        else:
            c = np.uint64(v)
            word = np.uint64(bits[cat_start[at] + np.int64(c >> np.uint64(6))])
            go = (word >> (c & np.uint64(63))) & _ONE != _ZERO
    return go


@inner
def _ones(word: Any) -> int:
    found = 0
    while word != _ZERO:
        word &= word - _ONE
        found += 1
    return found


@inner
def _refine(
    group: Any, mask: Any, went: Any, side: int, bit: Any, table: Any, to: Any, masks: Any
) -> int:
    """Groups below one side of a node: who answered otherwise loses the player's bit."""
    for g in range(2 * len(group)):
        table[g] = -1
    found = 0
    for i in range(len(group)):
        g = group[i]
        if g < 0:
            to[i] = -1
            continue
        stays = went[i] == side and mask[g] & bit != _ZERO
        slot = 2 * g + (1 if stays else 0)
        if table[slot] < 0:
            table[slot] = found
            masks[found] = mask[g] if stays else mask[g] & ~bit
            found += 1
        to[i] = table[slot]
    return found


@inner
def _alive(own: Any, n_own: int, other: Any, n_other: int, whole: Any, keep: Any) -> int:
    """Which groups find a partner that answers what they do not."""
    found = 0
    for g in range(n_own):
        keep[g] = -1
        for h in range(n_other):
            if own[g] | other[h] == whole:
                keep[g] = found
                found += 1
                break
    return found


@inner
def _compact(group: Any, masks: Any, n: int, keep: Any) -> None:
    for i in range(len(group)):
        if group[i] >= 0:
            group[i] = keep[group[i]]
    for g in range(n):
        if keep[g] >= 0:
            masks[keep[g]] = masks[g]


@inner
def _leaf(
    xg: Any, xm: Any, n_x: int, bg: Any, bm: Any, n_b: int, weight: Any, whole: Any, m: int,
    player: Any, value: Any, column: int, factor: Any, mass: Any, share: Any, phi: Any,
) -> None:  # fmt: skip
    """Add one leaf to the values of the rows that can reach it."""
    for h in range(n_b):
        mass[h] = 0.0
    for i in range(len(bg)):
        if bg[i] >= 0:
            mass[bg[i]] += weight[i]
    for g in range(n_x):
        for q in range(m):
            share[g, q] = 0.0
        for h in range(n_b):
            if xm[g] | bm[h] != whole:
                continue
            mine, theirs = xm[g] & ~bm[h], bm[h] & ~xm[g]
            a, b = _ones(mine), _ones(theirs)
            up = factor[a - 1, b] * mass[h] if a > 0 else 0.0
            down = factor[b - 1, a] * mass[h] if b > 0 else 0.0
            for q in range(m):
                bit = _ONE << np.uint64(q)
                if mine & bit != _ZERO:
                    share[g, q] += up
                elif theirs & bit != _ZERO:
                    share[g, q] -= down
    for i in range(len(xg)):
        g = xg[i]
        if g < 0:
            continue
        for q in range(m):
            part = share[g, q]
            if part != 0.0:
                if column >= 0:
                    phi[i, player[q], column] += part * value[0]
                else:
                    for k in range(len(value)):
                        phi[i, player[q], k] += part * value[k]


@outer
def trees(
    x: Any, back: Any, weight: Any, players: Any, roots: Any, feature: Any, threshold: Any,
    left: Any, right: Any, nan_left: Any, cat_start: Any, cat_size: Any, bits: Any, value: Any,
    column: Any, factor: Any, depth: int, phi: Any,
) -> int:  # fmt: skip
    """phi[i, p, k] += what player p adds to output k of row i; the most players on a path.

    ``weight`` sums to one, ``players[j]`` is the player that column j belongs to, and
    ``factor[a, b]`` is :math:`a!\\,b!/(a+b+1)!`.
    """
    n, n_back = len(x), len(back)
    xg, bg = np.empty((depth, n), np.int32), np.empty((depth, n_back), np.int32)
    xm, bm = np.empty((depth, n), np.uint64), np.empty((depth, n_back), np.uint64)
    n_x, n_b = np.zeros(depth, np.int64), np.zeros(depth, np.int64)
    went_x, went_b = np.empty((depth, n), np.int8), np.empty((depth, n_back), np.int8)
    table = np.empty(2 * max(n, n_back), np.int32)
    keep_x, keep_b = np.empty(n, np.int32), np.empty(n_back, np.int32)
    node, turn = np.empty(depth, np.int64), np.empty(depth, np.int64)
    seat, m, most = np.empty((depth, MOST), np.int64), np.zeros(depth, np.int64), 0
    slot = np.zeros(depth, np.int64)
    mass, share = np.empty(n_back), np.empty((n, MOST))
    for t in range(len(roots)):
        xg[0, :], bg[0, :], xm[0, 0], bm[0, 0] = 0, 0, _ZERO, _ZERO
        n_x[0], n_b[0], m[0], node[0], turn[0] = 1, 1, 0, roots[t], 0
        level = 0
        while level >= 0:
            at = node[level]
            whole = (_ONE << np.uint64(m[level])) - _ONE
            j = feature[at]
            if j < 0:
                _leaf(xg[level], xm[level], n_x[level], bg[level], bm[level], n_b[level], weight,
                      whole, m[level], seat[level], value[at], column[t], factor, mass, share, phi)  # fmt: skip
                level -= 1
                continue
            if turn[level] == 0:
                for i in range(n):
                    if xg[level, i] >= 0:
                        go = _left(x[i, j], at, threshold, nan_left, cat_start, cat_size, bits)
                        went_x[level, i] = 0 if go else 1
                for i in range(n_back):
                    if bg[level, i] >= 0:
                        go = _left(back[i, j], at, threshold, nan_left, cat_start, cat_size, bits)
                        went_b[level, i] = 0 if go else 1
                place = -1
                for q in range(m[level]):
                    if seat[level, q] == players[j]:
                        place = q
                slot[level] = place
                if place < 0:
                    if m[level] == MOST:
                        return MOST + 1
                    slot[level] = m[level]
                    new = _ONE << np.uint64(m[level])
                    for g in range(n_x[level]):
                        xm[level, g] |= new
                    for g in range(n_b[level]):
                        bm[level, g] |= new
                    seat[level, m[level]] = players[j]
                    m[level] += 1
                    most = max(most, m[level])
            if turn[level] == 2:
                level -= 1
                continue
            side = turn[level]
            turn[level] += 1
            below = level + 1
            bit = _ONE << np.uint64(slot[level])
            whole = (_ONE << np.uint64(m[level])) - _ONE
            a = _refine(xg[level], xm[level], went_x[level], side, bit, table, xg[below], xm[below])
            b = _refine(bg[level], bm[level], went_b[level], side, bit, table, bg[below], bm[below])
            left_x = _alive(xm[below], a, bm[below], b, whole, keep_x)
            if left_x == 0:
                continue
            left_b = _alive(bm[below], b, xm[below], a, whole, keep_b)
            if left_x < a:
                _compact(xg[below], xm[below], a, keep_x)
            if left_b < b:
                _compact(bg[below], bm[below], b, keep_b)
            n_x[below], n_b[below], m[below], turn[below] = left_x, left_b, m[level], 0
            node[below] = left[at] if side == 0 else right[at]
            for q in range(m[level]):
                seat[below, q] = seat[level, q]
            level = below
    return most
