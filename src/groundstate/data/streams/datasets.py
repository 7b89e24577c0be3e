"""torch data sets and other things that give their rows one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from groundstate.errors import DataError


class Rereadable:
    """A stream of rows that starts anew whenever it is read.

    Parameters
    ----------
    make : function without arguments that gives the rows, such as a generator function

    Examples
    --------
    >>> rows = Rereadable(lambda: iter([1, 2]))
    >>> list(rows), list(rows)
    ([1, 2], [1, 2])
    """

    def __init__(self, make: Callable[[], Iterable[Any]]) -> None:
        if isinstance(make, Iterator):
            raise DataError(
                "a generator can be read once, and training reads its rows every epoch; pass the "
                "function that makes it"
            )
        if not callable(make):
            raise DataError(f"expected a function that gives rows, got {type(make).__name__}")
        self.make = make

    def __iter__(self) -> Iterator[Any]:
        return iter(self.make())


def is_dataset(value: Any) -> bool:
    """Whether a value gives rows one by one: a torch ``Dataset`` or something to be read again."""
    if isinstance(value, torch.utils.data.DataLoader):
        raise DataError(
            "a DataLoader gives batches, and training draws its own from the rows; pass "
            "loader.dataset, and batch_size to the estimator"
        )
    return isinstance(value, torch.utils.data.Dataset | Rereadable)


def columns_of(dataset: Any) -> dict[str, list[Any]]:
    """All rows of a data set in memory, part by part: ``x`` and ``y``, or the names of its dicts."""
    indexed = hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__")
    rows = [dataset[i] for i in range(len(dataset))] if indexed else list(dataset)
    if not rows:
        raise DataError(f"{type(dataset).__name__} gives no rows")
    first = rows[0]
    if isinstance(first, Mapping):
        return {name: [row[name] for row in rows] for name in first}
    if not isinstance(first, tuple):
        return {"x": rows}
    if len(first) > 3:
        raise DataError(
            f"a row of {type(dataset).__name__} has {len(first)} parts; give dicts that name them"
        )
    return {
        name: [row[i] for row in rows] for i, name in enumerate(("x", "y", "weight")[: len(first)])
    }


def stacked(values: list[Any]) -> Any:
    """Arrays of one shape as one array, anything else as the list it is."""
    if not all(isinstance(v, Tensor | np.ndarray | int | float | np.number) for v in values):
        return values
    arrays = [v.numpy() if isinstance(v, Tensor) else np.asarray(v) for v in values]
    return np.stack(arrays) if len({a.shape for a in arrays}) == 1 else arrays
