"""Mini-batches for the trainer: cuts of the weight line, gathered block by block; streams."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence, Sized
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice, pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute import rows as rows_of
from groundstate.compute.random import Key
from groundstate.compute.reduce import current
from groundstate.compute.rows import Ragged
from groundstate.compute.weight_line.batches import Batches
from groundstate.compute.weight_line.line import WeightLine
from groundstate.infer.base import check_values
from groundstate.learn.base import Batch, Problem
from groundstate.learn.train.guard import check_labels
from groundstate.learn.train.sources import Source

BLOCK = 2**22  # elements gathered at once: big enough to amortise, small enough to stay in memory

Fed = Iterator[tuple[Batch, Tensor | None, float]]


class Feed:
    """Gives the batches of an epoch as ``(batch, weight or None, total weight)``.

    Parameters
    ----------
    problem : what is learned from which rows
    batch_size : rows (units of weight) of a batch; None, or more than there are, takes all
    replacement : draw rows independently instead of visiting each once per epoch
    drop_last : leave out the last batch of an epoch when it is smaller
    bucket : batches of sequences of about the same length, so that little is filled up

    Attributes
    ----------
    steps : batches of an epoch (0 when a stream does not say)
    total_weight : weight of the whole data, over all shards
    sharded : whether the rows are spread over several processes
    """

    def __init__(
        self,
        problem: Problem,
        batch_size: int | None,
        *,
        replacement: bool = False,
        drop_last: bool = False,
        bucket: bool = False,
    ) -> None:
        self.problem = problem
        self.batch_size = batch_size
        self.replacement, self.drop_last = replacement, drop_last
        reduce = current()
        self.sharded = reduce.world > 1
        self.device, self.dtype = problem.energy.placement()
        self.checked = False
        if self.sharded and batch_size is not None and batch_size < reduce.world:
            raise ValueError(
                f"batch_size={batch_size} is smaller than the {reduce.world} processes that share "
                f"a batch; use at least {reduce.world}"
            )
        self.line: WeightLine | None = None
        self.sizes: NDArray[np.int64] | None = None
        if bucket and replacement:
            raise ValueError("bucket=True visits each row once an epoch; use replacement=False")
        if not problem.is_resident:
            self.steps = self._stream_steps()
            self.total_weight = self._stream_weight()
            return
        self.total_weight = problem.total_weight
        whole = batch_size is None or (batch_size >= self.total_weight and not replacement)
        if whole:
            self.steps = 1
            return
        assert batch_size is not None
        self.line = self._line()
        if bucket:
            self.sizes = self._sizes()
        batches = (round(self.total_weight) if replacement else self.total_weight) / batch_size
        self.steps = max(1, int(batches) if drop_last else math.ceil(batches - 1e-9))

    def _line(self) -> WeightLine:
        hashes = rows_of.hash_together(self.problem.resident)
        weight = self.problem.sample_weight
        self.first = 0
        if not self.sharded:
            return WeightLine(hashes, weight)
        local = torch.ones(len(hashes)) if weight is None else weight.detach().cpu()
        line, own = WeightLine.gathered(hashes, local.double(), current())
        self.first = own.start
        return line

    def _sizes(self) -> NDArray[np.int64]:
        """Lengths of the rows that differ in length, of all shards."""
        parts: list[Any] = [getattr(v, "tokens", v) for v in self.problem.resident.values()]
        ragged = [v for v in parts if isinstance(v, Ragged)]
        if not ragged:
            raise ValueError("bucket=True is for rows of different length, and there are none")
        lengths = ragged[0].lengths.cpu()
        found: NDArray[np.int64] = (current().gather(lengths) if self.sharded else lengths).numpy()
        return found

    def _stream_steps(self) -> int:
        data = self.problem.data
        if isinstance(data, Source):
            return data.steps(self.batch_size, self.drop_last)
        return len(data) if isinstance(data, Sized) else 0

    def _stream_weight(self) -> float:
        """One pass over a re-iterable stream; only asked for when a penalty needs the scale."""
        if self.problem.penalty is None:
            return 1.0
        total = 0.0
        for batch, weight in self.problem.chunks(0):
            rows = len(next(iter(batch.values())))
            total += rows if weight is None else float(weight.sum())
        return float(current().sum(torch.tensor(total, dtype=torch.float64)))

    def epoch(self, number: int, skip: int = 0, order: str = "epoch") -> Fed:
        """The batches of one epoch from number ``skip`` on; its key decides their order alone."""
        if self.line is None and self.problem.is_resident:
            return self._whole(skip)
        key = self.problem.key.fold(order, number)
        if not self.problem.is_resident:
            return self._stream_shard(key, skip) if self.sharded else self._stream(key, skip)
        batches = self._batches(key).from_batch(skip)
        return self._shard(batches) if self.sharded else self._resident(batches)

    def rows(self, number: int, start: int, count: int = 1) -> Tensor | None:
        """Numbers of the rows in batches ``start`` to ``start + count - 1`` of an epoch; None for a
        stream.
        """
        if not self.problem.is_resident:
            return None
        if self.line is None:
            return torch.arange(self.problem.rows)
        batches = self._batches(self.problem.key.fold("epoch", number)).from_batch(start)
        return batches.rows[: sum(batches.sizes[:count])]

    def _batches(self, key: Key) -> Batches:
        assert self.line is not None and self.batch_size is not None
        device = rows_of.home(self.problem.resident)
        if self.replacement:
            drawn = self.line.draw(key.fold("drawn"), max(1, round(self.line.total)))
            batches = Batches.slices(torch.from_numpy(drawn).to(device), self.batch_size)
        else:
            batches = self.line.batches(key, self.batch_size, device, sizes=self.sizes)
        return batches.of_full_size(self.batch_size) if self.drop_last else batches

    # --- streams -------------------------------------------------------------------------

    def _pieces(self, key: Key) -> Iterator[tuple[Batch, Tensor | None]]:
        data = self.problem.data
        if not isinstance(data, Source):
            yield from self.problem.chunks(0)
            return
        for batch in data.epoch(key, self.batch_size, self.drop_last):
            yield {k: v for k, v in batch.items() if k != "weight"}, batch.get("weight")

    def _stream(self, key: Key, skip: int) -> Fed:
        for i, (batch, weight) in enumerate(self._pieces(key)):
            if i < skip:
                continue
            if not self.checked:
                events = self.problem.rule.events(batch)
                check_values(self.problem.energy, events)
                check_labels(self.problem.energy, events)
            rows = len(next(iter(batch.values())))
            total = float(rows) if weight is None else float(weight.sum())
            yield self._here(batch), None if weight is None else self._move(weight), total
        self.checked = True

    def _stream_shard(self, key: Key, skip: int) -> Fed:
        """Each process reads its own stream; one that is through gives batches without rows."""
        reduce = current()
        pieces = self._pieces(key.fold("rank", reduce.rank))
        last: Batch | None = None
        i = 0
        while True:
            batch, weight = next(pieces, (None, None))
            if batch is not None:
                last = batch
            elif last is None:
                raise ValueError(f"the stream of process {reduce.rank} holds no rows")
            else:
                batch = {k: v[:0] for k, v in last.items()}
            if weight is None:
                weight = torch.ones(len(next(iter(batch.values()))), dtype=self.dtype)
            own = weight.sum().double().to(self.device)
            total = float(reduce.sum(own))
            if total == 0:
                return
            if i >= skip:
                yield self._here(batch), self._move(weight.to(self.dtype)), total
            i += 1

    # --- resident rows -------------------------------------------------------------------

    def _whole(self, skip: int) -> Fed:
        if skip == 0:
            weight = self.problem.sample_weight
            if self.sharded and weight is None:
                weight = torch.ones(self.problem.rows, dtype=self.dtype)
            batch = self._here(self.problem.resident)
            yield batch, None if weight is None else self._move(weight), self.total_weight

    def _resident(self, batches: Batches) -> Fed:
        data = self.problem.resident
        sizes, rows, weights = batches.sizes, batches.rows, batches.weights
        totals = [float(size) for size in sizes]
        if weights is not None:
            totals = batches.totals()
            weights = self._move(weights.to(self.dtype))
        per_row = sum(map(rows_of.elements, data.values()))
        batch_numbers = max(1.0, per_row * max(sizes, default=1))
        block = max(1, int(BLOCK / batch_numbers))  # batches per gather
        names = tuple(data)
        groups = [sizes[b : b + block] for b in range(0, len(sizes), block)]
        ends = np.cumsum([0, *map(sum, groups)]).tolist()
        gathered = self._gathered([rows[a:b] for a, b in pairwise(ends)])
        for b, group, at, found in zip(
            range(0, len(sizes), block), groups, ends, gathered, strict=False
        ):
            taken = sum(group)
            columns = [rows_of.split(self._move(v), group) for v in found]
            shares = None if weights is None else weights[at : at + taken].split(group)
            for i, values in enumerate(zip(*columns, strict=True)):
                batch = dict(zip(names, values, strict=True))
                yield batch, None if shares is None else shares[i], totals[b + i]

    def _gathered(self, groups: Sequence[Tensor]) -> Iterator[list[Any]]:
        """The columns of each group of rows; files of the next group are read while a step runs.

        Three groups are in memory at most: the one that is learned from, the one that is ready, and the
        one that is being read.
        """
        data = list(self.problem.resident.values())
        if not any(rows_of.on_disk(v) for v in data) or len(groups) < 2:
            for index in groups:
                yield [rows_of.take(v, index) for v in data]
            return
        host = torch.device("cpu")

        def read(index: Tensor) -> list[Any]:
            taken = [rows_of.take(v, index) for v in data]
            return [rows_of.to_device(v, host) if rows_of.on_disk(v) else v for v in taken]

        with ThreadPoolExecutor(1, "groundstate-reader") as reader:
            coming: Future[list[Any]] = reader.submit(read, groups[0])
            for index in groups[1:]:
                ready = coming.result()
                coming = reader.submit(read, index)
                yield ready
            yield coming.result()

    def _shard(self, batches: Batches) -> Fed:
        """This process's part of every batch; gradients are summed over processes afterwards."""
        data, n = self.problem.resident, self.problem.rows
        for rows, weights in batches:
            w = (
                torch.ones(len(rows), dtype=self.dtype)
                if weights is None
                else weights.to(self.dtype)
            )
            w = w.to(rows.device)
            mine = (rows >= self.first) & (rows < self.first + n)
            index = rows[mine] - self.first
            own: dict[str, Any] = {k: rows_of.take(v, index) for k, v in data.items()}
            batch = self._here(own)
            yield batch, self._move(w[mine]), float(w.sum())

    # --- placement -----------------------------------------------------------------------

    def _here(self, batch: Batch) -> Batch:
        if all(v.device == self.device for v in batch.values()):
            return batch
        return {k: self._move(v) for k, v in batch.items()}

    def _move(self, values: Any) -> Any:
        """To the device of θ, read from disk if need be; from pinned memory the copy does not wait."""
        if values.device == self.device:
            return values
        if isinstance(values, Tensor) and self.device.type == "cuda" and values.is_cpu:
            return values.pin_memory().to(self.device, non_blocking=True)
        return rows_of.to_device(values, self.device)


def grouped(batches: Fed, many: int) -> Iterator[Sequence[tuple[Batch, Tensor | None, float]]]:
    """Batches in groups of ``many``; the last may be smaller."""
    if many == 1:
        for batch in batches:
            yield (batch,)
        return
    while group := list(islice(batches, many)):
        yield group


def fits(data: Mapping[str, Tensor], device: torch.device) -> bool:
    """Whether the rows fit into half of the free memory of a GPU; elsewhere they always stay."""
    if device.type != "cuda":
        return True
    size = sum(
        t.numel() * t.element_size()
        for v in data.values()
        for t in rows_of.tensors(v)
        if t.device != device
    )
    return size <= torch.cuda.mem_get_info(device)[0] / 2
