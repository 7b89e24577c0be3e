"""Steps of plain networks on a CPU where a compiled call does many: member after member."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice, pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from groundstate.compute.population.dense import Dense
from groundstate.compute.population.optimizers import StackedOptimizer
from groundstate.compute.population.stack import Population
from groundstate.compute.population.update import StepScalars
from groundstate.compute.thread_policy import given_threads, lone_products
from groundstate.errors import NotApplicable
from groundstate.learn.train.population.feed import Fed

_SHARE = 2**20  # multiply-adds of a thread's block below which sharing costs more than it saves
_BLOCK = 2**22  # entries of a block's index


class Steps:
    r"""The steps of all members: no call between two products, no thread between two steps.

    Members never meet between two looks at their losses, so each takes all steps of a block while its
    parameters stay in the cache of one core.

    Raises ``NotApplicable`` where layers are not plain, not float32 or not on a CPU.

    Parameters
    ----------
    dense, population, optimizer : the program, its members and their optimiser
    ridge, lasso : array, (P,), or None; strengths of the penalties
    names : tensors that are penalised
    data : tensors x and y of all rows
    batch : rows of a step
    targets : losses are recorded as the mean over so many, penalties apart
    """

    def __init__(
        self,
        dense: Dense,
        population: Population,
        optimizer: StackedOptimizer,
        ridge: Any,
        lasso: Any,
        names: Collection[str],
        data: dict[str, Tensor],
        batch: int,
        targets: int = 1,
    ) -> None:
        if population.flat.dtype != torch.float32 or population.flat.device.type != "cpu":
            raise NotApplicable("compiled steps are for float32 on a CPU")
        from groundstate.compute.population.dense_steps_numba import CODES, table

        self.layers = table(dense.layers, population.places)
        self.data, self.optimizer, self.dense, self.targets = data, optimizer, dense, targets
        self.size, self.head = len(population), CODES[dense.head]
        self.update = StepScalars(population, optimizer, ridge, lasso, names)
        self.pulled = ridge is not None or lasso is not None
        x, y = data["x"].contiguous().numpy(), data["y"].contiguous()
        labels, values = y.new_empty(0, dtype=torch.int64), torch.empty(0, 1)
        if self.head == 0:
            labels = y
        else:
            values = y.to(torch.float32).reshape(len(x), -1)
        self.rows = x, labels.numpy(), values.numpy()
        self.macs = 3.0 * sum(w.numel() for w in dense.weights)  # of all members and one row
        self.steps = max(1, _BLOCK // (batch * self.size))  # of a block
        self.most = max(1, min(given_threads(), self.size))
        self.map: Callable[..., Iterable[Any]] = map

    @contextmanager
    def running(self) -> Iterator[None]:
        """Products are of one thread inside the block; the members share the threads."""
        with lone_products(), ThreadPoolExecutor(self.most) as pool:
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
        done : steps of the run before it
        every : steps between checkpoints, or None
        rates : step sizes of the rest of the epoch, ``(K, P, 1)``, or None
        """
        at = 0
        while True:
            room = self.steps if every is None else min(self.steps, every - (done + at) % every)
            fed = list(islice(feed, room))
            if not fed:
                return
            paces = None if rates is None else rates[at : at + len(fed)]
            losses = self._losses(fed, paces)
            if paces is not None:
                self.optimizer.pace(paces[-1])
            at += len(fed)
            yield fed, losses

    def _losses(self, fed: list[Fed], paces: Tensor | None) -> Tensor:
        from groundstate.compute.population.dense_steps_numba import run_steps

        x, labels, values = self.rows
        size, update = self.size, self.update
        sizes = [len(x) if rows is None else rows.shape[-1] for rows, _, _ in fed]
        index = np.arange(len(x))[None] if fed[0][0] is None else _joined([f[0] for f in fed])
        none = fed[0][1] is None
        weights = np.empty((1, 0), np.float32) if none else _joined([f[1] for f in fed])
        active = self.optimizer.active[:, 0]
        awake = np.stack([(active if m is None else active & m).numpy() for _, _, m in fed])
        columns = update.columns_of(awake, paces)
        losses, pulls = (np.zeros((len(fed), size), np.float32) for _ in range(2))
        ends = np.concatenate([[0], np.cumsum(sizes)])

        def share(members: tuple[int, int]) -> None:
            run_steps(
                *members, update.theta, update.mean, update.square, self.layers, x, labels, values,
                index, weights, ends, self.head, update.rule,
                update.blocks, columns, awake, update.nesterov, losses, pulls,
            )  # fmt: skip

        many = max(1, min(self.most, int(self.macs * ends[-1] / _SHARE)))
        cuts = [size * i // many for i in range(many + 1)]
        spans = list(pairwise(cuts))
        for _ in map(share, spans) if many == 1 else self.map(share, spans):
            pass
        if self.targets > 1:
            losses /= self.targets
        return torch.from_numpy(losses + pulls if self.pulled else losses)


def _joined(parts: list[Tensor | None]) -> Any:
    """Rows or weights of all steps side by side.  # (1 or P, M)"""
    own = torch.cat([part for part in parts if part is not None], -1)
    return (own[None] if own.ndim == 1 else own).contiguous().numpy()
