"""Rows of categories: one level number for each column."""

from __future__ import annotations

import math
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from groundstate.energy.spaces.base import Space


@dataclass(frozen=True, init=False)
class Levels(Space):
    """Arrays of level numbers, column j one of ``0..sizes[j]-1``, stored as floats as tables are.

    A size of 0 stands for a column of real numbers.

    ``enumerate`` is lexicographic, the first column most significant.

    >>> Levels((2, 3)).enumerate()[:4].tolist()
    [[0.0, 0.0], [0.0, 1.0], [0.0, 2.0], [1.0, 0.0]]
    """

    sizes: tuple[int, ...]

    def __init__(self, sizes: SequenceOf[int]) -> None:
        object.__setattr__(self, "sizes", tuple(int(k) for k in sizes))
        if any(k < 0 for k in self.sizes):
            raise ValueError(f"a column has a number of levels, or 0 if real; got {self.sizes}")

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.sizes),)

    @property
    def size(self) -> float:
        if 0 in self.sizes:
            return math.inf
        digits = sum(map(math.log2, self.sizes))
        return float(math.prod(self.sizes)) if digits < 1023 else 2.0**1023

    def enumerate(
        self, device: torch.device | None = None, dtype: torch.dtype | None = None
    ) -> Tensor:
        if not self.is_finite:
            raise self._not_listable()
        code = torch.arange(math.prod(self.sizes), device=device)
        columns = []
        for k in reversed(self.sizes):
            columns.append(code % k)
            code = code // k
        return torch.stack(columns[::-1], 1).to(dtype or torch.get_default_dtype())

    def contains(self, v: Tensor) -> Tensor:
        top = torch.tensor(self.sizes, device=v.device)
        level = (v >= 0) & (v < top) & (v == v.round())
        return torch.where(top > 0, level, torch.isfinite(v)).all(1)

    def draw(
        self, n: int, *, generator: Any = None, device: Any = None, dtype: Any = None
    ) -> Tensor:
        dtype = dtype or torch.get_default_dtype()
        return torch.stack(
            [
                torch.randint(k, (n,), generator=generator, device=device).to(dtype)
                if k
                else torch.randn(n, generator=generator, device=device, dtype=dtype)
                for k in self.sizes
            ],
            1,
        )
