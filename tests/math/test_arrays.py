"""NumPy in, NumPy out; torch in, torch out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor

from groundstate.math.arrays import takes_arrays


class Pair(NamedTuple):
    total: Any
    parts: Any


@dataclass(frozen=True)
class Record:
    value: Any
    word: str


@takes_arrays("x", "y")
def both(x: Any, y: Any = None, *, scale: float = 1.0) -> Any:
    total = scale * (x if y is None else x + y)
    return Pair(total.sum(), [total, {"twice": 2 * total}]), Record(total, "kept")


def test_numpy_comes_back_as_numpy() -> None:
    pair, record = both(np.arange(3), [1, 1, 1], scale=2.0)
    assert isinstance(pair, Pair) and type(pair.total) is float and pair.total == 12.0
    assert isinstance(pair.parts[0], np.ndarray) and pair.parts[0].dtype == np.float64
    assert isinstance(pair.parts[1]["twice"], np.ndarray)
    assert isinstance(record.value, np.ndarray) and record.word == "kept"


def test_single_precision_stays() -> None:
    assert both(np.ones(2, np.float32))[1].value.dtype == np.float32


def test_torch_comes_back_with_its_gradient() -> None:
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    pair, record = both(x, np.ones(2))
    assert isinstance(record.value, Tensor) and isinstance(pair.total, Tensor)
    pair.total.backward()
    assert x.grad is not None and x.grad.tolist() == [1.0, 1.0]


def test_arrays_share_memory_unless_they_cannot_be_written() -> None:
    seen = []
    watch = takes_arrays("x")(lambda x: seen.append(x.data_ptr()) or x.sum())
    x = np.ones(3)
    watch(x)
    assert seen == [x.__array_interface__["data"][0]]
    x.flags.writeable = False
    assert watch(x) == 3.0 and watch(np.arange(3.0)[::-1]) == 3.0


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_bad_numbers_name_the_argument(bad: float) -> None:
    with pytest.raises(ValueError, match="y holds NaN or infinity"):
        both(np.ones(2), [1.0, bad])
    with pytest.raises(ValueError, match="x must be an array of numbers"):
        both("three")
