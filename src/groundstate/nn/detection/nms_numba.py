"""Suppression of overlapping boxes in order of their score, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.compute.kernels.compile_numba import inner, outer

BLOCK = 64  # kept boxes that are compared before one looks whether any of them suppresses


@inner
def any_above(
    kept: Any, start: int, end: int, x1: Any, y1: Any, x2: Any, y2: Any, size: Any, threshold: Any
) -> bool:
    """Whether one of kept[:, start:end] has an IoU with the box above the threshold."""
    zero = size - size
    hits = 0
    for k in range(start, end):
        width = max(min(kept[2, k], x2) - max(kept[0, k], x1), zero)
        height = max(min(kept[3, k], y2) - max(kept[1, k], y1), zero)
        common = width * height
        hits += common / (kept[4, k] + size - common) > threshold  # 0/0 is not above
    return hits > 0


@outer
def greedy(boxes: Any, sizes: Any, ends: Any, threshold: Any, keep: Any) -> None:
    """Marks in ``keep`` what is left of ``boxes`` (4, n), best first in groups that end at ``ends``."""
    kept = np.empty((5, boxes.shape[1]), boxes.dtype)
    start = 0
    for end in ends:
        n = 0
        for i in range(start, end):
            x1, y1, x2, y2, size = boxes[0, i], boxes[1, i], boxes[2, i], boxes[3, i], sizes[i]
            free = True
            for first in range(0, n, BLOCK):
                last = min(first + BLOCK, n)
                if any_above(kept, first, last, x1, y1, x2, y2, size, threshold):
                    free = False
                    break
            keep[i] = free
            if free:
                for c in range(4):
                    kept[c, n] = boxes[c, i]
                kept[4, n] = size
                n += 1
        start = end


@outer
def soften(
    boxes: Any, sizes: Any, scores: Any, sigma: float, threshold: float, lowest: float, picked: Any
) -> int:
    """Lowers ``scores`` by the overlap with better boxes; how many of ``picked`` are still good.

    ``sigma`` > 0 is the width of the Gaussian decay, 0 stands for the linear one.
    """
    n = len(scores)
    left = np.arange(n)
    for count in range(n):
        best = count
        for k in range(count + 1, n):
            a, b = scores[left[k]], scores[left[best]]
            if a > b or (a == b and left[k] < left[best]):
                best = k
        left[count], left[best] = left[best], left[count]
        i = left[count]
        if not scores[i] >= lowest:
            return count
        picked[count] = i
        for k in range(count + 1, n):
            j = left[k]
            width = min(boxes[2, i], boxes[2, j]) - max(boxes[0, i], boxes[0, j])
            height = min(boxes[3, i], boxes[3, j]) - max(boxes[1, i], boxes[1, j])
            if width > 0.0 and height > 0.0:
                common = width * height
                iou = common / (sizes[i] + sizes[j] - common)
                if sigma > 0.0:
                    scores[j] *= np.exp(-iou * iou / sigma)
                elif iou > threshold:
                    scores[j] *= 1.0 - iou
    return n
