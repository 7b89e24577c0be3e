r"""Pushes by a tree of cells, compiled (Barnes and Hut).

Rows are sorted along a curve that visits one cell of a grid after the other, so that a cell of the
tree is a range of rows. A cell of width w at distance d with :math:`w < \theta d` pushes like so many
rows at its centre; a nearer one is opened.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.compute.kernels.compile_numba import inner, outer

LEAF = 8  # rows of a cell that is not divided
FREE = {"nnan", "ninf", "nsz", "contract", "reassoc", "arcp"}


@inner
def _spread(value: int, p: int, bits: int) -> int:
    """The bits of a number with p − 1 zeros after each."""
    out = 0
    for b in range(bits):
        out |= ((value >> b) & 1) << (b * p)
    return out


@outer
def codes(Y: Any, low: Any, width: float, bits: int, out: Any) -> None:
    """The cell of each row along the curve; coordinates ``(p, n)``."""
    p, n = Y.shape
    scale = (2.0**bits) / width
    top = (1 << bits) - 1
    for i in range(n):
        code = 0
        for c in range(p):
            cell = min(top, max(0, int((Y[c, i] - low[c]) * scale)))
            code |= _spread(cell, p, bits) << c
        out[i] = code


@outer
def build(
    code: Any, Y: Any, bits: int, width: float, first: Any, last: Any, child: Any, after: Any,
    centre: Any, side: Any,
) -> int:  # fmt: skip
    """Cells of sorted rows: ranges of rows, where the children stand, centres; how many there are.

    The children of a cell stand one after the other from ``child`` to ``after``; a leaf has none.
    """
    p, n = Y.shape
    ways = 1 << p
    level = np.empty(len(first), np.int64)
    first[0], last[0], level[0] = 0, n, 0
    count, at = 1, 0
    while at < count:
        lo, hi, deep = first[at], last[at], level[at]
        child[at] = after[at] = count
        side[at] = width / 2.0**deep
        for c in range(p):
            total = 0.0
            for i in range(lo, hi):
                total += Y[c, i]
            centre[at, c] = total / (hi - lo)
        if hi - lo > LEAF and deep < bits and count + ways <= len(first):
            shift = p * (bits - 1 - deep)
            start = lo
            while start < hi:
                digit = code[start] >> shift
                end = start + 1
                # the end of the range with this digit, by doubling and halving
                step = 1
                while end < hi and code[min(end + step, hi) - 1] >> shift == digit:
                    end = min(end + step, hi)
                    step *= 2
                while step > 0:
                    if end + step <= hi and code[end + step - 1] >> shift == digit:
                        end += step
                    else:
                        step //= 2
                first[count], last[count], level[count] = start, end, deep + 1
                count += 1
                start = end
            after[at] = count
        at += 1
    return count


@inner(fastmath=FREE)
def _walk2(
    i: int, x: Any, y: Any, first: Any, last: Any, child: Any, after: Any, centre: Any, side: Any,
    theta: float, stack: Any, out: Any,
) -> float:  # fmt: skip
    a = b = z = 0.0
    x0, y0 = x[i], y[i]
    stack[0], size = 0, 1
    while size > 0:
        size -= 1
        cell = stack[size]
        u, v = x0 - centre[cell, 0], y0 - centre[cell, 1]
        s = u * u + v * v
        if side[cell] * side[cell] < theta * theta * s:
            q = 1.0 / (1.0 + s)
            m = last[cell] - first[cell]
            z += m * q
            q *= m * q
            a += q * u
            b += q * v
        elif child[cell] == after[cell]:
            for j in range(first[cell], last[cell]):
                u, v = x0 - x[j], y0 - y[j]
                q = 1.0 / (1.0 + u * u + v * v)
                z += q
                q *= q
                a += q * u
                b += q * v
        else:
            for c in range(child[cell], after[cell]):
                stack[size] = c
                size += 1
    out[i, 0], out[i, 1] = a, b
    return z


@inner(fastmath=FREE)
def _walk(
    i: int, Y: Any, first: Any, last: Any, child: Any, after: Any, centre: Any, side: Any,
    theta: float, stack: Any, out: Any,
) -> float:  # fmt: skip
    p, z = len(Y), 0.0
    for c in range(p):
        out[i, c] = 0.0
    stack[0], size = 0, 1
    while size > 0:
        size -= 1
        cell = stack[size]
        s = 0.0
        for c in range(p):
            s += (Y[c, i] - centre[cell, c]) ** 2
        if side[cell] * side[cell] < theta * theta * s:
            q = 1.0 / (1.0 + s)
            m = last[cell] - first[cell]
            z += m * q
            q *= m * q
            for c in range(p):
                out[i, c] += q * (Y[c, i] - centre[cell, c])
        elif child[cell] == after[cell]:
            for j in range(first[cell], last[cell]):
                s = 1.0
                for c in range(p):
                    s += (Y[c, i] - Y[c, j]) ** 2
                q = 1.0 / s
                z += q
                q *= q
                for c in range(p):
                    out[i, c] += q * (Y[c, i] - Y[c, j])
        else:
            for c in range(child[cell], after[cell]):
                stack[size] = c
                size += 1
    return z


@outer
def walk(
    Y: Any, first: Any, last: Any, child: Any, after: Any, centre: Any, side: Any, theta: float,
    lo: int, hi: int, out: Any,
) -> float:  # fmt: skip
    """Pushes of rows lo..hi (in the tree's order) into ``out``, and their part of Z."""
    stack = np.empty(4096, np.int64)
    z, flat = 0.0, len(Y) == 2
    for i in range(lo, hi):
        if flat:
            z += _walk2(i, Y[0], Y[1], first, last, child, after, centre, side, theta, stack, out)
        else:
            z += _walk(i, Y, first, last, child, after, centre, side, theta, stack, out)
        z -= 1.0  # the row itself, in its leaf
    return z
