"""Suppression of overlapping boxes in order of their score, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.compute.kernels.compile_numba import inner, outer

ROOM = 16  # entries of the grid for each box, at most


@inner
def cell(value: Any, low: Any, per_unit: Any, cells: int) -> int:
    return min(max(int((value - low) * per_unit), 0), cells - 1)


@inner
def layout(boxes: Any, start: int, end: int, axis: int) -> Any:
    """Lowest corner and cells per unit along an axis, cells about as long as boxes are."""
    low, high, total = boxes[axis, start], boxes[axis + 2, start], 0.0
    for i in range(start, end):
        low, high = min(low, boxes[axis, i]), max(high, boxes[axis + 2, i])
        total += max(boxes[axis + 2, i] - boxes[axis, i], 0.0)
    span = max(high - low, 0.0)
    cells = 1
    if total > 0.0:
        cells = min(int(span * (end - start) / total) + 1, int(np.sqrt(end - start)) + 1)
    return low, cells / span if span > 0.0 else 0.0, cells


@inner
def entries(boxes: Any, sizes: Any, start: int, end: int, x: Any, y: Any) -> int:
    """How many pairs of a cell and a box with an area touch."""
    count = 0
    for i in range(start, end):
        wide = cell(boxes[2, i], x[0], x[1], x[2]) - cell(boxes[0, i], x[0], x[1], x[2]) + 1
        high = cell(boxes[3, i], y[0], y[1], y[2]) - cell(boxes[1, i], y[0], y[1], y[2]) + 1
        count += wide * high if sizes[i] > 0.0 else 0
    return count


@inner
def covered(boxes: Any, sizes: Any, i: int, k: int, threshold: Any) -> bool:
    """Whether the IoU of boxes i and k is above the threshold."""
    width = min(boxes[2, k], boxes[2, i]) - max(boxes[0, k], boxes[0, i])
    height = min(boxes[3, k], boxes[3, i]) - max(boxes[1, k], boxes[1, i])
    if width > 0.0 and height > 0.0:
        common = width * height
        above: bool = common / (sizes[k] + sizes[i] - common) > threshold
        return above
    return False


@inner
def group(boxes: Any, sizes: Any, start: int, end: int, threshold: Any, keep: Any) -> None:
    """Greedy suppression where kept boxes stand in every cell of a grid that they touch.

    A common part of more than the share t of box i meets i without a margin of t on either side,
    or its centre: the cells of that core hold every kept box that can remove i.
    """
    x, y = layout(boxes, start, end, 0), layout(boxes, start, end, 1)
    room = entries(boxes, sizes, start, end, x, y)
    while room > ROOM * (end - start):
        x, y = (x[0], x[1] / 2, (x[2] + 1) // 2), (y[0], y[1] / 2, (y[2] + 1) // 2)
        room = entries(boxes, sizes, start, end, x, y)
    first = np.full(x[2] * y[2], -1)
    owner, following = np.empty(room, np.int64), np.empty(room, np.int64)
    used, margin = 0, 0.999 * min(threshold, 0.5)  # rounding takes less than a thousandth
    for i in range(start, end):
        keep[i] = True
        if sizes[i] <= 0.0:
            continue
        wide, high = margin * (boxes[2, i] - boxes[0, i]), margin * (boxes[3, i] - boxes[1, i])
        c = cell(boxes[0, i] + wide, x[0], x[1], x[2])
        while keep[i] and c <= cell(boxes[2, i] - wide, x[0], x[1], x[2]):
            r = cell(boxes[1, i] + high, y[0], y[1], y[2])
            while keep[i] and r <= cell(boxes[3, i] - high, y[0], y[1], y[2]):
                at = first[c * y[2] + r]
                while keep[i] and at >= 0:
                    keep[i] = not covered(boxes, sizes, i, owner[at], threshold)
                    at = following[at]
                r += 1
            c += 1
        if keep[i]:
            left, right = cell(boxes[0, i], x[0], x[1], x[2]), cell(boxes[2, i], x[0], x[1], x[2])
            top, below = cell(boxes[1, i], y[0], y[1], y[2]), cell(boxes[3, i], y[0], y[1], y[2])
            for c in range(left, right + 1):
                for r in range(top, below + 1):
                    owner[used], following[used] = i, first[c * y[2] + r]
                    first[c * y[2] + r] = used
                    used += 1


@outer
def greedy(boxes: Any, sizes: Any, ends: Any, threshold: Any, keep: Any) -> None:
    """Marks in ``keep`` what is left of ``boxes`` (4, n), best first in groups that end at ``ends``."""
    start = 0
    for end in ends:
        group(boxes, sizes, start, end, threshold, keep)
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
