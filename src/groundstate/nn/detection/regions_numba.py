"""Graph segmentation of pixels and the merging of regions, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.compute.kernels.compile_numba import inner, outer


@inner
def root(parent: Any, i: int) -> int:
    """The segment of a pixel; paths are halved on the way."""
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@outer
def segment(first: Any, second: Any, cost: Any, scale: float, least: int, parent: Any) -> int:
    """Joins the ends of edges, cheapest first, in ``parent`` (pixels,); the number of segments.

    Two segments join where the edge costs less than the dearest edge inside either plus scale/size;
    then those smaller than ``least`` join their cheapest neighbour.
    """
    n = len(parent)
    size, inside = np.ones(n, np.int64), np.zeros(n)
    count = n
    for turn in range(2):
        for e in range(len(cost)):
            a, b = root(parent, first[e]), root(parent, second[e])
            if a == b:
                continue
            if turn == 0:
                joins = cost[e] < min(inside[a] + scale / size[a], inside[b] + scale / size[b])
            else:
                joins = size[a] < least or size[b] < least
            if joins:
                a, b = min(a, b), max(a, b)
                parent[b] = a
                size[a] += size[b]
                inside[a] = cost[e]
                count -= 1
    for i in range(n):
        parent[i] = root(parent, i)
    return count


@inner
def similarity(hist: Any, size: Any, box: Any, a: int, b: int, total: float) -> float:
    """Common parts of the histograms, and how small and how well fitting two regions are."""
    found = 0.0
    for f in range(hist.shape[1]):
        found += min(hist[a, f], hist[b, f])
    width = max(box[a, 2], box[b, 2]) - min(box[a, 0], box[b, 0])
    height = max(box[a, 3], box[b, 3]) - min(box[a, 1], box[b, 1])
    both = size[a] + size[b]
    return found + 1.0 - both / total + 1.0 - (width * height - both) / total


@outer
def merge(
    first: Any, second: Any, hist: Any, size: Any, box: Any, merges: Any, likeness: Any
) -> None:
    """Merges the most similar neighbours until one region is left.

    Rows n, n+1, ... of ``hist``, ``size`` and ``box`` (2n-1 rows each) are filled with what merging
    makes; ``merges`` (n-1, 2) and ``likeness`` (n-1,) say which two and how similar they were.
    """
    n, edges = len(likeness) + 1, len(first)
    total = 0.0
    for i in range(n):
        total += size[i]
    value = np.empty(edges)
    for e in range(edges):
        value[e] = similarity(hist, size, box, first[e], second[e], total)
    met = np.full(2 * n - 1, -1)  # the newest region that a region was found beside
    for k in range(n, 2 * n - 1):
        best = 0
        for e in range(1, edges):
            if value[e] > value[best]:
                best = e
        a, b = first[best], second[best]
        merges[k - n, 0], merges[k - n, 1], likeness[k - n] = min(a, b), max(a, b), value[best]
        size[k] = size[a] + size[b]
        for f in range(hist.shape[1]):
            hist[k, f] = (hist[a, f] * size[a] + hist[b, f] * size[b]) / size[k]
        for c in range(2):
            box[k, c] = min(box[a, c], box[b, c])
            box[k, c + 2] = max(box[a, c + 2], box[b, c + 2])
        e = 0
        while e < edges:
            one, two = first[e], second[e]
            here, there = one in (a, b), two in (a, b)
            if here or there:
                other = two if here else one
                if (here and there) or met[
                    other
                ] == k:  # inside, or a second edge: the last moves here
                    edges -= 1
                    first[e], second[e], value[e] = first[edges], second[edges], value[edges]
                    continue
                met[other] = k
                first[e], second[e] = other, k
                value[e] = similarity(hist, size, box, other, k, total)
            e += 1
