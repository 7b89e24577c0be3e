"""A row of the table of mathematical functions: how to call one, and what it promises.

To add functions, write ``tests/contracts/math_rows/<folder>.py`` with a list ``ROWS``; the contract
finds the file by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

Draw = Callable[[np.random.Generator], tuple[Any, ...]]


def same(*args: Any) -> tuple[Any, ...]:
    return args


@dataclass(frozen=True)
class Row:
    """One public function.

    Parameters
    ----------
    name : as users write it, ``"linalg.logm"``
    call : the function, of its array arguments alone (fix options and ``random_state`` here)
    draw : float64 arrays for these arguments, of a NumPy generator
    names : the names of these arguments
    gradient : whether it is differentiable
    batched : whether leading dimensions of all arguments are a batch
    valid : for the gradient only: takes free tensors to valid arguments, as B to BBᵀ + I
    free : for the gradient only: free arrays, where they are others than those of ``draw``
    single : relative error allowed in single precision
    exact : whether answers to arrays and to tensors must be equal to the last bit
    """

    name: str
    call: Callable[..., Any]
    draw: Draw
    names: tuple[str, ...]
    gradient: bool = True
    batched: bool = True
    valid: Callable[..., tuple[Any, ...]] = same
    free: Draw | None = None
    single: float = 1e-3
    exact: bool = True

    def __str__(self) -> str:
        return self.name


def numbers(value: Any) -> Iterator[Any]:
    """The arrays, tensors and numbers of an answer, through tuples, dicts and dataclasses."""
    if isinstance(value, Tensor | np.ndarray | float | int | complex):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from numbers(part)
    elif isinstance(value, tuple | list):
        for part in value:
            yield from numbers(part)
    elif is_dataclass(value) and not isinstance(value, type):
        for part in fields(value):
            yield from numbers(getattr(value, part.name))


def tensors(args: tuple[Any, ...], dtype: torch.dtype = torch.float64) -> tuple[Tensor, ...]:
    return tuple(torch.as_tensor(a).to(dtype) for a in args)
