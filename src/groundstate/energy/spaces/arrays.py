"""Spaces of arrays: numbers of classes, bits, reals, counts, probabilities, padded sequences."""

from __future__ import annotations

import math
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from groundstate.energy.spaces.base import Space


@dataclass(frozen=True)
class Finite(Space):
    """The integers ``0..n-1`` as int64 scalars: classes, cluster indices.

    >>> Finite(3).enumerate()
    tensor([0, 1, 2])
    """

    n: int

    def __post_init__(self) -> None:
        if self.n < 1:
            raise ValueError(f"Finite needs at least one value, got n={self.n}")

    @property
    def shape(self) -> tuple[int, ...]:
        return ()

    @property
    def size(self) -> float:
        return self.n

    def dtype(self, floating: torch.dtype) -> torch.dtype:
        return torch.int64

    def enumerate(
        self, device: torch.device | None = None, dtype: torch.dtype | None = None
    ) -> Tensor:
        return torch.arange(self.n, device=device)

    def contains(self, v: Tensor) -> Tensor:
        return (v >= 0) & (v < self.n) & (v == v.round())

    def draw(
        self, n: int, *, generator: Any = None, device: Any = None, dtype: Any = None
    ) -> Tensor:
        return torch.randint(self.n, (n,), generator=generator, device=device)


class _Shaped(Space):
    _shape: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return self._shape


@dataclass(frozen=True, init=False, repr=False)
class Binary(_Shaped):
    """Arrays of zeros and ones, stored as floats so that they enter matrix products.

    ``enumerate`` is lexicographic, the first coordinate most significant.

    >>> Binary(2).enumerate().tolist()
    [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    """

    _shape: tuple[int, ...]

    def __init__(self, *shape: int) -> None:
        object.__setattr__(self, "_shape", tuple(shape))

    def __repr__(self) -> str:
        return f"Binary({', '.join(map(str, self._shape))})"

    @property
    def size(self) -> float:
        return float(2 ** min(math.prod(self._shape), 1023))  # finite, if beyond counting

    def enumerate(
        self, device: torch.device | None = None, dtype: torch.dtype | None = None
    ) -> Tensor:
        d = math.prod(self._shape)
        codes = torch.arange(2**d, device=device)
        shifts = torch.arange(d - 1, -1, -1, device=device)
        bits = (codes[:, None] >> shifts) & 1  # (2^d, d)
        return bits.to(dtype or torch.get_default_dtype()).reshape(-1, *self._shape)

    def contains(self, v: Tensor) -> Tensor:
        return ((v == 0) | (v == 1)).flatten(1).all(1) if v.ndim > 1 else (v == 0) | (v == 1)

    def draw(
        self, n: int, *, generator: Any = None, device: Any = None, dtype: Any = None
    ) -> Tensor:
        bits = torch.randint(2, (n, *self._shape), generator=generator, device=device)
        return bits.to(dtype or torch.get_default_dtype())


@dataclass(frozen=True, init=False, repr=False)
class Real(_Shaped):
    """Real arrays of a shape, optionally in a box ``[low, high]``.

    >>> Real(2, low=0.0).contains(torch.tensor([[1.0, 2.0], [-1.0, 0.0]])).tolist()
    [True, False]
    """

    _shape: tuple[int, ...]
    low: float | None
    high: float | None

    def __init__(self, *shape: int, low: float | None = None, high: float | None = None) -> None:
        if low is not None and high is not None and not low < high:
            raise ValueError(f"Real needs low < high, got low={low}, high={high}")
        object.__setattr__(self, "_shape", tuple(shape))
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    def __repr__(self) -> str:
        parts = [*map(str, self._shape)]
        parts += [f"{k}={v}" for k, v in (("low", self.low), ("high", self.high)) if v is not None]
        return f"Real({', '.join(parts)})"

    @property
    def size(self) -> float:
        return math.inf

    @property
    def is_real(self) -> bool:
        return True

    @property
    def bounded(self) -> bool:
        return self.low is not None and self.high is not None

    def enumerate(
        self, device: torch.device | None = None, dtype: torch.dtype | None = None
    ) -> Tensor:
        raise self._not_listable()

    def contains(self, v: Tensor) -> Tensor:
        low = -math.inf if self.low is None else self.low
        high = math.inf if self.high is None else self.high
        inside = torch.isfinite(v) & (v >= low) & (v <= high)
        return inside.flatten(1).all(1) if v.ndim > 1 else inside

    def draw(
        self, n: int, *, generator: Any = None, device: Any = None, dtype: Any = None
    ) -> Tensor:
        dtype = dtype or torch.get_default_dtype()
        size = (n, *self._shape)
        if self.low is not None and self.high is not None:
            u = torch.rand(size, generator=generator, device=device, dtype=dtype)
            return self.low + (self.high - self.low) * u
        normal = torch.randn(size, generator=generator, device=device, dtype=dtype)
        if self.low is not None:
            return self.low + normal.abs()
        if self.high is not None:
            return self.high - normal.abs()
        return normal


@dataclass(frozen=True, init=False, repr=False)
class Count(_Shaped):
    """Arrays of the integers 0, 1, 2, ... without end, stored as floats.

    >>> Count(2).contains(torch.tensor([[0.0, 3.0], [0.5, 1.0]])).tolist()
    [True, False]
    """

    _shape: tuple[int, ...]

    def __init__(self, *shape: int) -> None:
        object.__setattr__(self, "_shape", tuple(shape))

    def __repr__(self) -> str:
        return f"Count({', '.join(map(str, self._shape))})"

    @property
    def size(self) -> float:
        return math.inf

    def enumerate(
        self, device: torch.device | None = None, dtype: torch.dtype | None = None
    ) -> Tensor:
        raise self._not_listable()

    def contains(self, v: Tensor) -> Tensor:
        whole = torch.isfinite(v) & (v >= 0) & (v == v.round())
        return whole.flatten(1).all(1) if v.ndim > 1 else whole

    def draw(
        self, n: int, *, generator: Any = None, device: Any = None, dtype: Any = None
    ) -> Tensor:
        u = torch.rand(n, *self._shape, generator=generator, device=device, dtype=dtype)
        return torch.floor(-torch.log1p(-u) / math.log(2))  # geometric with mean 1


@dataclass(frozen=True)
class Simplex(Space):
    """Probability vectors of length ``n``."""

    n: int

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.n,)

    @property
    def size(self) -> float:
        return math.inf

    @property
    def is_real(self) -> bool:
        return True

    def enumerate(
        self, device: torch.device | None = None, dtype: torch.dtype | None = None
    ) -> Tensor:
        raise self._not_listable()

    def contains(self, v: Tensor) -> Tensor:
        total = v.sum(-1)
        return (v >= 0).all(-1) & torch.isclose(total, torch.ones_like(total), atol=1e-6)

    def draw(
        self, n: int, *, generator: Any = None, device: Any = None, dtype: Any = None
    ) -> Tensor:
        u = torch.rand(n, self.n, generator=generator, device=device, dtype=dtype)
        gaps = -torch.log1p(-u)  # exponential gaps: uniform on the simplex once normalised
        return gaps / gaps.sum(-1, keepdim=True)


@dataclass(frozen=True)
class Sequence(Space):
    """Sequences of up to ``max_length`` items, padded to ``max_length``.

    Shorter rows carry their length in the energy's ``lengths`` argument; what stands behind the
    length is ignored. Enumeration lists full-length sequences, first item most significant.

    >>> int(Sequence(Finite(2), 3).size)
    8
    """

    item: Space
    max_length: int

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.max_length, *self.item.shape)

    @property
    def size(self) -> float:
        k = self.item.size
        if k <= 1 or math.isinf(k):
            return k if self.max_length else 1.0
        within = self.max_length * math.log2(k) < 1023
        return k**self.max_length if within else 2.0**1023  # finite, if beyond counting

    @property
    def is_real(self) -> bool:
        return self.item.is_real

    def dtype(self, floating: torch.dtype) -> torch.dtype:
        return self.item.dtype(floating)

    def enumerate(
        self, device: torch.device | None = None, dtype: torch.dtype | None = None
    ) -> Tensor:
        if not self.is_finite:
            raise self._not_listable()
        items = self.item.enumerate(device, dtype)  # (K, *item)
        k, L = len(items), self.max_length
        place = torch.tensor([k ** (L - 1 - i) for i in range(L)], device=device)
        index = torch.arange(k**L, device=device)[:, None] // place % k  # digits to base K
        return items[index]  # (K^L, L, *item)

    def contains(self, v: Tensor) -> Tensor:
        flat = v.reshape(-1, *self.item.shape)
        return self.item.contains(flat).reshape(len(v), -1).all(1)

    def draw(
        self, n: int, *, generator: Any = None, device: Any = None, dtype: Any = None
    ) -> Tensor:
        flat = self.item.draw(n * self.max_length, generator=generator, device=device, dtype=dtype)
        return flat.reshape(n, self.max_length, *self.item.shape)


def space_of_rows(x: int | SequenceOf[int] | Space) -> Space:
    """A space as it is; real rows of a size or shape otherwise.

    >>> space_of_rows(3), space_of_rows((1, 28, 28)), space_of_rows(Finite(2))
    (Real(3), Real(1, 28, 28), Finite(n=2))
    """
    if isinstance(x, Space):
        return x
    return Real(*((x,) if isinstance(x, int) else x))


def label_grid(k: int, *positions: int) -> Space:
    """The space of one label out of k at each position.

    >>> label_grid(3), label_grid(3, 2).shape, label_grid(3, 4, 5).shape
    (Finite(n=3), (2,), (4, 5))
    """
    space: Space = Finite(k)
    for size in reversed(positions):
        space = Sequence(space, size)
    return space
