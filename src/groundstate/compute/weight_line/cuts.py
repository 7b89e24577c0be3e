"""Where to cut a line of rows into parts: shares, labels, and ends of groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from groundstate.errors import DataError, ShapeError

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
Places = Callable[[int], list[int]]


def shares(fractions: float | Sequence[float]) -> F64:
    """Shares of the line as an array that sums to one.  # (parts,)"""
    given = np.atleast_1d(np.asarray(fractions, dtype=np.float64))
    parts = np.array([1.0 - given[0], given[0]]) if len(given) == 1 else given
    if not (np.isfinite(parts).all() and (parts > 0).all() and abs(parts.sum() - 1.0) < 1e-9):
        raise DataError(
            f"fractions={fractions}; pass one number between 0 and 1, or positive shares "
            "that sum to one."
        )
    return parts


def group_labels(stratify: ArrayLike, order: I64, bounds: I64) -> I64:
    """The label of each group of equal rows, as a number.  # (G,)"""
    labels = np.asarray(stratify)
    if labels.shape != order.shape:
        raise ShapeError(
            f"stratify has shape {labels.shape}; expected one label per row, ({len(order)},)."
        )
    code = np.unique(labels, return_inverse=True)[1][order].astype(np.int64)  # canonical order
    first = bounds[:-1]
    if (np.maximum.reduceat(code, first) != np.minimum.reduceat(code, first)).any():
        raise DataError(
            "rows of equal content have different labels; hash the labels with the rows, "
            "WeightLine.of(X, y), or leave stratify out."
        )
    return code[first]


def segments(groups: I64, labels: I64) -> list[I64]:
    """The groups of each label, in the order they come in."""
    label = labels[groups]
    by_label = groups[np.argsort(label, kind="stable")]
    return np.split(by_label, np.cumsum(np.bincount(label))[:-1])


class Snap:
    """Move cuts to ends of groups, carrying what one segment rounds off to the next.

    Each cut goes to one of the two group ends around it. Alone, every part gets a group where
    there are enough; in a row of segments, the first part gets a group of each.
    """

    def __init__(self, several: bool) -> None:
        self.several = several
        self.carry: list[int] | None = None

    def __call__(self, lengths: I64, marks: list[int]) -> list[int]:
        """Ends of groups near the marks of one segment."""
        lengths = lengths[lengths > 0]
        ends = np.r_[0, np.cumsum(lengths)]
        carry = self.carry or [0] * len(marks)
        n, parts = len(lengths), len(marks) + 1
        chosen: list[int] = []
        for j, (mark, debt) in enumerate(zip(marks, carry, strict=True)):
            above = min(int(np.searchsorted(ends, mark)), n)
            below = above if ends[above] == mark else above - 1
            wanted = mark + debt
            best = below if wanted - ends[below] <= ends[above] - wanted else above
            if not self.several and n >= parts:
                best = min(max(best, j + 1), n - (parts - 1 - j))
            elif j == 0 and n:
                best = max(best, 1)
            chosen.append(max(best, chosen[-1] if chosen else 0))
        if not self.several and n >= parts:
            for j in range(1, len(chosen)):
                chosen[j] = max(chosen[j], chosen[j - 1] + 1)
        cut = [int(ends[c]) for c in chosen]
        self.carry = [m + d - c for m, d, c in zip(marks, carry, cut, strict=True)]
        return cut


def overlap(lengths: I64, marks: list[int]) -> I64:
    """How much of each interval lies between one mark and the next.  # (parts, N)"""
    ends = np.cumsum(lengths)
    starts = ends - lengths
    edges = [0, *marks, int(ends[-1]) if len(ends) else 0]
    return np.stack(
        [np.maximum(np.minimum(ends, b) - np.maximum(starts, a), 0) for a, b in pairwise(edges)]
    )
