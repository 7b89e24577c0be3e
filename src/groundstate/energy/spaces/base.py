r"""Where a variable lives: :math:`\mathcal X, \mathcal Y, \mathcal Z`.

A space is frozen, hashable and holds no tensors. It knows its values: how many there are, how to
list them, check membership and draw start points; and its rows: how to count, take, join, move,
hash and describe them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence as SequenceOf
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute import rows
from groundstate.compute.rows import Rows
from groundstate.errors import Unsupported


class Space(ABC):
    """A set of values; see the concrete spaces below."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Event shape of one value."""

    @property
    @abstractmethod
    def size(self) -> float:
        """Number of values, ``math.inf`` for a continuum."""

    @property
    def is_finite(self) -> bool:
        return not math.isinf(self.size)

    @property
    def is_real(self) -> bool:
        """True when values are floats in which an energy can be differentiated."""
        return False

    def dtype(self, floating: torch.dtype) -> torch.dtype:
        """Dtype of a value, given the floating dtype of the energy."""
        return floating

    @abstractmethod
    def enumerate(
        self, device: torch.device | None = None, dtype: torch.dtype | None = None
    ) -> Tensor:
        """All values, ``(size, *shape)``; raises ``Unsupported`` on a continuum."""

    @abstractmethod
    def contains(self, v: Any) -> Tensor:
        """Which rows of ``v`` are values of this space, ``(B,)`` bool."""

    @abstractmethod
    def draw(
        self,
        n: int,
        *,
        generator: torch.Generator | None = None,
        device: torch.device | None = None,
        dtype: torch.dtype | None = None,
    ) -> Any:
        """``n`` start points, ``(n, *shape)``: uniform where that exists, else standard normal."""

    # --- rows ----------------------------------------------------------------------------

    def fits(self, v: Rows) -> bool:
        """Whether rows have the form of this space's values; their content is not looked at."""
        return isinstance(v, Tensor) and tuple(v.shape[1:]) == self.shape

    def expected(self) -> str:
        """What ``fits`` asks of rows, in words."""
        return f"have shape (B, {', '.join(map(str, self.shape))})"

    def count(self, v: Rows) -> int:
        """Number of rows."""
        return rows.count(v)

    def take(self, v: Rows, index: Tensor) -> Rows:
        """The rows of an index."""
        return rows.take(v, index)

    def join(self, parts: SequenceOf[Rows]) -> Rows:
        """The rows of several values, one after the other."""
        return rows.join(parts)

    def to_device(self, v: Rows, device: torch.device) -> Rows:
        """The same rows on a device."""
        return rows.to_device(v, device)

    def hashes(self, v: Rows) -> NDArray[np.uint64]:
        """The content of every row as one 64-bit word."""
        return rows.hashes(v)

    def describe(self, v: Rows) -> str:
        """Kind, number and sizes of rows in a few words."""
        return rows.describe(v)

    def _not_listable(self) -> Unsupported:
        return Unsupported(
            f"{self!r} has infinitely many values and cannot be enumerated; "
            "use gradient, closed-form or sampling inference for it"
        )
