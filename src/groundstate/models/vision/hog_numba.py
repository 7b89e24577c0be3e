"""Histograms of gradients in cells, and blocks of them normalised, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.compute.kernels.compile_numba import inner, outer


@inner
def gradient(image: Any, r: int, c: int) -> Any:
    """Central differences of the channel in which they are largest; 0 at the border."""
    channels, rows, columns = image.shape
    best, down, across = -1.0, 0.0, 0.0
    for k in range(channels):
        a = image[k, r + 1, c] - image[k, r - 1, c] if 0 < r < rows - 1 else 0.0
        b = image[k, r, c + 1] - image[k, r, c - 1] if 0 < c < columns - 1 else 0.0
        size = a * a + b * b
        if size > best:
            best, down, across = size, a, b
    return down, across


@outer
def cells(image: Any, side: int, counts: Any) -> None:
    """Mean magnitude by orientation in every cell: ``counts`` (rows, columns, orientations)."""
    n_rows, n_columns, n = counts.shape
    width = 180.0 / n
    for r in range(n_rows * side):
        for c in range(n_columns * side):
            down, across = gradient(image, r, c)
            size = np.hypot(down, across)
            if size > 0.0:
                angle = np.rad2deg(np.arctan2(down, across)) % 180.0
                k = min(int(angle / width), n - 1)
                counts[r // side, c // side, k] += size / (side * side)


@outer
def blocks(counts: Any, b: int, out: Any) -> None:
    """Blocks of b × b cells by L2-Hys: unit length, clipped at 0.2, unit length again."""
    n_rows, n_columns, n = counts.shape
    at = 0
    for r in range(n_rows - b + 1):
        for c in range(n_columns - b + 1):
            start = at
            for i in range(b):
                for j in range(b):
                    for k in range(n):
                        out[at] = counts[r + i, c + j, k]
                        at += 1
            for turn in range(2):
                total = 1e-10
                for p in range(start, at):
                    total += out[p] * out[p]
                root = np.sqrt(total)
                for p in range(start, at):
                    out[p] /= root
                    if turn == 0 and out[p] > 0.2:
                        out[p] = 0.2
