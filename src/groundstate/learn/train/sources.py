r"""Rows that do not fit in memory: memory maps, Parquet files, torch data sets, any stream.

A source gives blocks of rows in an order that depends on a key alone. An epoch passes them through
a shuffle buffer: rows are collected, permuted, and the first half is cut into batches while the
rest waits for more, so that rows far apart in the file meet in one batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.errors import DataError
from groundstate.learn.base import Batch

BLOCK = 2**14  # rows read at once
BUFFER = 2**16  # rows that are mixed


class Source:
    """Base of row sources; subclasses write ``blocks`` and set ``rows`` where it is known.

    Attributes
    ----------
    rows : rows of an epoch, None when a stream does not say
    buffer : rows that are mixed with each other
    """

    rows: int | None = None
    buffer: int = BUFFER
    mixed: bool = False  # blocks come already shuffled row by row

    def blocks(self, key: Key | None) -> Iterator[Batch]:
        """Blocks of rows as tensors; in the order of the key, or in their own without one."""
        raise DataError(f"{type(self).__name__} gives no rows; override blocks")

    def __iter__(self) -> Iterator[Batch]:
        return self.blocks(None)

    def steps(self, batch_size: int | None, drop_last: bool = False) -> int:
        """Batches of an epoch, 0 when unknown."""
        if self.rows is None or batch_size is None:
            return 0 if self.rows is None else 1
        return self.rows // batch_size if drop_last else math.ceil(self.rows / batch_size)

    def epoch(self, key: Key, batch_size: int | None, drop_last: bool = False) -> Iterator[Batch]:
        """The batches of one epoch; the same key gives the same batches.

        ``batch_size=None`` collects all rows into one batch.
        """
        size = batch_size or 2**62
        waiting: list[Batch] = []
        count = fill = 0
        for block in self.blocks(key):
            waiting.append(block)
            count += _rows(block)
            if count >= max(self.buffer, 2 * size):
                rows = self._mixed(waiting, key.fold("buffer", fill))
                ready = count // 2 // size * size if not self.mixed else count // size * size
                yield from _slices(rows, 0, ready, size)
                waiting = [{k: v[ready:] for k, v in rows.items()}]
                count, fill = count - ready, fill + 1
        if count:
            rows = self._mixed(waiting, key.fold("buffer", fill))
            yield from _slices(rows, 0, count // size * size if drop_last else count, size)

    def _mixed(self, blocks: list[Batch], key: Key) -> dict[str, Tensor]:
        joined = {k: torch.cat([b[k] for b in blocks]) for k in blocks[0]}
        if self.mixed:
            return joined
        order = torch.from_numpy(key.numpy().permutation(_rows(joined)))
        return {k: v.index_select(0, order) for k, v in joined.items()}


class Arrays(Source):
    """Rows of arrays that may be memory maps: blocks are read in random order.

    Parameters
    ----------
    arrays : arrays or tensors by variable name, ``(N, *event)`` each; ``weight`` is allowed
    buffer : rows that are mixed
    block : rows read at once
    dtype : floating type of the batches

    Examples
    --------
    >>> source = Arrays({"x": np.zeros((10, 2)), "y": np.arange(10)}, block=4)
    >>> sorted(torch.cat([b["y"] for b in source.epoch(Key.of(0), 4)]).tolist())
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """

    def __init__(
        self,
        arrays: Mapping[str, Any],
        *,
        buffer: int = BUFFER,
        block: int = BLOCK,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        sizes = {name: len(a) for name, a in arrays.items()}
        if len(set(sizes.values())) != 1:
            raise DataError(f"arrays need the same number of rows, got {sizes}")
        self.arrays, self.buffer, self.block, self.dtype = dict(arrays), buffer, block, dtype
        self.rows = next(iter(sizes.values()))

    def blocks(self, key: Key | None) -> Iterator[Batch]:
        assert self.rows is not None
        for lo in _starts(self.rows, self.block, key):
            yield {k: _tensor(a[lo : lo + self.block], self.dtype) for k, a in self.arrays.items()}


class Parquet(Source):
    """Rows of a Parquet file or of a folder of them, read in slices.

    Parameters
    ----------
    path : file, or pattern such as ``"rows/*.parquet"``
    columns : column or columns of each variable, such as ``{"x": ["a", "b"], "y": "label"}``
    buffer, block, dtype
        As in ``Arrays``.
    """

    def __init__(
        self,
        path: str | Path,
        columns: Mapping[str, str | Sequence[str]],
        *,
        buffer: int = BUFFER,
        block: int = BLOCK,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        import polars as pl

        self.path, self.columns = str(path), dict(columns)
        self.buffer, self.block, self.dtype = buffer, block, dtype
        self.table = pl.scan_parquet(self.path)
        known = self.table.collect_schema().names()
        wanted = [c for v in self.columns.values() for c in ([v] if isinstance(v, str) else v)]
        absent = [c for c in wanted if c not in known]
        if absent:
            raise DataError(
                f"{self.path} has no column {absent[0]!r}; its columns are {', '.join(known)}"
            )
        self.table = self.table.select(list(dict.fromkeys(wanted)))
        self.rows = int(self.table.select(pl.len()).collect().item())

    def blocks(self, key: Key | None) -> Iterator[Batch]:
        assert self.rows is not None
        for lo in _starts(self.rows, self.block, key):
            part: Any = self.table.slice(lo, self.block).collect()
            yield {
                name: _tensor(
                    part[wish].to_numpy() if isinstance(wish, str) else part[list(wish)].to_numpy(),
                    self.dtype,
                )
                for name, wish in self.columns.items()
            }


class Items(Source):
    """A torch ``Dataset`` of rows, fetched in blocks in random order.

    Parameters
    ----------
    dataset : with ``__len__`` and ``__getitem__`` (or ``__getitems__``), or iterable
    names : variable of each part of a row; rows that are mappings name their own
    buffer, block, dtype
        As in ``Arrays``.
    """

    def __init__(
        self,
        dataset: Any,
        names: Sequence[str] = ("x", "y"),
        *,
        buffer: int = BUFFER,
        block: int = 1024,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.dataset, self.names = dataset, tuple(names)
        self.buffer, self.block, self.dtype = buffer, block, dtype
        self.mixed = hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__")
        self.rows = len(dataset) if self.mixed else None

    def blocks(self, key: Key | None) -> Iterator[Batch]:
        for rows in self._fetched(key):
            yield self._stacked(rows)

    def _fetched(self, key: Key | None) -> Iterator[list[Any]]:
        if not self.mixed:
            waiting: list[Any] = []
            for row in self.dataset:
                waiting.append(row)
                if len(waiting) == self.block:
                    yield waiting
                    waiting = []
            if waiting:
                yield waiting
            return
        n = len(self.dataset)
        order = np.arange(n) if key is None else key.fold("order").numpy().permutation(n)
        many: Callable[[list[int]], list[Any]] | None = getattr(self.dataset, "__getitems__", None)
        for lo in range(0, n, self.block):
            index = order[lo : lo + self.block].tolist()
            yield many(index) if many is not None else [self.dataset[i] for i in index]

    def _stacked(self, rows: list[Any]) -> Batch:
        first = rows[0]
        if isinstance(first, Mapping):
            return {k: _stack([r[k] for r in rows], self.dtype) for k in first}
        if not isinstance(first, tuple | list):
            rows, first = [(r,) for r in rows], (first,)
        if len(first) > len(self.names):
            raise DataError(
                f"a row of {type(self.dataset).__name__} has {len(first)} parts but names are "
                f"{self.names}; pass names= with one variable for each part"
            )
        return {
            name: _stack([r[i] for r in rows], self.dtype)
            for i, name in enumerate(self.names[: len(first)])
        }


def as_source(data: Any, names: Sequence[str] = ("x", "y")) -> Any:
    """What ``fit`` takes: tensors stay, arrays become tensors, memory maps and data sets sources."""
    if isinstance(data, tuple) and all(hasattr(v, "shape") for v in data):
        data = dict(zip(names, data, strict=False))
    if isinstance(data, Mapping):
        if any(isinstance(v, np.memmap) for v in data.values()):
            return Arrays(data)
        return {k: v if isinstance(v, Tensor) else _tensor(v, None) for k, v in data.items()}
    if isinstance(data, torch.utils.data.Dataset):
        return Items(data, names)
    return data


def _rows(batch: Batch) -> int:
    return len(next(iter(batch.values())))


def _slices(rows: Batch, lo: int, hi: int, size: int) -> Iterator[Batch]:
    for at in range(lo, hi, size):
        yield {k: v[at : min(at + size, hi)] for k, v in rows.items()}


def _starts(rows: int, block: int, key: Key | None) -> Iterable[int]:
    starts = np.arange(0, rows, block)
    return (starts if key is None else key.fold("blocks").numpy().permutation(starts)).tolist()


def _tensor(values: Any, dtype: torch.dtype | None) -> Tensor:
    tensor = values if isinstance(values, Tensor) else torch.from_numpy(np.array(values))
    if tensor.is_floating_point():
        return tensor if dtype is None else tensor.to(dtype)
    return tensor if tensor.dtype == torch.bool else tensor.to(torch.int64)


def _stack(values: list[Any], dtype: torch.dtype) -> Tensor:
    if isinstance(values[0], Tensor):
        return _tensor(torch.stack(values), dtype)
    return _tensor(np.asarray(values), dtype)


__all__ = ["Arrays", "Items", "Parquet", "Source", "as_source"]
