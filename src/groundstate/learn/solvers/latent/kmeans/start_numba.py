r"""k-means++ over the weight line, compiled.

Each content of the table is one row u with a length on the line, and
:math:`\|u-v\|^2 = \|u\|^2 - 2u^\top v + \|v\|^2`. Rows stand as columns of tiles ``(T, d, TILE)``, so
every loop runs along memory; rows that fill up the last tile have no length.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.compute.kernels.compile_numba import inner, outer

TILE = 256
SAME = 1e-14  # of the sum of both squares: what rounding leaves between equal rows
_FAST = {"contract", "reassoc", "nsz"}


@outer(fastmath=_FAST)
def tiles(x: Any, rows: Any, origin: Any, scale: float, out: Any, norm: Any) -> None:
    """Listed rows of x about an origin as columns of tiles, and their squares."""
    for i in range(len(rows)):
        s = 0.0
        for j in range(x.shape[1]):
            v = np.float32((np.float64(x[rows[i], j]) - origin[j]) * scale)
            out[i // TILE, j, i % TILE] = v
            s += np.float64(v) * np.float64(v)
        norm[i // TILE, i % TILE] = s


@inner(fastmath=_FAST)
def _products(x: Any, t: int, rows: Any, c: int, out: Any) -> None:
    """uᵀv of the rows of a tile with rows c, c + 1 and c + 2."""
    a, b, e = rows[c], rows[c + 1], rows[c + 2]
    for i in range(TILE):
        out[0, i] = out[1, i] = out[2, i] = 0.0
    for j in range(x.shape[1]):
        p, q, r = a[j], b[j], e[j]
        for i in range(TILE):
            v = np.float64(x[t, j, i])
            out[0, i] += v * p
            out[1, i] += v * q
            out[2, i] += v * r


@inner(fastmath=_FAST)
def _improve(
    x: Any, norm: Any, lengths: Any, closest: Any, rows: Any, square: Any, lo: int, hi: int
) -> Any:
    """How much each candidate would take from the sum of squared distances of tiles lo..hi.

    ``rows`` and their squares come in a multiple of three.
    """
    out, s = np.zeros(len(rows)), np.empty((3, TILE))
    for t in range(lo, hi):
        for c in range(0, len(rows), 3):
            _products(x, t, rows, c, s)
            for b in range(3):
                own, gain = square[c + b], 0.0
                for i in range(TILE):
                    both = norm[t, i] + own
                    away = both - 2 * s[b, i]
                    away = away if away > SAME * both else 0.0
                    gain += lengths[t, i] * max(closest[t, i] - away, 0.0)
                out[c + b] += gain
    return out


@inner(fastmath=_FAST)
def _approach(
    x: Any, norm: Any, lengths: Any, closest: Any, row: Any, left: Any, lo: int, hi: int
) -> None:
    """Take one more centre; what is then ``left`` of the sum over each of the tiles lo..hi."""
    s, own = np.empty(TILE), 0.0
    for j in range(len(row)):
        own += row[j] * row[j]
    for t in range(lo, hi):
        for i in range(TILE):
            s[i] = 0.0
        for j in range(len(row)):
            for i in range(TILE):
                s[i] += np.float64(x[t, j, i]) * row[j]
        total = 0.0
        for i in range(TILE):
            both = norm[t, i] + own
            away = both - 2 * s[i]
            near = min(closest[t, i], away if away > SAME * both else 0.0)
            closest[t, i] = near
            total += lengths[t, i] * near
        left[t] = total


@inner
def _pick(closest: Any, lengths: Any, left: Any, points: Any, drawn: Any) -> float:
    """Rows under points in [0, 1) of the line with lengths ``closest · lengths``; the whole length."""
    total = 0.0
    for t in range(len(left)):
        total += left[t]
    for a in range(len(points)):
        rest, t = points[a] * total, 0
        while t < len(left) - 1 and rest >= left[t]:
            rest -= left[t]
            t += 1
        at = 0
        for i in range(TILE):
            length = closest[t, i] * lengths[t, i]
            if length > 0.0:
                at = i
                if rest < length:
                    break
                rest -= length
        drawn[a] = t * TILE + at
    return total


@inner
def _taken(x: Any, drawn: Any, rows: Any, square: Any) -> None:
    """Drawn rows and their squares; what is left of ``rows`` repeats the first."""
    for a in range(len(rows)):
        at = drawn[a] if a < len(drawn) else drawn[0]
        square[a] = 0.0
        for j in range(rows.shape[1]):
            rows[a, j] = x[at // TILE, j, at % TILE]
            square[a] += rows[a, j] * rows[a, j]


# --- for Python to call where rows are many


@outer
def improve(
    x: Any, norm: Any, lengths: Any, closest: Any, rows: Any, square: Any, lo: int, hi: int
) -> Any:
    """`_improve`."""
    return _improve(x, norm, lengths, closest, rows, square, lo, hi)


@outer
def approach(
    x: Any, norm: Any, lengths: Any, closest: Any, row: Any, left: Any, lo: int, hi: int
) -> None:
    """`_approach`."""
    _approach(x, norm, lengths, closest, row, left, lo, hi)


@outer
def pick(
    x: Any, closest: Any, lengths: Any, left: Any, points: Any, drawn: Any, rows: Any, square: Any
) -> float:
    """`_pick`, then `_taken`."""
    total = _pick(closest, lengths, left, points, drawn)
    _taken(x, drawn, rows, square)
    return total


@outer
def plus_plus(
    x: Any, norm: Any, lengths: Any, closest: Any, left: Any, uniform: Any, rows: Any, square: Any,
    chosen: Any,
) -> int:  # fmt: skip
    """All rounds; how many rows there are before nothing is left."""
    _taken(x, chosen[:1], rows, square)
    _approach(x, norm, lengths, closest, rows[0], left, 0, len(x))
    drawn = np.empty(uniform.shape[1], np.int64)
    for i in range(1, len(chosen)):
        total = _pick(closest, lengths, left, uniform[i - 1], drawn)
        if not 0.0 < total < np.inf:
            return i
        _taken(x, drawn, rows, square)
        gain = _improve(x, norm, lengths, closest, rows, square, 0, len(x))
        best = 0
        for a in range(1, len(drawn)):
            if gain[a] > gain[best]:
                best = a
        chosen[i] = drawn[best]
        _approach(x, norm, lengths, closest, rows[best], left, 0, len(x))
    return len(chosen)
