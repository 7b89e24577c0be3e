"""Mini-batches for the trainer: cuts of the weight line, gathered block by block."""

from __future__ import annotations

from collections.abc import Iterator, Sized
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

from groundstate.compute.batches import Batches
from groundstate.compute.hashing import row_hash
from groundstate.compute.line import WeightLine
from groundstate.compute.random import Key
from groundstate.compute.reduce import current
from groundstate.learn.base import Batch, Problem

BLOCK = 2**22  # elements gathered at once: big enough to amortise, small enough to stay in memory

Fed = Iterator[tuple[Batch, Tensor | None, float]]


class Feed:
    """Gives the batches of an epoch as ``(batch, weight or None, total weight)``.

    Attributes
    ----------
    steps : batches of an epoch (0 when a stream does not say)
    total_weight : weight of the whole data, over all shards
    sharded : whether the rows are spread over several processes
    """

    def __init__(self, problem: Problem, batch_size: int | None) -> None:
        self.problem = problem
        self.batch_size = batch_size
        self.sharded = current().world > 1
        if not problem.is_resident:
            self.steps = len(problem.data) if isinstance(problem.data, Sized) else 0
            self.total_weight = self._stream_weight()
            return
        self.total_weight = problem.total_weight
        whole = batch_size is None or batch_size >= self.total_weight
        self.line = None if whole else self._line()
        self.steps = 1 if whole else -(-int(self.total_weight) // int(batch_size or 1))

    def _line(self) -> WeightLine:
        columns = [v.reshape(len(v), -1) for v in self.problem.resident.values()]
        hashes = row_hash(*columns)
        weight = self.problem.sample_weight
        self.first = 0
        if not self.sharded:
            return WeightLine(hashes, weight)
        reduce = current()
        local = torch.ones(len(hashes)) if weight is None else weight.detach().cpu()
        counts = reduce.gather(torch.tensor([len(hashes)]))
        self.first = int(counts[: reduce.rank].sum())
        everywhere = reduce.gather(torch.from_numpy(hashes.view(np.int64)))
        weights = reduce.gather(local.double())
        return WeightLine(everywhere.numpy().view(np.uint64), weights.numpy())

    def _stream_weight(self) -> float:
        """One pass over a re-iterable stream; only asked for when a penalty needs the scale."""
        if self.problem.penalty is None:
            return 1.0
        total = 0.0
        for batch, weight in self.problem.chunks(0):
            rows = len(next(iter(batch.values())))
            total += rows if weight is None else float(weight.sum())
        return total

    @contextmanager
    def epoch(self, key: Key, skip: int = 0) -> Iterator[Fed]:
        """The batches of one epoch from number ``skip`` on; the order depends on ``key`` alone."""
        if not self.problem.is_resident:
            yield self._stream(skip)
        elif self.line is None:
            yield self._whole(skip)
        else:
            device = next(iter(self.problem.resident.values())).device
            assert self.batch_size is not None
            batches = self.line.batches(key, self.batch_size, device).from_batch(skip)
            yield self._shard(batches) if self.sharded else self._resident(batches)

    def _stream(self, skip: int) -> Fed:
        for i, (batch, weight) in enumerate(self.problem.chunks(0)):
            if i >= skip:
                rows = len(next(iter(batch.values())))
                yield batch, weight, float(rows) if weight is None else float(weight.sum())

    def _whole(self, skip: int) -> Fed:
        if skip == 0:
            weight = self.problem.sample_weight
            if self.sharded and weight is None:
                weight = torch.ones(self.problem.rows, dtype=self.problem.energy.placement()[1])
            yield self.problem.resident, weight, self.total_weight

    def _resident(self, batches: Batches) -> Fed:
        data = self.problem.resident
        dtype = self.problem.energy.placement()[1]
        sizes, rows, weights = batches.sizes, batches.rows, batches.weights
        totals = [float(size) for size in sizes]
        if weights is not None:
            ends = torch.tensor(sizes).cumsum(0).to(weights.device) - 1
            summed = weights.cumsum(0)[ends]  # one transfer per epoch, not one per step
            totals = torch.diff(summed, prepend=summed.new_zeros(1)).tolist()
            weights = weights.to(dtype)
        per_row = sum(v[0].numel() for v in data.values())
        block = max(1, BLOCK // max(1, per_row * max(sizes, default=1)))  # batches per gather
        at = 0
        for b in range(0, len(sizes), block):
            group = sizes[b : b + block]
            index = rows[at : at + sum(group)]
            gathered = {k: v.index_select(0, index) for k, v in data.items()}
            start = 0
            for size, total in zip(group, totals[b : b + block], strict=True):
                batch = {k: v.narrow(0, start, size) for k, v in gathered.items()}
                w = None if weights is None else weights.narrow(0, at + start, size)
                yield batch, w, total
                start += size
            at += sum(group)

    def _shard(self, batches: Batches) -> Fed:
        """This process's part of every batch; gradients are summed over processes afterwards."""
        data, n = self.problem.resident, self.problem.rows
        dtype = self.problem.energy.placement()[1]
        for rows, weights in batches:
            w = torch.ones(len(rows), dtype=dtype) if weights is None else weights.to(dtype)
            mine = (rows >= self.first) & (rows < self.first + n)
            index = (rows[mine] - self.first).to(rows.device)
            yield {k: v[index] for k, v in data.items()}, w[mine], float(w.sum())
