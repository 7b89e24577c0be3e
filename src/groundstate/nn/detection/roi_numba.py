r"""Sums and maxima of the pixels of regions, compiled.

Maps are ``(B, H, W, C)``: what is read of a pixel, its channels, lies in one piece of memory. A cell of
RoIAlign is :math:`\sum_{ab} u_a v_b\,f[i_a, j_b]` with rows ``down`` ``(R, P, a)`` and their shares u,
columns ``across`` ``(R, Q, b)`` and their shares v; a cell of RoIPool is the largest pixel from rows
``top`` to ``below`` ``(R, P)`` and columns ``left`` to ``right`` ``(R, Q)``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.compute.kernels.compile_numba import inner, outer


@inner
def turned(cells: Any, out: Any) -> None:
    """Cells ``(P · Q, C)`` of a region become ``(C, P, Q)``."""
    P, Q = out.shape[1:]
    for c in range(out.shape[0]):
        for p in range(P):
            for q in range(Q):
                out[c, p, q] = cells[p * Q + q, c]


@outer(fastmath={"contract"})
def align(
    maps: Any, image: Any, down: Any, of_rows: Any, across: Any, of_columns: Any, out: Any
) -> None:
    """Fills out ``(R, C, P, Q)``."""
    R, C, P, Q = out.shape
    cells = np.empty((P * Q, C), maps.dtype)
    for r in range(R):
        for p in range(P):
            for q in range(Q):
                cell = cells[p * Q + q]
                for c in range(C):
                    cell[c] = 0
                for a in range(down.shape[2]):
                    for b in range(across.shape[2]):
                        share = of_rows[r, p, a] * of_columns[r, q, b]
                        if share != 0:
                            pixel = maps[image[r], down[r, p, a], across[r, q, b]]
                            for c in range(C):
                                cell[c] += share * pixel[c]
        turned(cells, out[r])


@outer(fastmath={"contract"})
def align_back(
    grad: Any, image: Any, down: Any, of_rows: Any, across: Any, of_columns: Any, out: Any
) -> None:
    """Adds to out ``(B, H, W, C)`` what `align` passes back of grad ``(R, C, P, Q)``."""
    R, C, P, Q = grad.shape
    cell = np.empty(C, out.dtype)
    for r in range(R):
        for p in range(P):
            for q in range(Q):
                for c in range(C):
                    cell[c] = grad[r, c, p, q]
                for a in range(down.shape[2]):
                    for b in range(across.shape[2]):
                        share = of_rows[r, p, a] * of_columns[r, q, b]
                        if share != 0:
                            pixel = out[image[r], down[r, p, a], across[r, q, b]]
                            for c in range(C):
                                pixel[c] += share * cell[c]


@outer
def pool(
    maps: Any, image: Any, top: Any, below: Any, left: Any, right: Any, out: Any, first: Any
) -> None:
    """Fills out ``(R, C, P, Q)``; first ``(R, P, Q, C)`` counts to the first pixel of that value."""
    R, C, P, Q = out.shape
    cells = np.empty((P * Q, C), maps.dtype)
    for r in range(R):
        for p in range(P):
            for q in range(Q):
                cell, place = cells[p * Q + q], first[r, p, q]
                if top[r, p] >= below[r, p] or left[r, q] >= right[r, q]:
                    for c in range(C):
                        cell[c] = 0
                        place[c] = -1
                    continue
                pixel = maps[image[r], top[r, p], left[r, q]]
                for c in range(C):
                    cell[c] = pixel[c]
                    place[c] = 0
                count = np.int32(0)
                for y in range(top[r, p], below[r, p]):
                    for x in range(left[r, q], right[r, q]):
                        pixel = maps[image[r], y, x]
                        for c in range(C):
                            larger = pixel[c] > cell[c]
                            cell[c] = pixel[c] if larger else cell[c]
                            place[c] = count if larger else place[c]
                        count += np.int32(1)
        turned(cells, out[r])


@outer
def pool_back(grad: Any, image: Any, top: Any, left: Any, right: Any, first: Any, out: Any) -> None:
    """Adds the gradient of every cell to that pixel of out ``(B, H, W, C)``."""
    R, C, P, Q = grad.shape
    for r in range(R):
        for p in range(P):
            for q in range(Q):
                wide = right[r, q] - left[r, q]
                for c in range(C):
                    k = first[r, p, q, c]
                    if k >= 0:
                        y, x = top[r, p] + k // wide, left[r, q] + k % wide
                        out[image[r], y, x, c] += grad[r, c, p, q]
