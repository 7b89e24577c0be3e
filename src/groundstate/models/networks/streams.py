"""Rows that are read in pieces, with targets as the energy knows them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.compute.rows import Texts
from groundstate.data.streams.datasets import is_dataset
from groundstate.errors import DataError
from groundstate.learn.base import Batch
from groundstate.learn.train.sources import Arrays, Items, Source

Encode = Callable[[NDArray[Any]], NDArray[Any]]


def stream_of(X: Any, y: Any) -> Source | None:
    """Rows that are read in pieces: a source, a torch ``Dataset``, a memory map; None for others."""
    if isinstance(X, np.memmap) and y is not None:
        return Arrays({"x": X, "y": np.asarray(y)}, dtype=_floating(X.dtype))
    if not isinstance(X, Source) and not is_dataset(X):
        return None
    if y is not None:
        raise DataError(
            f"{type(X).__name__} holds its own targets; pass y=None, or arrays with their targets"
        )
    return X if isinstance(X, Source) else Items(X)


def _floating(dtype: np.dtype[Any]) -> torch.dtype:
    return torch.float64 if dtype == np.float64 else torch.float32


@dataclass
class Survey:
    """What one pass over a stream tells: the first rows, all targets, the weight of all."""

    x: NDArray[Any]
    y: NDArray[Any]
    total: float

    @classmethod
    def of(cls, source: Source) -> Survey:
        first: NDArray[Any] | None = None
        targets: list[NDArray[Any]] = []
        total = 0.0
        for block in source:
            if "x" not in block or "y" not in block:
                raise DataError(
                    f"a stream needs the variables x and y, got {', '.join(block)}; name them so"
                )
            x = block["x"]
            if not isinstance(x, Tensor) or x.ndim != 2:
                raise DataError("rows of the stream must be lines of a table, x of shape (n, d)")
            _check_finite(x, sum(len(y) for y in targets))
            first = x.numpy() if first is None else first
            targets.append(_plain(block["y"]))
            total += float(block["weight"].double().sum()) if "weight" in block else len(x)
        if first is None:
            raise DataError("the stream gives no rows to learn from")
        return cls(first, np.concatenate(targets), total)


def _check_finite(x: Tensor, before: int) -> None:
    if not bool(torch.isfinite(x).all()):
        row = before + int((~torch.isfinite(x)).any(1).nonzero()[0])
        raise DataError(f"row {row} of the stream holds NaN or infinity; impute or drop such rows")


def _plain(y: Any) -> NDArray[Any]:
    return np.array(y.strings()) if isinstance(y, Texts) else y.cpu().numpy()


class Coded(Source):
    """A source whose targets are encoded, block by block and batch by batch."""

    def __init__(self, source: Source, encode: Encode, total: float) -> None:
        self.source, self.encode, self.total = source, encode, total
        self.rows, self.buffer = source.rows, source.buffer

    def blocks(self, key: Key | None) -> Iterator[Batch]:
        return map(self._coded, self.source.blocks(key))

    def epoch(self, key: Key, batch_size: int | None, drop_last: bool = False) -> Iterator[Batch]:
        return map(self._coded, self.source.epoch(key, batch_size, drop_last))

    def steps(self, batch_size: int | None, drop_last: bool = False) -> int:
        return self.source.steps(batch_size, drop_last)

    def _coded(self, batch: Batch) -> Batch:
        y = torch.from_numpy(np.ascontiguousarray(self.encode(_plain(batch["y"]))))
        return {**batch, "y": y if y.dtype == torch.int64 else y.to(batch["x"].dtype)}
