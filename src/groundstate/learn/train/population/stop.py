"""When members of a population stop, each for itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.population.stack import Population
from groundstate.energy.base import Energy
from groundstate.errors import ShapeError
from groundstate.learn.stops import Patience

Judge = Callable[[Energy], float]


class Stop:
    """What decides that members are done: the objective, held-out rows or judges.

    With held-out rows or judges, members get the parameters of their best epoch back.

    Parameters
    ----------
    patience : counts the epochs of each member
    held : (P, N) weights of held-out rows; their loss is watched
    judges : P scores of a member's energy, high is good
    targets : K > 1 records and watches the mean over K targets plus the penalty
    """

    def __init__(
        self,
        patience: Patience,
        *,
        held: Tensor | None = None,
        judges: Sequence[Judge] = (),
        targets: int = 1,
    ) -> None:
        self.patience, self.held, self.judges, self.targets = patience, held, judges, targets
        self.best: Best | None = None

    def begin(self, population: Population) -> None:
        """Before the first epoch."""
        size = len(population)
        if self.held is not None:
            held = self.held
            if held.ndim != 2 or len(held) != size or not bool((held.sum(1) > 0).all()):
                raise ShapeError(
                    f"validation_weight must be ({size}, rows) with some weight in every row, got "
                    f"{tuple(held.shape)}"
                )
            self.held = held.to(population.flat)
        if self.held is not None or self.judges:
            self.best = Best(population)

    def scores(self, energies: Sequence[Energy], running: Tensor) -> Tensor:
        """What the judges say of running members; minus infinity where it is not a number.  # (P,)"""
        found = torch.full((len(self.judges),), -math.inf, dtype=torch.float64)
        for i in running.nonzero()[:, 0].tolist():
            energies[i].eval()
            with torch.no_grad():
                value = self.judges[i](energies[i])
            found[i] = value if math.isfinite(value) else -math.inf
        return found

    def __call__(self, values: Tensor, running: Tensor, population: Population) -> Tensor:
        """Keep what is better than ever; who is done.  # (P,)"""
        done: NDArray[np.bool_] = self.patience(values, running.numpy())
        if self.best is not None:
            self.best.take(torch.from_numpy(self.patience.better), population)
        return torch.from_numpy(done)

    def state(self) -> list[Any]:
        return [*self.patience.state(), None if self.best is None else self.best.state()]

    def load(self, state: list[Any]) -> None:
        self.patience.load(state)
        if self.best is not None and state[2] is not None:
            self.best.load(state[2])


class Best:
    """Copies of the parameters and buffers of each member's best epoch."""

    def __init__(self, population: Population) -> None:
        self.kept = population.flat.clone()
        self.buffers = {name: b.clone() for name, b in population.buffers.items()}

    def take(self, better: Tensor, population: Population) -> None:
        """Copy the members in the mask."""
        mask = better.to(self.kept.device)
        self.kept = torch.where(mask[:, None], population.flat, self.kept)
        for name, own in population.buffers.items():
            wide = mask.view(-1, *[1] * (own.ndim - 1))
            self.buffers[name] = torch.where(wide, own, self.buffers[name])

    def give_back(self, population: Population) -> None:
        population.flat.copy_(self.kept)
        for name, own in self.buffers.items():
            population.buffers[name].copy_(own)

    def state(self) -> dict[str, Any]:
        return {"kept": self.kept, "buffers": self.buffers}

    def load(self, state: dict[str, Any]) -> None:
        self.kept = state["kept"].to(self.kept)
        self.buffers = {n: b.to(self.kept.device) for n, b in state["buffers"].items()}
