"""Rows to learn from and rows to be judged by."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.random import Key
from groundstate.compute.weight_line.hashing import row_hash
from groundstate.compute.weight_line.line import WeightLine
from groundstate.errors import DataError
from groundstate.evaluate.rows import columns, n_rows, take, weights_of

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Rows:
    """A table with targets and weights."""

    X: Any
    y: Any
    weight: Floats

    @classmethod
    def of(cls, X: Any, y: Any = None, sample_weight: Any = None) -> Rows:
        """Check that there is one target and one weight for each row."""
        n = n_rows(X)
        target = None if y is None else np.asarray(y)
        if target is not None and len(target) != n:
            raise DataError(f"X has {n} rows and y has {len(target)}; expected one target per row")
        return cls(X, target, weights_of(sample_weight, n))

    def __len__(self) -> int:
        return len(self.weight)

    def part(self, weight: Floats) -> Rows:
        """The rows of positive weight."""
        rows = np.flatnonzero(weight > 0)
        if len(rows) == len(weight):
            return Rows(self.X, self.y, weight)
        y = None if self.y is None else self.y[rows]
        return Rows(take(self.X, rows), y, weight[rows])

    def share(self, fraction: float, key: Key) -> Rows:
        """That share of the weight, cut on the weight line; a smaller share lies in a larger."""
        if fraction >= 1:
            return self
        line = WeightLine.of(*columns(self.X), self.y, weights=self.weight)
        labels = None
        if self.y is not None and self.y.dtype.kind in "OUSbiu":
            labels = np.unique(self.y, return_inverse=True)[1]
        return self.part(np.asarray(line.cut(key, fraction, stratify=labels)[1]))

    def hashes(self) -> NDArray[np.uint64]:
        """Of the content of every row, x and y together.  # (n,)"""
        parts = columns(self.X)
        return row_hash(*parts, self.y) if self.y is not None else row_hash(*parts)

    def fingerprint(self) -> str:
        """Of the rows and their weights, whatever their order."""
        order = np.argsort(self.hashes(), kind="stable")
        text = self.hashes()[order].tobytes() + self.weight[order].tobytes()
        return hashlib.blake2b(text, digest_size=16).hexdigest()

    def union(self, other: Rows) -> Rows:
        """Both tables, one under the other."""
        y = None if self.y is None else np.concatenate([self.y, other.y])
        return Rows(_under(self.X, other.X), y, np.concatenate([self.weight, other.weight]))


def check_disjoint(train: Rows, validation: Rows) -> None:
    """Raise when a row is on both sides."""
    common = np.intersect1d(train.hashes(), validation.hashes())
    if len(common):
        raise DataError(
            f"{len(common)} rows are both in the training and in the validation rows, so the "
            "validation risk would be too low; take them out of one of the two"
        )


def _under(first: Any, second: Any) -> Any:
    if hasattr(first, "tocsr"):
        from scipy.sparse import vstack

        return vstack([first, second]).tocsr()
    if hasattr(first, "columns") and not isinstance(first, np.ndarray):
        import narwhals.stable.v1 as nw

        frames = [nw.from_native(X, eager_only=True) for X in (first, second)]
        return nw.concat(frames).to_native()
    if hasattr(first, "detach"):
        import torch

        return torch.cat([first, second])
    return np.concatenate([np.asarray(first), np.asarray(second)])
