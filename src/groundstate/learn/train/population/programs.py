"""Losses and gradients of all members at once, by the program that can take them.

Plain multilayer networks have theirs written out; any other module is vectorised by ``torch.func``;
what ``vmap`` cannot vectorise (recurrent layers, rows in containers) goes member by member into the
same step.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from groundstate.compute.population.dense import Dense
from groundstate.compute.population.stack import Population
from groundstate.errors import NotApplicable
from groundstate.learn.train.precision import Precision

Rows = Mapping[str, Any]
_PROBE = 4  # rows on which vmap is tried


class Written:
    """`Dense` as a program of members."""

    def __init__(self, dense: Dense, population: Population) -> None:
        self.dense, self.population = dense, population

    def __call__(self, rows: Rows, weight: Tensor | None, grad: Tensor, shared: bool) -> Tensor:
        """Write the gradients (P, D); the losses.  # (P,)"""
        return self.dense(rows["x"], rows["y"], weight, self.population.views(grad))

    def losses(self, rows: Rows, weight: Tensor) -> Tensor:
        """Losses on shared rows without dropout.  # (P,)"""
        return self.dense.losses(rows["x"], rows["y"], weight)


class Vectorised:
    """Any modules, by ``vmap`` over stacked parameters.

    Raises ``NotApplicable`` where ``vmap`` has no rule for what the modules do.

    Parameters
    ----------
    population : of modules that are called with rows and weights and return a loss
    data : rows, of which a few are tried
    """

    def __init__(self, population: Population, data: Rows, precision: Precision) -> None:
        self.population, self.precision = population, precision
        self._try({name: v[:_PROBE] for name, v in data.items()})

    def _try(self, rows: Rows) -> None:
        population = self.population
        few = population.part(slice(2))
        few.buffers = {name: b.clone() for name, b in few.buffers.items()}
        work, self.population = torch.zeros_like(few.flat), few
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("error", "There is a performance drop")
                self(rows, None, work, True)
        except (RuntimeError, UserWarning) as error:
            # a defect of the modules is met again, without vmap, and seen there
            raise NotApplicable(f"vmap cannot: {str(error).splitlines()[0]}") from error
        finally:
            self.population = population

    def _losses(self, rows: Rows, weight: Tensor | None, shared: bool) -> Tensor:
        # the other kernels of attention have no batching rule
        with sdpa_kernel(SDPBackend.MATH), self.precision.autocast():
            return self.population.losses(self.population.call, rows, weight, shared)

    def __call__(self, rows: Rows, weight: Tensor | None, grad: Tensor, shared: bool) -> Tensor:
        """Write the gradients (P, D); the losses.  # (P,)"""
        losses = self._losses(rows, weight, shared)
        self.population.gradient(losses, grad)
        return losses.detach()

    @torch.no_grad()
    def losses(self, rows: Rows, weight: Tensor) -> Tensor:
        """Losses on shared rows without dropout.  # (P,)"""
        self.population.skeleton.eval()
        try:
            return self._losses(rows, weight, True)
        finally:
            self.population.skeleton.train()


class Looped(Vectorised):
    """Any modules, one member after the other inside one step."""

    def __init__(self, population: Population, precision: Precision) -> None:
        self.population, self.precision = population, precision

    def _losses(self, rows: Rows, weight: Tensor | None, shared: bool) -> Tensor:
        population = self.population
        found = []
        for p in range(len(population)):
            own = rows if shared else {name: v[p] for name, v in rows.items()}
            w = weight[p] if weight is not None and weight.ndim == 2 else weight
            params = {name: v[p] for name, v in population.params.items()}
            buffers = {name: b[p] for name, b in population.buffers.items()}
            with self.precision.autocast():
                found.append(population.call(params, buffers, own, w))
        return torch.stack(found)


Program = Written | Vectorised


def program_of(
    population: Population,
    data: Rows,
    written: Callable[[], Dense],
    backend: str,
    precision: Precision,
) -> Program:
    """The first program that can take these members; one written out is of float32."""
    tried: list[Callable[[], Any]] = []
    if all(isinstance(v, Tensor) for v in data.values()):
        tried.append(lambda: Vectorised(population, data, precision))
    if backend == "auto" and tried and precision.half is None:
        tried.insert(0, lambda: Written(written(), population))
    for make in tried:
        try:
            found: Program = make()
            return found
        except NotApplicable:
            continue
    return Looped(population, precision)
