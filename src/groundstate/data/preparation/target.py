"""The targets of training rows, as encoders of labels ask for them."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.data.preparation.levels import PARTS
from groundstate.data.tables.table import Table


class Target:
    """The targets of training rows, as numbers for encoders."""

    def __init__(self, features: Table, y: Any, classes: bool | None) -> None:
        self._features, self._y = features, None if y is None else np.asarray(y)
        self._classes = classes

    @property
    def known(self) -> bool:
        """Whether there is one target per row to encode by."""
        y = self._y
        return y is not None and y.ndim == 1 and len(y) == self._features.n_rows and len(y) > 0

    @cached_property
    def _table(self) -> tuple[NDArray[np.float64], tuple[str, ...]]:
        y, classes = np.asarray(self._y), self._classes
        if classes is None:
            classes = y.dtype.kind not in "fiu"
        if not classes:
            return y.astype(np.float64)[:, None], ()
        labels, codes = np.unique(y, return_inverse=True)
        target = tuple(str(label) for label in labels)
        if len(labels) <= 2:
            return (codes == len(labels) - 1).astype(np.float64).reshape(-1, 1), target[-1:]
        return np.eye(len(labels))[codes.reshape(-1)], target

    @property
    def values(self) -> NDArray[np.float64]:
        """Values, or which class.  # (n, K)"""
        return self._table[0]

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the K classes, none for numbers."""
        return self._table[1]

    @cached_property
    def part(self) -> NDArray[np.intp]:
        """Which part of the rows each row is in, by its content: equal rows stay together.  # (n,)"""
        from groundstate.compute.weight_line.hashing import (
            row_hash,  # knows torch, which reading does without
        )

        table = self._features
        words = row_hash(*(table.values(name) for name in table.columns), self.values)
        return (words % np.uint64(PARTS)).astype(np.intp)
