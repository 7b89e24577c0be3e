"""Units that stay on one side of a split: rows of equal features, rows of one group.

Units are dealt to the parts in the order of the weight line, classes spread evenly over it.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from groundstate.compute.random import Key
from groundstate.compute.weight_line.hashing import row_hash
from groundstate.compute.weight_line.line import WeightLine
from groundstate.errors import DataError, Unreliable
from groundstate.evaluate.rows import columns

RARE = 3  # classes with fewer rows cannot be kept in proportion


def _targets(n: int, shares: NDArray[np.float64]) -> NDArray[np.int64]:
    """Whole sizes by largest remainder."""
    exact = shares * n
    whole = np.floor(exact + 1e-9).astype(np.int64)
    order = np.argsort(-(exact - whole), kind="stable")
    whole[order[: n - int(whole.sum())]] += 1
    return whole


def units(X: Any, groups: Any) -> NDArray[np.intp]:
    """Number of the unit of each row: rows of equal features, and rows of one group."""
    unit = np.unique(row_hash(*columns(X)), return_inverse=True)[1].reshape(-1)
    if groups is None:
        return unit
    group = np.unique(np.asarray(groups), return_inverse=True)[1].reshape(-1)
    k = int(unit.max()) + 1
    size = k + int(group.max()) + 1
    edges = scipy.sparse.coo_array((np.ones(len(unit)), (unit, k + group)), (size, size))
    _, part = scipy.sparse.csgraph.connected_components(edges, directed=False)
    return np.unique(part[unit], return_inverse=True)[1].reshape(-1)


def dealt(X: Any, unit: NDArray[np.intp], labels: Any, key: Key) -> NDArray[np.intp]:
    """Units in the order in which they are dealt to the parts."""
    line = WeightLine.of(*columns(X)).order(key)
    _, first = np.unique(unit[line], return_index=True)  # where each unit begins on the line
    if labels is None:
        return np.argsort(first, kind="stable")
    k = int(labels.max()) + 1
    votes = np.zeros((len(first), k))
    np.add.at(votes, (unit, labels), 1)
    label = votes.argmax(1)  # a unit counts as its commonest label
    counts = np.bincount(labels, minlength=k)
    rare = np.flatnonzero((counts > 0) & (counts < RARE))
    if len(rare):
        warnings.warn(
            f"{len(rare)} class(es) with fewer than {RARE} rows cannot be kept in proportion",
            Unreliable,
            stacklevel=4,
        )
    size = votes.sum(1)
    place = np.empty(len(first))
    for c in range(k):
        units = np.flatnonzero(label == c)
        units = units[np.argsort(first[units], kind="stable")]
        if c in rare:
            place[units] = key.fold("rare", c).uniform(len(units))
        elif len(units):
            # spread each class evenly over the line: every prefix holds its share of it
            ends = np.cumsum(size[units])
            place[units] = (ends - size[units] / 2) / ends[-1]
    return np.lexsort((first, place))


def cut(
    unit: NDArray[np.intp],
    order: NDArray[np.intp],
    shares: Sequence[float] | NDArray[np.float64],
    *,
    filled: bool = False,
) -> NDArray[np.intp]:
    """The part of each row, with cuts at the ends of units nearest to the wanted sizes.

    Parameters
    ----------
    unit : of each row
    order : units as they are dealt
    shares : of the parts, summing to one
    filled : every part gets a unit, not only the first

    Examples
    --------
    >>> cut(np.array([0, 0, 0, 1, 2]), np.array([0, 1, 2]), [0.5, 0.5]).tolist()
    [0, 0, 0, 1, 1]
    """
    shares = np.asarray(shares, np.float64)
    sizes = np.bincount(unit)[order]
    ends = np.cumsum(sizes)
    wanted = np.cumsum(_targets(int(ends[-1]), shares))[:-1]
    edge = np.r_[0, ends]
    cuts = [int(np.argmin(np.abs(edge - mark))) for mark in wanted]
    if shares[0] > 0 and wanted[0] > 0:
        cuts[0] = max(1, cuts[0])  # somebody has to train
    if filled:
        for i in range(len(cuts)):
            after = len(sizes) - (len(cuts) - i)  # the parts behind need a unit each
            cuts[i] = min(max(cuts[i], cuts[i - 1] + 1 if i else 1), after)
    part = np.empty(len(sizes), np.intp)
    part[order] = np.searchsorted(np.maximum.accumulate(cuts), np.arange(len(sizes)), side="right")
    return part[unit]


def group_parts(
    X: Any,
    groups: Any,
    shares: Sequence[float],
    key: Key,
    labels: NDArray[np.intp] | None = None,
) -> NDArray[np.intp]:
    """The part of each row where groups stay together and every part has some.

    Parameters
    ----------
    X : the rows
    groups : label of the group of each row
    shares : of the parts, summing to one
    labels : classes of the rows, kept in proportion as far as groups allow

    Examples
    --------
    >>> rows = np.arange(6.0)[:, None]
    >>> found = group_parts(rows, list("aabbcc"), [1 / 3] * 3, Key.of(0))
    >>> found[::2].tolist() == found[1::2].tolist(), sorted(set(found.tolist()))
    (True, [0, 1, 2])
    """
    unit = np.unique(np.asarray(groups), return_inverse=True)[1].reshape(-1)
    n = int(unit.max()) + 1
    if n < len(shares):
        raise DataError(f"{len(shares)} parts of whole groups need as many groups, got {n}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Unreliable)  # groups rarely keep classes in proportion
        order = dealt(X, unit, labels, key)
    return cut(unit, order, shares, filled=True)
