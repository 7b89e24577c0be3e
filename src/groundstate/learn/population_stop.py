"""When members of a population stop, each for itself."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from groundstate.compute.population import Population
from groundstate.errors import ShapeError


class Plateaus:
    """A member is done when its objective has not improved by ``tol * max(1, |value|)`` for a while."""

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

    def state(self) -> list[Tensor]:
        return [self.best, self.stale]

    def load(self, state: list[Tensor]) -> None:
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
        self.population = population
        self.kept = flat.clone()
        self.buffers = {name: b.clone() for name, b in population.buffers.items()}

    def __call__(self, values: Tensor, running: Tensor) -> Tensor:
        better = (values < self.best) & running
        self.best = torch.where(better, values, self.best)
        self.age = torch.where(better, 0, self.age + 1)
        mask = better.to(self.kept.device)
        self.kept = torch.where(mask[:, None], self.population.flat, self.kept)
        for name, own in self.population.buffers.items():
            wide = mask.view(-1, *[1] * (own.ndim - 1))
            self.buffers[name] = torch.where(wide, own, self.buffers[name])
        return self.age >= self.patience

    def give_back(self, population: Population) -> None:
        population.flat.copy_(self.kept)
        for name, own in self.buffers.items():
            population.buffers[name].copy_(own)

    def state(self) -> dict[str, Any]:
        return {"best": self.best, "age": self.age, "kept": self.kept, "buffers": self.buffers}

    def load(self, state: dict[str, Any]) -> None:
        self.best, self.age = state["best"].cpu(), state["age"].cpu()
        self.kept = state["kept"].to(self.kept)
        self.buffers = {n: b.to(self.kept.device) for n, b in state["buffers"].items()}


__all__ = ["Plateaus", "Rests", "Validation"]
