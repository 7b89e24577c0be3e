r"""Convex polygons cut by lines, many at once.

Polygons are stored one after the other: vertices ``(V, 2)`` and ``ends`` ``(R,)``, where polygon r
has the vertices from ``ends[r-1]`` up to ``ends[r]``, in order around it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
TOL = 1e-11  # relative: a vertex nearer to a line than this is on it


@njit(cache=True, nogil=True, error_model="numpy")
def _fill(
    vertices: Any, ends: Any, lines: Any, at: Any, out: Any, out_ends: Any, parent: Any, side: Any,
    pieces: Any, sizes: Any, bits: Any, value: Any, spare: Any,
) -> Any:  # fmt: skip
    """Split cells from ``at[0]`` on until done (0) or until the results (1) or pieces (2) are full."""
    cells, units = lines.shape[0], lines.shape[1]
    filled, count = at[1], at[2]
    for r in range(at[0], cells):
        begin = ends[r - 1] if r else 0
        for i in range(ends[r] - begin):
            pieces[0, i, 0], pieces[0, i, 1] = vertices[begin + i, 0], vertices[begin + i, 1]
        sizes[0], now, total = ends[r] - begin, 1, 0
        for d in range(units):
            w0, w1, c = lines[r, d, 0], lines[r, d, 1], lines[r, d, 2]
            for p in range(now):
                n = sizes[p]
                above, below = False, False
                for i in range(n):
                    x, y = pieces[p, i, 0], pieces[p, i, 1]
                    v = w0 * x + w1 * y + c
                    if abs(v) <= TOL * (abs(w0 * x) + abs(w1 * y) + abs(c)):
                        v = 0.0
                    value[i] = v
                    above |= v > 0
                    below |= v < 0
                bits[p, d] = above
                if not (above and below):
                    continue
                if now == len(sizes):
                    at[0], at[1], at[2] = r, filled, count
                    return 2
                a, b = 0, 0  # the part above goes to spare and back, the part below to a new piece
                for i in range(n):
                    j = i + 1 if i + 1 < n else 0
                    v, u = value[i], value[j]
                    x, y = pieces[p, i, 0], pieces[p, i, 1]
                    if v >= 0:
                        spare[a, 0], spare[a, 1] = x, y
                        a += 1
                    if v <= 0:
                        pieces[now, b, 0], pieces[now, b, 1] = x, y
                        b += 1
                    if (v > 0 and u < 0) or (v < 0 and u > 0):
                        t = v / (v - u)
                        x += t * (pieces[p, j, 0] - x)
                        y += t * (pieces[p, j, 1] - y)
                        spare[a, 0], spare[a, 1] = x, y
                        pieces[now, b, 0], pieces[now, b, 1] = x, y
                        a += 1
                        b += 1
                for i in range(a):
                    pieces[p, i, 0], pieces[p, i, 1] = spare[i, 0], spare[i, 1]
                for k in range(d):
                    bits[now, k] = bits[p, k]
                bits[now, d] = 0
                sizes[p], sizes[now] = a, b
                now += 1
        for p in range(now):
            total += sizes[p]
        if filled + total > len(out) or count + now > len(parent):
            at[0], at[1], at[2] = r, filled, count
            return 1
        for p in range(now):
            for i in range(sizes[p]):
                out[filled, 0], out[filled, 1] = pieces[p, i, 0], pieces[p, i, 1]
                filled += 1
            for k in range(units):
                side[count, k] = bits[p, k]
            out_ends[count], parent[count] = filled, r
            count += 1
    at[0], at[1], at[2] = cells, filled, count
    return 0


def split_polygons(vertices: F64, ends: I64, lines: F64) -> tuple[F64, I64, I64, NDArray[np.uint8]]:
    r"""Cut polygon r by each of its own lines :math:`w^\top x + c = 0`.

    Parameters
    ----------
    vertices, ends : polygons, see the module
    lines : ``(R, D, 3)`` rows (w0, w1, c)

    Returns
    -------
    vertices, ends of the parts; their parent ``(R',)``; on which side they are, ``(R', D)`` uint8,
    1 where :math:`w^\top x + c > 0`

    Examples
    --------
    >>> square = np.array([[0.0, 0.0], [2.0, 0.0], [2.0, 1.0], [0.0, 1.0]])
    >>> _, ends, _, side = split_polygons(square, np.array([4]), np.array([[[1.0, 0.0, -1.0]]]))
    >>> ends.tolist(), side.tolist()
    ([4, 8], [[1], [0]])
    """
    cells, units, _ = lines.shape
    # a line adds one vertex to a part at most
    width = int(np.diff(ends, prepend=0).max()) + units + 2
    out, results = np.empty((2 * len(vertices) + 64, 2)), 2 * cells + 16
    tables: tuple[Any, ...] = _tables(results, units)
    pieces = _pieces(16, width, units)
    value, spare = np.empty(width), np.empty((width, 2))
    at = np.zeros(3, np.int64)
    fill: Any = _fill
    while True:
        full = fill(vertices, ends, lines, at, out, *tables, *pieces, value, spare)
        if full == 0:
            break
        if full == 2:
            pieces = _pieces(2 * len(pieces[1]), width, units)
        else:  # grow by what the rest will need if it is like the part so far, at least twice
            scale = max(2.0, 1.1 * cells / max(1, at[0]))
            out = _grown(out, int(scale * len(out)) + width * len(pieces[1]))
            results = int(scale * results) + len(pieces[1])
            tables = tuple(_grown(table, results) for table in tables)
    _, filled, count = at
    new_ends, parent, side = (table[:count] for table in tables)
    return out[:filled], new_ends, parent, side


def _tables(n: int, units: int) -> tuple[I64, I64, NDArray[np.uint8]]:
    """Ends, parents, sides."""
    return np.empty(n, np.int64), np.empty(n, np.int64), np.empty((n, units), np.uint8)


def _pieces(n: int, width: int, units: int) -> tuple[F64, I64, NDArray[np.uint8]]:
    return np.empty((n, width, 2)), np.empty(n, np.int64), np.empty((n, units), np.uint8)


def _grown(array: NDArray[Any], size: int) -> NDArray[Any]:
    out = np.empty((size, *array.shape[1:]), array.dtype)
    out[: len(array)] = array
    return out


def areas(vertices: F64, ends: I64) -> F64:
    r"""Areas by the shoelace formula, :math:`\tfrac12|\sum_i x_iy_{i+1}-x_{i+1}y_i|`.

    >>> areas(np.array([[0.0, 0.0], [2.0, 0.0], [2.0, 1.0], [0.0, 1.0]]), np.array([4]))
    array([2.])
    """
    begin = np.concatenate([[0], ends[:-1]])
    following = np.arange(1, len(vertices) + 1)
    following[ends - 1] = begin
    x, y = (vertices - np.repeat(vertices[begin], ends - begin, axis=0)).T
    cross = x * y[following] - x[following] * y
    return np.asarray(np.abs(np.add.reduceat(cross, begin)) / 2)
