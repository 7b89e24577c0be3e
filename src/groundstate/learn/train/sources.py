r"""Rows that do not fit in memory: memory maps, Parquet files, torch data sets, any stream.

Rows that can be read one by one come in the order of the weight line, as rows in memory do: a source
keeps 16 bytes per row, and training sees the same batches as with all rows in memory. Other sources
give blocks of rows in an order that depends on a key alone, and an epoch passes them through a
shuffle buffer: rows are collected, permuted, and the first half is cut into batches while the rest
waits for more, so that rows far apart in the file meet in one batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute import rows as rows_of
from groundstate.compute.random import Key
from groundstate.compute.rows import Ragged, RowContainer, Texts
from groundstate.compute.weight_line.line import WeightLine
from groundstate.errors import DataError
from groundstate.learn.base import Batch

Order = Literal["line", "blocks"]
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
                rest: dict[str, Any] = {k: rows_of.part(v, ready, count) for k, v in rows.items()}
                waiting = [rest]
                count, fill = count - ready, fill + 1
        if count:
            rows = self._mixed(waiting, key.fold("buffer", fill))
            yield from _slices(rows, 0, count // size * size if drop_last else count, size)

    def _mixed(self, blocks: list[Batch], key: Key) -> dict[str, Any]:
        joined: dict[str, Any] = {k: rows_of.join([b[k] for b in blocks]) for k in blocks[0]}
        if self.mixed:
            return joined
        order = torch.from_numpy(key.numpy().permutation(_rows(joined)))
        return {k: rows_of.take(v, order) for k, v in joined.items()}


class Indexed(Source):
    """Base of sources whose rows can be read one by one; subclasses write ``read``.

    ``order="line"`` takes batches from the weight line of all rows, read once for their hashes, and
    reads ``buffer`` rows at a time. ``order="blocks"`` reads blocks in sequence and mixes them in the
    buffer: for disks on which single rows are slow.
    """

    order: Order = "line"
    rows: int
    block: int
    _kept: WeightLine | None = None

    def read(self, index: NDArray[np.int64]) -> Batch:
        """The rows of an index that does not decrease."""
        raise DataError(f"{type(self).__name__} gives no rows; override read")

    def blocks(self, key: Key | None) -> Iterator[Batch]:
        for lo in _starts(self.rows, self.block, key):
            yield self.read(np.arange(lo, min(lo + self.block, self.rows)))

    @property
    def line(self) -> WeightLine:
        """The weight line of all rows."""
        if self._kept is None:
            hashes, weights = [], []
            for block in self.blocks(None):
                values = {k: v for k, v in block.items() if k != "weight"}
                hashes.append(rows_of.hash_together(values))
                if "weight" in block:
                    weights.append(block["weight"].double().numpy())
            given = np.concatenate(weights) if weights else None
            self._kept = WeightLine(np.concatenate(hashes), given)
        return self._kept

    def steps(self, batch_size: int | None, drop_last: bool = False) -> int:
        if self.order == "blocks" or batch_size is None:
            return super().steps(batch_size, drop_last)
        n = self.line.total / batch_size
        return max(1, int(n) if drop_last else math.ceil(n - 1e-9))

    def epoch(self, key: Key, batch_size: int | None, drop_last: bool = False) -> Iterator[Batch]:
        if self.order == "blocks":
            yield from super().epoch(key, batch_size, drop_last)
            return
        size = self.line.total if batch_size is None else batch_size
        batches = self.line.batches(key, size)
        if drop_last:
            batches = batches.of_full_size(size)
        sizes, at = batches.sizes, 0
        while sizes:
            many = max(1, int(np.searchsorted(np.cumsum(sizes), self.buffer, side="right")))
            group, sizes = sizes[:many], sizes[many:]
            index = batches.rows[at : at + sum(group)]
            rows = self._gathered(index)
            if batches.weights is not None:
                own = batches.weights[at : at + sum(group)]
                rows["weight"] = own.to(rows_of.real_dtype(rows))
            else:
                rows.pop("weight", None)
            parts = {k: rows_of.split(v, group) for k, v in rows.items()}
            for i in range(len(group)):
                yield {k: v[i] for k, v in parts.items()}  # type: ignore[misc]
            at += sum(group)

    def _gathered(self, index: Tensor) -> dict[str, Any]:
        """Rows of any index, read in the order in which they are stored."""
        stored, place = np.unique(index.numpy(), return_inverse=True)
        back = torch.from_numpy(place)
        return {k: rows_of.take(v, back) for k, v in self.read(stored).items()}


class Arrays(Indexed):
    """Rows of arrays that may be memory maps, or of containers.

    Parameters
    ----------
    arrays : arrays, tensors or containers of rows by variable name, ``(N, *event)`` each; ``weight``
        is allowed
    buffer : rows that are read at once (``order="line"``) or mixed (``"blocks"``)
    block : rows read at once for hashing, or in sequence
    dtype : floating type of the batches
    order : "line" or "blocks", see ``Indexed``

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
        order: Order = "line",
    ) -> None:
        sizes = {name: len(a) for name, a in arrays.items()}
        if len(set(sizes.values())) != 1:
            raise DataError(f"arrays need the same number of rows, got {sizes}")
        self.arrays, self.buffer, self.block, self.dtype = dict(arrays), buffer, block, dtype
        self.rows, self.order = next(iter(sizes.values())), _known(order)

    def read(self, index: NDArray[np.int64]) -> Batch:
        whole = len(index) > 0 and index[-1] - index[0] == len(index) - 1
        which = slice(int(index[0]), int(index[-1]) + 1) if whole else index
        return {k: _tensor(a[which], self.dtype) for k, a in self.arrays.items()}


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


class Items(Indexed):
    """A torch ``Dataset`` of rows, fetched one by one in the order of the weight line.

    Parameters
    ----------
    dataset : with ``__len__`` and ``__getitem__`` (or ``__getitems__``), or iterable, which can only
        be read in its own order and is mixed in the buffer
    names : variable of each part of a row; rows that are mappings name their own
    buffer, block, dtype, order
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
        order: Order = "line",
    ) -> None:
        self.dataset, self.names = dataset, tuple(names)
        self.buffer, self.block, self.dtype = buffer, block, dtype
        indexed = hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__")
        self.order = _known(order) if indexed else "blocks"
        self.indexed = indexed
        self.rows = len(dataset) if indexed else None  # type: ignore[assignment]

    def blocks(self, key: Key | None) -> Iterator[Batch]:
        if self.indexed:
            yield from super().blocks(key)
            return
        waiting: list[Any] = []
        for row in self.dataset:
            waiting.append(row)
            if len(waiting) == self.block:
                yield self._stacked(waiting)
                waiting = []
        if waiting:
            yield self._stacked(waiting)

    def read(self, index: NDArray[np.int64]) -> Batch:
        many: Callable[[list[int]], list[Any]] | None = getattr(self.dataset, "__getitems__", None)
        wanted = index.tolist()
        rows = many(wanted) if many is not None else [self.dataset[i] for i in wanted]
        return self._stacked(rows)

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
        known = Tensor | RowContainer
        return {k: v if isinstance(v, known) else _tensor(v, None) for k, v in data.items()}
    if isinstance(data, torch.utils.data.Dataset):
        return Items(data, names)
    return data


def _rows(batch: Batch) -> int:
    return rows_of.count(next(iter(batch.values())))


def _slices(rows: Batch, lo: int, hi: int, size: int) -> Iterator[Batch]:
    for at in range(lo, hi, size):
        end = min(at + size, hi)
        yield {k: rows_of.part(v, at, end) for k, v in rows.items()}  # type: ignore[misc]


def _starts(rows: int, block: int, key: Key | None) -> Iterable[int]:
    starts = np.arange(0, rows, block)
    return (starts if key is None else key.fold("blocks").numpy().permutation(starts)).tolist()


def _known(order: str) -> Order:
    if order not in ("line", "blocks"):
        raise DataError(f"order must be 'line' or 'blocks', got {order!r}")
    return order  # type: ignore[return-value]


def _tensor(values: Any, dtype: torch.dtype | None) -> Any:
    if isinstance(values, RowContainer):
        return values if dtype is None else values.floating(dtype)
    if isinstance(values, np.ndarray) and values.dtype.kind in "UO":
        return Texts.of([str(v) for v in values])
    tensor = values if isinstance(values, Tensor) else torch.from_numpy(np.array(values))
    if tensor.is_floating_point():
        return tensor if dtype is None else tensor.to(dtype)
    return tensor if tensor.dtype == torch.bool else tensor.to(torch.int64)


def _stack(values: list[Any], dtype: torch.dtype) -> Any:
    """Rows of one shape as a tensor, texts and rows of other lengths as containers."""
    if isinstance(values[0], str):
        return Texts.of(values)
    arrays = [v if isinstance(v, Tensor) else torch.from_numpy(np.array(v)) for v in values]
    if len({a.shape for a in arrays}) > 1:
        return _tensor(Ragged.of(arrays), dtype)
    return _tensor(torch.stack(arrays), dtype)
