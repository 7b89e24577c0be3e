"""The output times of a batch whose rows have clocks of their own."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

NEAR = 3  # outputs within one step that are taken for all rows, one after the other


class Passed(NamedTuple):
    """Outputs that rows went by in one step.

    Attributes
    ----------
    rows : ``(N,)``, or None for all of them
    part : where in its step, between 0 and 1, ``(N,)``
    place : where in the answer, ``(N,)``
    """

    rows: Tensor | None
    part: Tensor
    place: Tensor


class Outputs:
    """The states of rows y ``(R, ...)`` at the times t ``(m,)``, filled in as steps go by them.

    Parameters
    ----------
    y : states at the first time
    times : rising
    graph : whether the states carry a gradient, and are kept until the end
    """

    def __init__(self, y: Tensor, times: Tensor, graph: bool) -> None:
        self.R, self.m = len(y), len(times)
        self.order = torch.cat([times, times.new_full((1,), torch.inf)])
        self.rows = torch.arange(self.R, device=y.device)
        self.seen = torch.ones_like(self.rows)  # outputs that a row has passed
        self.due = self.order[1].expand(self.R).clone()  # time of its next one
        self.kept = [(self.rows, y)]
        # one place more for each row: what no output asked for goes there
        self.shape = ((self.m + 1) * self.R, *y.shape[1:])
        self.block = None if graph else y.new_empty(self.shape)
        if self.block is not None:
            self.block[: self.R] = y

    def passed(self, now: Tensor, moved: Tensor, step: Tensor) -> list[Passed]:
        """What rows went by on their way from ``now`` to ``moved``, all ``(R,)``."""
        out: list[Passed] = []
        while True:
            over = moved >= self.due
            at = over.nonzero()[:, 0]
            if not len(at):
                return out
            if len(out) == NEAR:
                return [*out, self._rest(moved, now, step)]
            if 2 * len(at) < self.R:
                part = (self.due[at] - now[at]) / step[at]
                out.append(Passed(at, part, self.seen[at] * self.R + at))
            else:
                part = torch.where(over, (self.due - now) / step, 0.0)
                place = torch.where(over, self.seen, self.m).mul_(self.R).add_(self.rows)
                out.append(Passed(None, part, place))
            self.seen = self.seen + over
            self.due = self.order.index_select(0, self.seen)

    def _rest(self, moved: Tensor, now: Tensor, step: Tensor) -> Passed:
        """All that is left, for the rows that have some left."""
        upto = torch.searchsorted(self.order, moved, right=True)
        count = upto - self.seen
        at = torch.repeat_interleave(self.rows, count)
        which = torch.arange(len(at), device=at.device) + (upto - count.cumsum(0))[at]
        self.seen, self.due = upto, self.order[upto]
        return Passed(at, (self.order[which] - now[at]) / step[at], which * self.R + at)

    def put(self, passed: Passed, values: Tensor) -> None:
        if self.block is None:
            self.kept.append((passed.place, values))
        else:
            self.block.index_copy_(0, passed.place, values)

    @property
    def complete(self) -> bool:
        return bool((self.seen == self.m).all())

    def states(self) -> Tensor:
        """``(m, R, ...)``."""
        out = self.block
        if out is None:
            where, states = (torch.cat(parts) for parts in zip(*self.kept))
            out = states.new_zeros(self.shape).index_copy(0, where, states)
        return out.reshape(self.m + 1, self.R, *self.shape[1:])[: self.m]
