"""What the readers of rows share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from groundstate.compute.rows import Rows


class RowReader(ABC):
    """Turns what people have into rows of one kind."""

    kind: ClassVar[str]
    accepts: ClassVar[str]  # in words, for messages

    @abstractmethod
    def takes(self, value: Any) -> bool:
        """Whether a value is clearly of this kind."""

    @abstractmethod
    def read(self, value: Any) -> Rows:
        """The value as rows; ``DataError`` says what was expected."""

    def labelled(self, value: Any) -> tuple[Rows, Any] | None:
        """Rows to learn from and their labels where a value holds both, such as class folders."""
        return None


def as_list(value: Any) -> list[Any] | None:
    """A list, tuple, one-dimensional array or column as a list; None for anything else."""
    if isinstance(value, list | tuple):
        return list(value)
    if isinstance(value, np.ndarray):
        return value.tolist() if value.ndim == 1 else None
    convert = getattr(value, "to_list", None)  # columns of pandas and polars
    if convert is not None and getattr(value, "ndim", 1) == 1:
        found: list[Any] = convert()
        return found
    return None


def real(values: Any) -> Tensor:
    """An array as a tensor: real numbers as float32 or float64, whole numbers as float32."""
    tensor = values if isinstance(values, Tensor) else torch.from_numpy(np.array(values))
    return tensor if tensor.dtype in (torch.float32, torch.float64) else tensor.float()


def is_array(value: Any, *ndim: int) -> bool:
    """Whether a value is an array of numbers with one of these numbers of axes."""
    if isinstance(value, Tensor):
        return value.ndim in ndim
    return isinstance(value, np.ndarray) and value.ndim in ndim and value.dtype.kind in "fiub"


def numbers(value: Any) -> bool:
    """Whether a value is an array or a (nested) list of numbers."""
    if isinstance(value, Tensor | np.ndarray):
        return is_array(value, *range(1, 9))
    if isinstance(value, Sequence) and not isinstance(value, str):
        return all(isinstance(v, int | float | np.number) or numbers(v) for v in value[:100])
    return False
