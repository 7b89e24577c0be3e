"""Convex polygons cut by lines, as one reads it: the oracle of ``polygons.split_polygons``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.math.geometry.polygons_numba import TOL

F64 = NDArray[np.float64]


def cut(polygon: F64, line: F64) -> tuple[F64 | None, F64 | None]:
    """Parts of a polygon ``(n, 2)`` where w·x + c is positive and negative, None when empty.

    >>> plus, minus = cut(np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]]), np.array([1.0, 0.0, -1.0]))
    >>> plus.tolist()
    [[1.0, 0.0], [2.0, 0.0], [1.0, 1.0]]
    """
    terms = np.column_stack([polygon, np.ones(len(polygon))]) * line  # (n, 3)
    v = terms.sum(1)
    v[np.abs(v) <= TOL * np.abs(terms).sum(1)] = 0
    if not (v > 0).any():
        return None, polygon
    if not (v < 0).any():
        return polygon, None
    plus, minus = [], []
    for p, q, a, b in zip(polygon, np.roll(polygon, -1, 0), v, np.roll(v, -1)):
        if a >= 0:
            plus.append(p)
        if a <= 0:
            minus.append(p)
        if a * b < 0:
            crossing = p + a / (a - b) * (q - p)
            plus.append(crossing)
            minus.append(crossing)
    return np.array(plus), np.array(minus)


def split_polygons(vertices: F64, ends: Any, lines: F64) -> tuple[F64, Any, Any, Any]:
    """See ``polygons.split_polygons``."""
    parts: list[F64] = []
    parent, side = [], []
    for r, polygon in enumerate(np.split(vertices, ends[:-1])):
        pieces: list[tuple[F64, list[int]]] = [(polygon, [])]
        for line in lines[r]:
            both = [(cut(p, line), bits) for p, bits in pieces]
            pieces = [
                (part, [*bits, sign])
                for halves, bits in both
                for part, sign in zip(halves, (1, 0))
                if part is not None
            ]
        parts += [p for p, _ in pieces]
        parent += [r] * len(pieces)
        side += [bits for _, bits in pieces]
    sizes = np.array([len(p) for p in parts])
    return np.concatenate(parts), np.cumsum(sizes), np.array(parent), np.array(side, np.uint8)
