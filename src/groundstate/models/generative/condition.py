r"""What a generator is conditioned on: classes or real columns as a context vector.

.. math:: p(x) = \sum_y p(y)\,p(x \mid y)

A class is one-hot, real columns have mean 0 and spread 1, and zeros stand for an unknown class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.multiclass import type_of_target
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.compute.weight_line.line import WeightLine
from groundstate.errors import DataError, ShapeError
from groundstate.models.entries import no_label_missing
from groundstate.models.generative.coding import coarse

KEPT = 64  # values of real columns that stand for their distribution


@dataclass(frozen=True, eq=False)
class Condition:
    """What y was in training.

    Attributes
    ----------
    classes : (K,) array of labels, or None for real columns
    mean, scale : of real columns, ``(q,)``
    contexts : (m, q) array
        The classes one-hot, or values of the real columns that stand for all.
    weights : (m,) array
        Probability of each.
    flat : whether y came as one column

    Examples
    --------
    >>> seen = Condition.learned(np.array(["a", "b", "b", "b"]))
    >>> seen.encode(["b", "a"]).tolist(), seen.weights.tolist()
    ([[0.0, 1.0], [1.0, 0.0]], [0.25, 0.75])
    """

    classes: NDArray[Any] | None
    mean: NDArray[np.float64]
    scale: NDArray[np.float64]
    contexts: NDArray[np.float64]
    weights: NDArray[np.float64]
    flat: bool

    @classmethod
    def learned(cls, y: Any, weight: Any = None) -> Condition:
        """Learn it from the training rows' y, ``(n,)`` or ``(n, q)``."""
        y = _labels_or_values(y)
        w = np.ones(len(y)) if weight is None else np.asarray(weight, np.float64)
        if is_classes(y):
            classes, index = np.unique(y, return_inverse=True)
            share = np.bincount(index, w, len(classes)) / w.sum()
            k = len(classes)
            return cls(classes, np.zeros(k), np.ones(k), np.eye(k), share, True)
        values = y.astype(np.float64).reshape(len(y), -1)
        if not np.isfinite(values).all():
            raise DataError("y holds NaN or infinity; drop the rows without a finite condition")
        mean = np.average(values, axis=0, weights=w)
        spread = np.sqrt(np.average((values - mean) ** 2, axis=0, weights=w))
        mean, spread = coarse(mean, np.where(spread > 0, spread, 1.0))
        coded = (values - mean) / spread
        at, share = np.arange(len(coded)), w / w.sum()
        if len(coded) > KEPT:
            at = np.asarray(WeightLine.of(coded, weights=w).draw(Key.of(0).fold("y"), KEPT))
            share = np.full(KEPT, 1 / KEPT)
        return cls(None, mean, spread, coded[at], share, y.ndim == 1)

    @property
    def size(self) -> int:
        """Length q of a context."""
        return int(self.contexts.shape[1])

    def encode(self, y: Any) -> NDArray[np.float64]:
        """Contexts ``(n, q)`` of labels or values."""
        y = np.asarray(y.cpu() if isinstance(y, Tensor) else y)
        if self.classes is not None:
            flat = y.reshape(-1)
            foreign = np.setdiff1d(flat, self.classes)
            if len(foreign):
                raise DataError(
                    f"y holds {foreign.tolist()[0]!r}, which was not seen in fit; the classes are "
                    f"{', '.join(map(repr, self.classes.tolist()[:10]))}"
                )
            return np.asarray(np.eye(len(self.classes))[np.searchsorted(self.classes, flat)])
        values = y.astype(np.float64)
        values = values.reshape(-1, 1) if self.size == 1 else np.atleast_2d(values)
        if values.shape[1] != self.size:
            raise ShapeError(f"y must have {self.size} columns as in fit, got {values.shape[1]}")
        if not np.isfinite(values).all():
            raise DataError("y holds NaN or infinity")
        return np.asarray((values - self.mean) / self.scale)

    def draw(self, n: int, key: Key) -> NDArray[np.float64]:
        """So many contexts as training rows have them, ``(n, q)``."""
        at = np.searchsorted(np.cumsum(self.weights), key.uniform(n) * self.weights.sum())
        return self.contexts[np.minimum(at, len(self.contexts) - 1)]

    def all_contexts(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """Every context ``(m, q)`` and the logarithm of its probability ``(m,)``."""
        return (
            torch.from_numpy(self.contexts).to(like),
            torch.from_numpy(np.log(np.maximum(self.weights, 1e-300))).to(like),
        )


def _labels_or_values(y: Any) -> NDArray[Any]:
    """y as an array, a single column of labels as a list of them."""
    no_label_missing(y)
    y = np.asarray(y)
    if y.dtype.kind in "OUS" and y.ndim > 1:
        if y.ndim > 2 or y.shape[1] != 1:
            raise ShapeError(
                f"labels are one for each row, ({len(y)},), got text of shape {y.shape}; give one "
                "column, or numbers for a condition of several"
            )
        y = y[:, 0]
    return y


def is_classes(y: NDArray[Any]) -> bool:
    """Whether y are labels: text, or numbers that are all whole, in one column."""
    return y.ndim == 1 and not str(type_of_target(y)).startswith("continuous")
