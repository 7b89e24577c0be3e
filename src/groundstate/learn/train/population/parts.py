"""Steps of a population on a CPU: members in small parts, each part many steps by one thread.

Members never meet between two looks at their losses, so nothing forces them to walk in step: a part
takes all steps of a block while its parameters stay in the cache, and as many parts run at once as
there are threads, with products of one thread each.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice, pairwise, repeat
from typing import Any

import torch
from torch import Tensor

from groundstate.compute.device import threads
from groundstate.compute.population.dense import Dense
from groundstate.compute.population.optimizers import StackedOptimizer
from groundstate.compute.population.update import BlockUpdate
from groundstate.learn.train.population.feed import Fed

_PART = 2**25  # multiply-adds of a part's step: calls are few per cent of it, and it fits the cache
_SHARE = 2**21  # multiply-adds of a thread's step below which calls cost more than it saves
_BLOCK = 2**22  # numbers of a block's rows


@dataclass(frozen=True)
class _Given:
    """One step: its rows, gathered where all members see the same ones."""

    x: Tensor | None
    y: Tensor | None
    rows: Tensor | None
    weight: Tensor | None
    mask: Tensor | None
    lr: Tensor | None  # (P, 1)


class _Part:
    """Some members, with their own program and update on shared memory."""

    targets = 1

    def __init__(
        self, members: slice, dense: Dense, optimizer: StackedOptimizer, pulls: Any, names: Any
    ) -> None:
        population = dense.population.part(members)
        self.members, self.population = members, population
        self.dense = Dense(population, dense.layers, dense.head, dense.scale, dense.offset)
        ridge, lasso = (None if v is None else v[members] for v in pulls)
        self.update = BlockUpdate(population, optimizer, ridge, lasso, names, members)
        self.pulled = ridge is not None or lasso is not None

    def __call__(self, data: dict[str, Tensor], given: Sequence[_Given]) -> Tensor:
        """Losses of the members at each step.  # (K, members)"""
        own = self.members
        out = torch.empty(len(given), len(self.population), dtype=self.population.flat.dtype)
        for k, step in enumerate(given):
            x, y, weight, mask = step.x, step.y, step.weight, step.mask
            if x is None or y is None:
                assert step.rows is not None
                rows = step.rows[own]  # (members, B)
                flat = rows.reshape(-1)  # index_select is several times quicker than v[rows]
                x, y = (
                    data[name].index_select(0, flat).view(*rows.shape, *data[name].shape[1:])
                    for name in ("x", "y")
                )
            weight = weight[own] if weight is not None and weight.ndim == 2 else weight
            mask = None if mask is None else mask[own]
            losses = self.dense(x, y, weight, self.update.grads)
            if mask is not None:  # who sits out has made no pass
                for layer in self.dense.layers:
                    if layer.dropout is not None:
                        count = self.population.buffers[f"{layer.dropout}count"]
                        count.sub_((~mask).long())
            losses = losses if self.targets == 1 else losses / self.targets
            pulls = self.update(mask, step.lr)
            torch.add(losses, pulls, out=out[k]) if self.pulled else out[k].copy_(losses)
        return out


class Parts:
    r"""The steps of all members.

    Parameters
    ----------
    dense, optimizer : the program and the optimiser of the whole population
    ridge, lasso : array, (P,), or None; strengths of the penalties
    names : tensors that are penalised
    data : tensors x and y of all rows
    batch : rows of a step
    """

    targets = 1  # losses are recorded as the mean over so many, penalties apart

    def __init__(
        self,
        dense: Dense,
        optimizer: StackedOptimizer,
        ridge: Any,
        lasso: Any,
        names: Collection[str],
        data: dict[str, Tensor],
        batch: int,
    ) -> None:
        self.data, self.optimizer = data, optimizer
        size = len(dense.population)
        macs = 3.0 * batch * sum(w[0].numel() for w in dense.weights)  # of a member's step
        self.workers = max(1, min(torch.get_num_threads(), size, int(macs * size / _SHARE)))
        most = max(1, round(_PART / macs))
        count = -(-size // (self.workers * most)) * self.workers
        cuts = [round(i * size / min(count, size)) for i in range(min(count, size) + 1)]
        pulls = ridge, lasso
        self.parts = [
            _Part(slice(lo, hi), dense, optimizer, pulls, names) for lo, hi in pairwise(cuts)
        ]
        self.steps = max(1, _BLOCK // (batch * data["x"].shape[1]))  # of a block
        self.map: Callable[..., Iterable[Tensor]] = map

    @contextmanager
    def running(self) -> Iterator[None]:
        """Products are of one thread inside the block; the parts share the threads."""
        with threads(1):
            if self.workers == 1:
                yield
                return
            with ThreadPoolExecutor(self.workers) as pool:
                self.map = pool.map
                try:
                    yield
                finally:
                    self.map = map

    def blocks(
        self, feed: Iterator[Fed], done: int, every: int | None, rates: Tensor | None
    ) -> Iterator[tuple[list[Fed], Tensor]]:
        """The steps that the feed gives, in blocks that end where a checkpoint is due, and losses.

        Parameters
        ----------
        feed : rest of an epoch
        done : steps of the epoch before it
        every : steps between checkpoints, or None
        rates : step sizes of the epoch, ``(K, P, 1)``, or None
        """
        while True:
            room = self.steps if every is None else min(self.steps, every - done % every)
            fed = list(islice(feed, room))
            if not fed:
                return
            paces = None if rates is None else rates[done : done + len(fed)]
            losses = self._losses(fed, paces)
            if paces is not None:
                self.optimizer.pace(paces[-1])
            done += len(fed)
            yield fed, losses

    def _losses(self, fed: list[Fed], paces: Tensor | None) -> Tensor:
        """Do the steps; their losses.  # (K, P)"""
        given = self._given(fed, paces)
        losses = list(self.map(_Part.__call__, self.parts, repeat(self.data), repeat(given)))
        return torch.cat(losses, 1)

    def _given(self, fed: list[Fed], paces: Tensor | None) -> list[_Given]:
        rates = [None] * len(fed) if paces is None else list(paces)
        index = [rows for rows, _, _ in fed if rows is not None]
        x, y = self.data["x"], self.data["y"]
        if len(index) < len(fed):  # all rows at once
            return [_Given(x, y, None, w, m, lr) for (_, w, m), lr in zip(fed, rates, strict=True)]
        if index[0].ndim == 2:
            return [_Given(None, None, *f, lr) for f, lr in zip(fed, rates, strict=True)]
        together, sizes = torch.cat(index), [len(i) for i in index]
        xs, ys = (v.index_select(0, together).split(sizes) for v in (x, y))
        return [
            _Given(a, b, None, w, m, lr)
            for a, b, (_, w, m), lr in zip(xs, ys, fed, rates, strict=True)
        ]


__all__ = ["Parts"]
