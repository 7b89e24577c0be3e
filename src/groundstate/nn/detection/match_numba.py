"""Detections matched to truths and their precision at every recall, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.compute.kernels.compile_numba import inner, outer

FALSE, TRUE, IGNORED = 0, 1, 2


@outer
def overlaps(found: Any, true: Any, crowd: Any, groups: Any, out: Any) -> None:
    """IoU of all pairs of a group, one group after the other; of a crowd, the share of the detection."""
    at = 0
    for k in range(len(groups)):
        for d in range(groups[k, 0], groups[k, 1]):
            size = max(found[d, 2] - found[d, 0], 0.0) * max(found[d, 3] - found[d, 1], 0.0)
            for g in range(groups[k, 2], groups[k, 3]):
                width = min(found[d, 2], true[g, 2]) - max(found[d, 0], true[g, 0])
                height = min(found[d, 3], true[g, 3]) - max(found[d, 1], true[g, 1])
                out[at] = 0.0
                if width > 0.0 and height > 0.0:
                    whole = (true[g, 2] - true[g, 0]) * (true[g, 3] - true[g, 1])
                    common = width * height
                    out[at] = common / (size if crowd[g] else size + whole - common)
                at += 1


@inner
def best(
    overlap: Any, at: int, group: Any, free: Any, skip: Any, wanted: bool, least: float
) -> int:
    """The truth of a group with the largest overlap, the last of equals; -1 if all are below."""
    chosen = -1
    for g in range(group[2], group[3]):
        if skip[g] == wanted and free[g] and overlap[at + g - group[2]] >= least:
            least = overlap[at + g - group[2]]
            chosen = g
    return chosen


@outer
def match(
    overlap: Any, groups: Any, crowd: Any, skip: Any, outside: Any, thresholds: Any, state: Any
) -> None:
    """Fills ``state`` (areas, thresholds, detections): false, true or ignored.

    Detections of a group (first, end, first truth, end of truths) are in order of their score, and
    each takes the free truth that it overlaps most; truths to skip come after all others.
    """
    free = np.ones(len(crowd), np.bool_)
    for a in range(state.shape[0]):
        for t in range(state.shape[1]):
            free[:] = True
            least = min(thresholds[t], 1.0 - 1e-10)
            at = 0
            for k in range(len(groups)):
                group = groups[k]
                for d in range(group[0], group[1]):
                    g = best(overlap, at, group, free, skip[a], False, least)
                    if g < 0:
                        g = best(overlap, at, group, free, skip[a], True, least)
                    if g >= 0:
                        free[g] = crowd[g]
                        state[a, t, d] = IGNORED if skip[a, g] else TRUE
                    else:
                        state[a, t, d] = IGNORED if outside[a, d] else FALSE
                    at += group[3] - group[2]


@outer
def curves(
    state: Any,
    rank: Any,
    ends: Any,
    positives: Any,
    tops: Any,
    levels: Any,
    precision: Any,
    under: Any,
    recall: Any,
) -> None:
    """Precision at levels of recall, area under all steps, recall of the first detections.

    ``state`` in order of the score within classes that end at ``ends``; ``precision`` (areas,
    thresholds, classes, levels), ``under`` (areas, thresholds, classes), ``recall`` (areas,
    thresholds, classes, tops).
    """
    hits, seen = np.empty(len(rank)), np.empty(len(rank))
    for a in range(state.shape[0]):
        for t in range(state.shape[1]):
            start = 0
            for k in range(len(ends)):
                n, true, count, total = 0, 0.0, 0.0, positives[a, k]
                for i in range(start, ends[k]):
                    if state[a, t, i] != IGNORED:
                        count += 1.0
                        if state[a, t, i] == TRUE:
                            true += 1.0
                            for m in range(len(tops)):
                                if rank[i] < tops[m]:
                                    recall[a, t, k, m] += 1.0 / total
                        hits[n], seen[n] = true, true / count
                        n += 1
                start = ends[k]
                for i in range(n - 2, -1, -1):
                    seen[i] = max(seen[i], seen[i + 1])
                at, last = 0, 0.0
                for i in range(n):
                    under[a, t, k] += (hits[i] - last) / total * seen[i]
                    last = hits[i]
                    while at < len(levels) and hits[i] / total >= levels[at]:
                        precision[a, t, k, at] = seen[i]
                        at += 1
