"""Rows of a table whose columns are of several kinds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from groundstate.energy.spaces.base import Space


@dataclass(frozen=True)
class Columns(Space):
    """Rows of columns that are real or categories, all stored as floats.

    ``levels[j]`` is 0 for a real column, else the number of categories of column j, whose values
    are the whole numbers from 0.

    >>> space = Columns((2, 3))
    >>> space.size, space.enumerate()[-1].tolist()
    (6.0, [1.0, 2.0])
    >>> Columns((0, 3)).contains(torch.tensor([[0.5, 2.0], [0.5, 1.5]])).tolist()
    [True, False]
    """

    levels: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.levels or any(k < 0 or k == 1 for k in self.levels):
            raise ValueError(
                "levels are 0 for a real column or at least 2 for one of categories, got "
                f"{self.levels}"
            )

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.levels),)

    @property
    def size(self) -> float:
        if 0 in self.levels:
            return math.inf
        return float(min(math.prod(self.levels), 2**1023))

    def enumerate(
        self, device: torch.device | None = None, dtype: torch.dtype | None = None
    ) -> Tensor:
        if not self.is_finite:
            raise self._not_listable()
        parts = [torch.arange(k, device=device) for k in self.levels]
        grid = torch.cartesian_prod(*parts).reshape(-1, len(self.levels))
        return grid.to(dtype or torch.get_default_dtype())

    def contains(self, v: Tensor) -> Tensor:
        top = torch.tensor([k - 1 if k else math.inf for k in self.levels], device=v.device)
        listed = torch.tensor([k > 0 for k in self.levels], device=v.device)
        whole = (v >= 0) & (v <= top) & (v == v.round())
        return (torch.isfinite(v) & (whole | ~listed)).all(1)

    def draw(
        self, n: int, *, generator: Any = None, device: Any = None, dtype: Any = None
    ) -> Tensor:
        dtype = dtype or torch.get_default_dtype()
        size = (n, len(self.levels))
        levels = torch.tensor(self.levels, device=device)
        u = torch.rand(size, generator=generator, device=device, dtype=dtype)
        whole = (u * levels).floor().minimum((levels - 1).clamp_min(0).to(dtype))
        real = torch.randn(size, generator=generator, device=device, dtype=dtype)
        return torch.where(levels > 0, whole, real)
