"""Readable definitions of suppression and regions, one box and one sample at a time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def share(a: Any, b: Any) -> float:
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    common = max(width, 0.0) * max(height, 0.0)
    sizes = [max(c[2] - c[0], 0.0) * max(c[3] - c[1], 0.0) for c in (a, b)]
    return common / (sum(sizes) - common) if sum(sizes) > common else 0.0


def suppress(boxes: Any, scores: Any, threshold: float) -> list[int]:
    kept: list[int] = []
    for i in sorted(range(len(boxes)), key=lambda i: (-scores[i], i)):
        if all(share(boxes[i], boxes[k]) <= threshold for k in kept):
            kept.append(i)
    return kept


def bilinear(image: Any, y: float, x: float) -> Any:
    height, width = image.shape[1:]
    if y < -1 or y > height or x < -1 or x > width:
        return np.zeros(len(image))
    y, x = min(max(y, 0.0), height - 1), min(max(x, 0.0), width - 1)
    i, j = int(y), int(x)
    below, right = min(i + 1, height - 1), min(j + 1, width - 1)
    above = image[:, i, j] * (1 - x + j) + image[:, i, right] * (x - j)
    under = image[:, below, j] * (1 - x + j) + image[:, below, right] * (x - j)
    return above * (1 - y + i) + under * (y - i)


def align(image: Any, box: Any, size: int, scale: float, ratio: int, aligned: bool) -> Any:
    x1, y1, x2, y2 = (c * scale - (0.5 if aligned else 0.0) for c in box)
    wide, high = ((x2 - x1), (y2 - y1)) if aligned else (max(x2 - x1, 1.0), max(y2 - y1, 1.0))
    m, n = (ratio, ratio) if ratio else (math.ceil(high / size), math.ceil(wide / size))
    out = np.zeros((len(image), size, size))
    for p in range(size):
        for q in range(size):
            for i in range(m):
                for j in range(n):
                    y = y1 + high / size * (p + (i + 0.5) / m)
                    x = x1 + wide / size * (q + (j + 0.5) / n)
                    out[:, p, q] += bilinear(image, y, x) / max(m * n, 1)
    return out


def pool(image: Any, box: Any, size: int, scale: float) -> Any:
    x1, y1, x2, y2 = (int(math.copysign(math.floor(abs(c * scale) + 0.5), c)) for c in box)
    out = np.zeros((len(image), size, size))
    for p in range(size):
        for q in range(size):
            rows, columns = (
                slice(max(a + k * n // size, 0), max(a - (-(k + 1) * n // size), 0))
                for a, n, k in ((y1, max(y2 - y1 + 1, 1), p), (x1, max(x2 - x1 + 1, 1), q))
            )
            cell = image[:, rows, columns]
            out[:, p, q] = cell.max((1, 2)) if cell.size else 0.0
    return out
