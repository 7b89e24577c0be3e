"""Train, validation and test rows in one call."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.display import Displayed
from groundstate.compute.random import Key, RandomState
from groundstate.compute.rows import RowContainer
from groundstate.compute.weight_line.hashing import row_hash
from groundstate.errors import DataError, ShapeError
from groundstate.evaluate.rows import columns, n_rows
from groundstate.evaluate.splits.units import cut, dealt, units

Rows = NDArray[np.intp]


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
    unit = units(X, groups)
    labels = _labels(y, stratify, n)
    return _parts(cut(unit, dealt(X, unit, labels, key.fold("split")), shares))


def _shares(sizes: tuple[float, ...]) -> NDArray[np.float64]:
    shares = np.asarray(sizes, np.float64)
    if shares.shape == (2,):
        shares = np.array([shares[0], 0.0, shares[1]])
    if shares.shape != (3,) or (shares < 0).any() or not np.isclose(shares.sum(), 1):
        raise DataError(
            f"sizes are two or three shares that sum to 1, such as (.7, .2, .1), got {sizes}"
        )
    return shares


def _labels(y: Any, stratify: Any, n: int) -> NDArray[np.intp] | None:
    if stratify is None or stratify is False:
        return None
    if isinstance(stratify, str) and stratify == "auto":
        if y is None or isinstance(y, RowContainer):  # sets of boxes, tags of tokens: no one label
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


def _by_time(time: NDArray[Any], n: int, shares: NDArray[np.float64]) -> SplitRows:
    if time.shape != (n,):
        raise ShapeError(f"time has shape {time.shape}; expected one per row, ({n},)")
    moment = np.unique(time, return_inverse=True)[1].reshape(-1)
    return _parts(cut(moment, np.arange(int(moment.max()) + 1), shares))


def _parts(part: NDArray[np.intp]) -> SplitRows:
    return SplitRows(*(np.flatnonzero(part == i) for i in range(3)))
