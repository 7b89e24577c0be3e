"""When members of a population stop, each for itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from groundstate.compute.population.stack import Population
from groundstate.energy.base import Energy
from groundstate.errors import ShapeError

Judge = Callable[[Energy], float]


class Plateaus:
    """A member is done when its objective has not improved by ``tol * max(1, |value|)`` for a while."""

    targets = 1  # K > 1: what is recorded and watched is the mean over K targets plus the penalty

    def __init__(self, size: int, tol: float | None, patience: int) -> None:
        self.tol, self.patience = tol, patience
        self.best = torch.full((size,), math.inf, dtype=torch.float64)
        self.stale = torch.zeros(size, dtype=torch.int64)

    def __call__(self, objective: Tensor) -> Tensor:
        if self.tol is None:
            return torch.zeros(len(objective), dtype=torch.bool)
        enough = self.tol * objective.abs().clamp_min(1.0)
        self.stale = torch.where(objective < self.best - enough, 0, self.stale + 1)
        self.best = torch.fmin(self.best, objective)
        return self.stale >= self.patience

    def state(self) -> list[Any]:
        return [self.best, self.stale]

    def load(self, state: list[Any], population: Population | None = None) -> None:
        self.best, self.stale = (t.cpu() for t in state)


class Rests(Plateaus):
    """Done after more than ``patience`` epochs in a row that do not lower the best by ``tol``."""

    def __init__(self, size: int, tol: float, patience: float) -> None:
        super().__init__(size, tol, 0)
        self.allowed = patience

    def __call__(self, objective: Tensor) -> Tensor:
        assert self.tol is not None
        self.stale = torch.where(objective <= self.best - self.tol, 0, self.stale + 1)
        self.best = torch.fmin(self.best, objective)
        return self.stale > self.allowed


class Judged(Rests):
    """`Rests` of a score of held-out rows, high is good; the best parameters of a member come back.

    Parameters
    ----------
    tol, patience : as in ``Rests``
    judges : P scores of a member's energy
    """

    def __init__(self, tol: float, patience: float, judges: Sequence[Judge]) -> None:
        super().__init__(len(judges), tol, patience)
        self.judges = judges
        self.copies: Best | None = None

    def scores(self, energies: Sequence[Energy], running: Tensor) -> Tensor:
        """The scores of the running members; minus infinity where it is not a number.  # (P,)"""
        found = torch.full((len(self.judges),), -math.inf, dtype=torch.float64)
        for i in running.nonzero()[:, 0].tolist():
            energies[i].eval()
            with torch.no_grad():
                value = self.judges[i](energies[i])
            found[i] = value if math.isfinite(value) else -math.inf
        return found

    def judge(self, scores: Tensor, population: Population) -> Tensor:
        """Keep what is better than ever; who is done.  # (P,)"""
        if self.copies is None:
            self.copies = Best(population)
        self.copies.take(-scores < self.best, population)
        return self(-scores)

    def state(self) -> list[Any]:
        return [*super().state(), None if self.copies is None else self.copies.state()]

    def load(self, state: list[Any], population: Population | None = None) -> None:
        super().load(state[:2])
        if state[2] is not None and population is not None:
            self.copies = Best(population)
            self.copies.load(state[2])


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


class Validation:
    """Early stopping on held-out rows; every member gets its best parameters and buffers back.

    Parameters
    ----------
    weight : Tensor, (P, N)
        Held-out rows of each member.
    patience : epochs without a better value
    population : whose parameters are kept
    """

    def __init__(self, weight: Tensor, patience: int, population: Population) -> None:
        flat, size = population.flat, len(population)
        if weight.ndim != 2 or len(weight) != size or not bool((weight.sum(1) > 0).all()):
            raise ShapeError(
                f"validation_weight must be ({size}, rows) with some weight in every row, got "
                f"{tuple(weight.shape)}"
            )
        self.weight, self.patience = weight.to(flat), patience
        self.best = torch.full((size,), math.inf, dtype=torch.float64)
        self.age = torch.zeros(size, dtype=torch.int64)
        self.population, self.copies = population, Best(population)

    def __call__(self, values: Tensor, running: Tensor) -> Tensor:
        better = (values < self.best) & running
        self.best = torch.where(better, values, self.best)
        self.age = torch.where(better, 0, self.age + 1)
        self.copies.take(better, self.population)
        return self.age >= self.patience

    def give_back(self, population: Population) -> None:
        self.copies.give_back(population)

    def state(self) -> dict[str, Any]:
        return {"best": self.best, "age": self.age, **self.copies.state()}

    def load(self, state: dict[str, Any]) -> None:
        self.best, self.age = state["best"].cpu(), state["age"].cpu()
        self.copies.load(state)


__all__ = ["Best", "Judge", "Judged", "Plateaus", "Rests", "Validation"]
