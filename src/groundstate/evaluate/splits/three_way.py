"""Train, validation and test rows in one call."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from groundstate.compute.display import Displayed
from groundstate.compute.random import Key, RandomState
from groundstate.compute.weight_line.hashing import row_hash
from groundstate.compute.weight_line.line import WeightLine
from groundstate.errors import DataError, ShapeError, Unreliable
from groundstate.evaluate.rows import columns, n_rows

Rows = NDArray[np.intp]
_RARE = 3  # classes with fewer rows cannot be kept in proportion


@dataclass(frozen=True)
class SplitRows(Displayed):
    """Positions of the training, validation and test rows: disjoint, and all of the table.

    Attributes
    ----------
    train, val, test : arrays of row numbers, ascending

    Examples
    --------
    >>> parts = SplitRows(np.array([0, 2]), np.array([], int), np.array([1]))
    >>> print(parts)
    2 training, 0 validation and 1 test rows
    """

    train: Rows
    val: Rows
    test: Rows

    def __post_init__(self) -> None:
        every = np.concatenate([self.train, self.val, self.test])
        if not np.array_equal(np.sort(every), np.arange(len(every))):
            raise DataError("the parts of a split must be disjoint and hold every row once")

    def __iter__(self) -> Iterator[Rows]:
        return iter((self.train, self.val, self.test))

    def __str__(self) -> str:
        return (
            f"{len(self.train)} training, {len(self.val)} validation and {len(self.test)} test rows"
        )

    @property
    def train_rows(self) -> Rows:
        """The training rows, as in :class:`Split`."""
        return self.train

    @property
    def test_rows(self) -> Rows:
        """The test rows, as in :class:`Split`."""
        return self.test

    @property
    def development(self) -> Rows:
        """Training and validation rows together."""
        return np.sort(np.concatenate([self.train, self.val]))


def split(
    X: Any,
    y: Any = None,
    sizes: tuple[float, ...] = (0.7, 0.2, 0.1),
    stratify: Any = "auto",
    groups: Any = None,
    time: Any = None,
    by: Literal["shuffle", "hash"] = "shuffle",
    random_state: Key | RandomState = 0,
) -> SplitRows:
    r"""Cut a table into training, validation and test rows.

    Rows of equal features count as one and stay on one side. Sizes are rounded so that they add
    up (largest remainder).

    Parameters
    ----------
    X : ``(N, ...)``
        Array, sparse matrix, frame or table.
    y : ``(N,)``
    sizes
        Shares of train, validation and test, or of train and test; they sum to 1.
    stratify
        ``"auto"`` keeps the shares of the classes when y holds classes, None or False never does,
        an array gives other labels. A class with fewer than three rows falls where it falls, with
        a warning.
    groups : ``(N,)``
        Labels that never cross sides.
    time : ``(N,)``
        Anything that sorts: the latest rows are for testing, equal times stay together.
    by
        ``"hash"`` sends each row to a side by its own content, so that it stays there when the
        table grows; sizes are then met on average.
    random_state
        Seed or key.

    Examples
    --------
    >>> X = np.arange(1000.0)[:, None]
    >>> print(split(X))
    700 training, 200 validation and 100 test rows
    """
    n = n_rows(X)
    shares = _shares(sizes)
    key = Key.of(random_state)
    if time is not None:
        if groups is not None or by == "hash":
            raise DataError("a split by time cannot also be by groups or hash; choose one")
        return _by_time(np.asarray(time), n, shares)
    if groups is not None and np.shape(groups) != (n,):
        raise ShapeError(f"groups has shape {np.shape(groups)}; expected one label per row, ({n},)")
    if by == "hash":
        if groups is None:
            words = row_hash(*columns(X), seed=key.low)
        else:
            words = row_hash(np.asarray(groups), seed=key.low)
        u = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
        return _parts(np.searchsorted(np.cumsum(shares)[:-1], u, side="right"))
    if by != "shuffle":
        raise ValueError(f"by must be 'shuffle' or 'hash', got {by!r}")
    unit = _units(X, groups)
    labels = _labels(y, stratify, n)
    return _parts(_cut(unit, _order(X, unit, labels, key), shares)[unit])


def _shares(sizes: tuple[float, ...]) -> NDArray[np.float64]:
    shares = np.asarray(sizes, np.float64)
    if shares.shape == (2,):
        shares = np.array([shares[0], 0.0, shares[1]])
    if shares.shape != (3,) or (shares < 0).any() or not np.isclose(shares.sum(), 1):
        raise DataError(
            f"sizes are two or three shares that sum to 1, such as (.7, .2, .1), got {sizes}"
        )
    return shares


def _targets(n: int, shares: NDArray[np.float64]) -> NDArray[np.int64]:
    """Whole sizes by largest remainder."""
    exact = shares * n
    whole = np.floor(exact + 1e-9).astype(np.int64)
    order = np.argsort(-(exact - whole), kind="stable")
    whole[order[: n - int(whole.sum())]] += 1
    return whole


def _units(X: Any, groups: Any) -> NDArray[np.intp]:
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


def _labels(y: Any, stratify: Any, n: int) -> NDArray[np.intp] | None:
    if stratify is None or stratify is False:
        return None
    if isinstance(stratify, str) and stratify == "auto":
        if y is None:
            return None
        from sklearn.utils.multiclass import type_of_target

        values = np.asarray(y)
        if values.ndim != 1 or type_of_target(values) not in ("binary", "multiclass"):
            return None
        if values.dtype.kind in "iu" and len(np.unique(values)) > max(20, n // 10):
            return None  # counts, not classes
        stratify = values
    labels = np.unique(np.asarray(stratify), return_inverse=True)[1].reshape(-1)
    if labels.shape != (n,):
        raise ShapeError(f"stratify has {len(labels)} labels for {n} rows")
    return labels


def _order(X: Any, unit: NDArray[np.intp], labels: Any, key: Key) -> NDArray[np.intp]:
    """Units in the order in which they are dealt to the parts."""
    line = WeightLine.of(*columns(X)).order(key.fold("split"))
    _, first = np.unique(unit[line], return_index=True)  # where each unit begins on the line
    if labels is None:
        return np.argsort(first, kind="stable")
    k = int(labels.max()) + 1
    votes = np.zeros((len(first), k))
    np.add.at(votes, (unit, labels), 1)
    label = votes.argmax(1)  # a unit counts as its commonest label
    counts = np.bincount(labels, minlength=k)
    rare = np.flatnonzero((counts > 0) & (counts < _RARE))
    if len(rare):
        warnings.warn(
            f"{len(rare)} class(es) with fewer than {_RARE} rows cannot be kept in proportion",
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


def _cut(
    unit: NDArray[np.intp], order: NDArray[np.intp], shares: NDArray[np.float64]
) -> NDArray[np.intp]:
    """The part of each unit, with cuts at the ends of units nearest to the wanted sizes."""
    sizes = np.bincount(unit)[order]
    ends = np.cumsum(sizes)
    wanted = np.cumsum(_targets(int(ends[-1]), shares))[:-1]
    edge = np.r_[0, ends]
    cuts = [int(np.argmin(np.abs(edge - mark))) for mark in wanted]
    for i, (mark, share) in enumerate(zip(wanted, shares)):
        if share > 0 and mark > 0 and i == 0:
            cuts[i] = max(1, cuts[i])  # somebody has to train
    part = np.empty(len(sizes), np.intp)
    part[order] = np.searchsorted(np.maximum.accumulate(cuts), np.arange(len(sizes)), side="right")
    return part


def _by_time(time: NDArray[Any], n: int, shares: NDArray[np.float64]) -> SplitRows:
    if time.shape != (n,):
        raise ShapeError(f"time has shape {time.shape}; expected one per row, ({n},)")
    moment = np.unique(time, return_inverse=True)[1].reshape(-1)
    return _parts(_cut(moment, np.arange(int(moment.max()) + 1), shares)[moment])


def _parts(part: NDArray[np.intp]) -> SplitRows:
    return SplitRows(*(np.flatnonzero(part == i) for i in range(3)))
