r"""Which rows train and which rows judge.

Every split is a cut of the weight line: rows in the order of a hash of their content, each as long
as its weight. The order of the rows therefore does not matter, a weight of 2 is the row twice, and
rows of equal content never end on both sides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.display import Displayed
from groundstate.compute.random import Key, RandomState
from groundstate.compute.weight_line.line import WeightLine
from groundstate.errors import DataError
from groundstate.evaluate.rows import Floats, classes_of, columns, n_rows, weights_of
from groundstate.evaluate.splits.units import group_parts


@dataclass(frozen=True)
class Split(Displayed):
    """Weights of the rows on the two sides; a row is on one side only.

    Attributes
    ----------
    train, test : (N,)
        The weight of each row on that side, zero when it is on the other.
    """

    train: Floats
    test: Floats

    @property
    def train_rows(self) -> NDArray[np.intp]:
        """Positions of the training rows, in the order of the table."""
        return np.flatnonzero(self.train)

    @property
    def test_rows(self) -> NDArray[np.intp]:
        """Positions of the held-out rows, in the order of the table."""
        return np.flatnonzero(self.test)


def train_test(
    X: Any,
    y: Any = None,
    *,
    test: float = 0.25,
    key: Key | RandomState = 0,
    sample_weight: Any = None,
    stratify: bool = False,
) -> Split:
    """Set a share of the weight aside for the one look at the end.

    Parameters
    ----------
    X : (N, ...)
        Array, sparse matrix, frame or table.
    y : (N,), optional
        Targets; they count as part of a row's content.
    test
        Share of the weight to set aside.
    key
        Seed or key.
    stratify
        Keep the shares of the labels ``y`` on both sides; every label gets a training row.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.repeat(np.arange(8.0), 2)[:, None]  # every row twice
    >>> split = train_test(X, test=0.25, key=1)
    >>> len(split.test_rows), set(X[split.train_rows, 0]) & set(X[split.test_rows, 0])
    (4, set())
    """
    if not 0 < test < 1:
        raise DataError(f"test is the share of rows to set aside, between 0 and 1, got {test}")
    line, labels = _line(X, y, sample_weight, stratify)
    if line.n_distinct < 2:
        raise DataError(f"{line.n_distinct} different row cannot be split in two; bring more data")
    parts = line.cut(Key.of(key), test, stratify=labels, whole=True)
    if not parts[1].any():
        raise DataError(
            f"a share of {test} of {line.n_distinct} different rows is not one row; raise test"
        )
    return Split(parts[0], parts[1])


def different_rows(X: Any) -> int:
    """How many different rows a table has; equal ones are never on both sides of a cut.

    >>> different_rows([[1.0], [1.0], [2.0]])
    2
    """
    return int(_line(X, None, None, False)[0].n_distinct)


def folds(
    X: Any,
    y: Any = None,
    *,
    k: int = 5,
    key: Key | RandomState = 0,
    sample_weight: Any = None,
    stratify: bool = False,
) -> list[Split]:
    """Cut the table into k parts, each held out once.

    Parameters
    ----------
    k
        At least 2 and at most the number of different rows.
    X, y, key, sample_weight, stratify
        As in :func:`train_test`.

    Examples
    --------
    >>> import numpy as np
    >>> parts = folds(np.arange(6.0)[:, None], k=3)
    >>> sorted(row for part in parts for row in part.test_rows.tolist())
    [0, 1, 2, 3, 4, 5]
    """
    line, labels = _line(X, y, sample_weight, stratify)
    if not 2 <= k <= line.n_distinct:
        raise DataError(f"k is between 2 and the {line.n_distinct} different rows, got {k}")
    train = line.folds(Key.of(key), k, stratify=labels, whole=True)  # (k, N)
    return [Split(w, np.where(w > 0, 0.0, line.weights)) for w in train]


def fold_pairs(
    estimator: Any,
    X: Any,
    y: Any,
    k: int,
    key: Key,
    *,
    repeats: int = 1,
    groups: Any = None,
    sample_weight: Any = None,
) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Training and test rows of k folds, drawn again ``repeats`` times.

    The labels of a classifier are spread evenly; rows of a group stay together.
    """
    from sklearn.base import is_classifier
    from sklearn.utils.multiclass import type_of_target

    classes = y is not None and is_classifier(estimator)
    classes = classes and type_of_target(y) in ("binary", "multiclass")
    if groups is not None:
        if repeats > 1:
            raise DataError("repeats draw folds of rows again; with groups use repeats=1")
        labels = classes_of(y)[1] if classes else None
        part = group_parts(X, groups, [1 / k] * k, key, labels)
        return [(np.flatnonzero(part != i), np.flatnonzero(part == i)) for i in range(k)]
    drawn = [key] if repeats == 1 else [key.fold("repeat", r) for r in range(repeats)]
    return [
        (part.train_rows, part.test_rows)
        for one in drawn
        for part in folds(X, y, k=k, key=one, sample_weight=sample_weight, stratify=classes)
    ]


def _line(
    X: Any, y: Any, sample_weight: Any, stratify: bool
) -> tuple[WeightLine, NDArray[np.intp] | None]:
    weights = weights_of(sample_weight, n_rows(X))
    if stratify and y is None:
        raise DataError("stratify keeps the shares of labels; pass y")
    labels = classes_of(y)[1] if stratify else None
    return WeightLine.of(*columns(X), y, weights=weights), labels
