"""Rows made of named parts, each a tensor or a container with as many rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.rows import base
from groundstate.compute.rows.base import RowContainer, Rows
from groundstate.compute.weight_line.hashing import row_hash


class Record(RowContainer):
    """Base of containers whose dataclass fields are rows, or None where a part is absent."""

    def parts(self) -> dict[str, Rows]:
        """The parts that are there, by name."""
        named = {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]
        return {name: value for name, value in named.items() if value is not None}

    def made(self, parts: Mapping[str, Rows]) -> Self:
        """A record of the same kind with other parts."""
        kept: dict[str, Any] = dict(parts)
        return type(self)(**kept)

    def __post_init__(self) -> None:
        base.check_same_length(self.parts())

    def __len__(self) -> int:
        return base.count(next(iter(self.parts().values())))

    def take(self, index: Tensor) -> Self:
        return self.made({name: base.take(v, index) for name, v in self.parts().items()})

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        named = [p.parts() for p in parts]
        return parts[0].made({k: base.join([p[k] for p in named]) for k in named[0]})

    def split(self, sizes: Sequence[int]) -> list[Self]:
        pieces = {name: base.split(v, sizes) for name, v in self.parts().items()}
        return [self.made({k: v[i] for k, v in pieces.items()}) for i in range(len(sizes))]

    def to(self, device: torch.device, *, non_blocking: bool = False) -> Self:
        return self.made(
            {
                name: base.to_device(v, device, non_blocking=non_blocking)
                for name, v in self.parts().items()
            }
        )

    def floating(self, dtype: torch.dtype) -> Self:
        return self.made({name: base.floating(v, dtype) for name, v in self.parts().items()})

    def tensors(self) -> tuple[Tensor, ...]:
        return tuple(t for v in self.parts().values() for t in base.tensors(v))

    @property
    def device(self) -> torch.device:
        """Of the parts in memory; those on disk are nowhere yet."""
        parts = list(self.parts().values())
        return next((v.device for v in parts if base.in_memory(v)), parts[0].device)

    def hashes(self) -> NDArray[np.uint64]:
        return row_hash(*(getattr(self, f.name) for f in fields(self)))  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False, repr=False)
class Columns(Record):
    """Rows of several named parts, such as the rows of a torch ``Dataset`` of dictionaries.

    Parameters
    ----------
    columns : rows by name, as many of each

    Examples
    --------
    >>> rows = Columns({"image": torch.zeros(2, 3, 4, 4), "age": torch.tensor([30.0, 40.0])})
    >>> rows
    2 rows of image (3, 4, 4), age ()
    >>> rows.take(torch.tensor([1]))["age"]
    Traceback (most recent call last):
    ...
    TypeError: name a column with .columns['age']
    """

    columns: Mapping[str, Rows]

    def parts(self) -> dict[str, Rows]:
        return dict(self.columns)

    def made(self, parts: Mapping[str, Rows]) -> Self:
        return type(self)(dict(parts))

    def hashes(self) -> NDArray[np.uint64]:
        return row_hash(*self.columns.values())

    def __getitem__(self, which: Any) -> Self:
        if isinstance(which, str):
            raise TypeError(f"name a column with .columns[{which!r}]")
        return super().__getitem__(which)

    def describe(self) -> str:
        named = (
            f"{name} {tuple(v.shape[1:])}" if isinstance(v, Tensor) else f"{name} ({v.describe()})"
            for name, v in self.columns.items()
        )
        return f"{len(self)} rows of {', '.join(named)}"
