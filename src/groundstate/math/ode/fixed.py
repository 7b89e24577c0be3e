"""Steps of a size that is given."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from groundstate.math.ode.tables import Table

Field = Callable[[Tensor, Tensor], Tensor]


def clock(time: Tensor, y: Tensor, rows: bool) -> Tensor:
    """A time as f gets it: for every row of y ``(R, 1, ...)``, or one."""
    time = time.detach()
    return time.expand(len(y)).reshape(-1, *[1] * (y.ndim - 1)) if rows else time


def step(f: Field, table: Table, t: Tensor, y: Tensor, h: Tensor) -> Tensor:
    """One step of an explicit method."""
    slopes: list[Tensor] = []
    for row, c in zip(table.a, table.c):
        at = y
        for a, k in zip(row, slopes):
            if a:
                at = at + (a * h) * k
        slopes.append(f(t + c * h, at))
    out = y
    for b, k in zip(table.b, slopes):
        if b:
            out = out + (b * h) * k
    return out


def fixed(f: Field, y: Tensor, t: Tensor, table: Table, steps: int, spare: bool) -> Tensor:
    """The states at the times t, ``(m, *y)``, with ``steps`` steps from one time to the next.

    ``spare`` remembers the states at t alone and computes the steps between them again for the
    gradient.
    """

    def across(start: Tensor, end: Tensor, y: Tensor) -> Tensor:
        h = (end - start) / steps
        for j in range(steps):
            y = step(f, table, start + j * h, y, h)
        return y

    states = [y]
    for start, end in pairwise(t):
        if spare:
            y = checkpoint(across, start, end, y, use_reentrant=False)
        else:
            y = across(start, end, y)
        states.append(y)
    return torch.stack(states)
