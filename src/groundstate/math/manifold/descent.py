r"""Descent of a map of neighbours: momentum, gains, and an early exaggeration.

:math:`u \leftarrow \mu u - \eta\, g \odot \nabla L,\ y \leftarrow y + u`. The gain g of a coordinate
grows by 0.2 where the step and the gradient disagree in sign and shrinks to 0.8 of itself where they
agree. For the first 250 steps the data's pairs pull 12 times as much, so that clusters form before
they settle.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from groundstate.compute.tiles import over_slices
from groundstate.math.manifold.divergence import PairEnergy
from groundstate.math.manifold.forces import DeviceForces, HostForces

EARLY = 250  # steps of early exaggeration
SLICE = 2**14


@dataclass(frozen=True)
class Schedule:
    """How a map descends; the learning rate is for the gradient with its factor 4."""

    exaggeration: float = 12.0
    rate: float = 200.0
    max_iter: int = 1000
    min_grad_norm: float = 1e-7
    patience: int = 300  # steps without progress after which it stops
    every: int = 50  # steps between two looks at the divergence
    early: int = EARLY


@dataclass(frozen=True)
class Descended:
    """Coordinates, their divergence, steps, and why it stopped."""

    Y: Tensor  # (n, p)
    divergence: float
    n_iter: int
    stop: str


class _Host:
    def __init__(self, Y: Tensor, forces: HostForces) -> None:
        self.forces = forces
        self.Y = np.ascontiguousarray(Y.double().numpy().T).copy()  # (p, n)
        self.update, self.gains = np.zeros_like(self.Y), np.ones_like(self.Y)

    def step(self, pull: float, momentum: float, rate: float) -> float:
        from groundstate.math.manifold.forces_numba import descend

        grad, _ = self.forces(self.Y, pull)
        parts = over_slices(
            lambda lo, hi: descend(grad, self.Y, self.update, self.gains, momentum, rate, lo, hi),
            self.Y.shape[1], SLICE,
        )  # fmt: skip
        return float(sum(parts)) ** 0.5

    def rest(self) -> None:
        self.update[:] = 0.0
        self.gains[:] = 1.0

    def divergence(self) -> float:
        return self.forces.divergence(self.Y, self.forces.push(self.Y)[1])

    def map(self) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(self.Y.T))


class _Device:
    def __init__(self, Y: Tensor, forces: DeviceForces) -> None:
        self.forces, self.Y = forces, Y.clone()
        self.update, self.gains = torch.zeros_like(Y), torch.ones_like(Y)

    def step(self, pull: float, momentum: float, rate: float) -> Tensor:
        grad, _ = self.forces(self.Y, pull)
        against = self.update * grad < 0
        self.gains = torch.where(against, self.gains + 0.2, self.gains * 0.8).clamp_min(0.01)
        self.update = torch.addcmul(momentum * self.update, self.gains, grad, value=-rate)
        self.Y = self.Y + self.update
        return torch.linalg.vector_norm(grad)

    def rest(self) -> None:
        self.update, self.gains = torch.zeros_like(self.Y), torch.ones_like(self.Y)

    def divergence(self) -> float:
        return self.forces.divergence(self.Y, self.forces.push(self.Y)[1])

    def map(self) -> Tensor:
        return self.Y


@torch.no_grad()
def descend(
    Y: Tensor, starts: Tensor, ends: Tensor, p: Tensor, schedule: Schedule, *, method: str,
    angle: float = 0.5, pair: PairEnergy | None = None,
    watch: Callable[[int, float, Tensor], Any] | None = None,
) -> Descended:  # fmt: skip
    """Lower the divergence of a map from a start.

    Parameters
    ----------
    Y : coordinates ``(n, p)`` to start from
    starts, ends, p : pairs of the data in CSR form, which sum to one
    schedule : steps and rates
    method, angle : how pushes are summed, see `groundstate.math.manifold.forces`
    pair : the energy of a pair
    watch : called as ``watch(step, divergence, Y)`` every ``schedule.every`` steps; True stops
    """
    pair = pair or PairEnergy()
    state: Any
    if Y.device.type == "cpu" and pair.is_cauchy:
        state = _Host(Y, HostForces(starts, ends, p, method, angle))
    else:
        state = _Device(Y, DeviceForces(starts, ends, p, method, pair, Y.dtype))
    step, best, best_step, value = 0, float("inf"), 0, float("nan")
    stop = "max_iter"
    while step < schedule.max_iter:
        early = step < schedule.early
        if step == schedule.early:
            state.rest()
            best, best_step = float("inf"), step
        norm = state.step(
            schedule.exaggeration if early else 1.0, 0.5 if early else 0.8, schedule.rate
        )
        step += 1
        if step % schedule.every and step < schedule.max_iter:
            continue
        value = state.divergence()
        if watch is not None and watch(step, value, state.map()):
            stop = "callback"
            break
        if early:
            continue
        if value < best:
            best, best_step = value, step
        elif step - best_step > schedule.patience:
            stop = "no progress"
            break
        if float(norm) <= schedule.min_grad_norm:
            stop = "gradient"
            break
    if not np.isfinite(value):
        value = state.divergence()
    return Descended(state.map(), value, step, stop)
