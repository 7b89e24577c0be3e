r"""Maps of neighbours: :math:`\min_Y \mathrm{KL}(P\,\|\,Q(Y))`."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.energy.latent.embedding.neighbor_map import NeighborMapEnergy
from groundstate.errors import DataError
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.solvers.latent.embedding.common import (
    in_line,
    metric_of,
    no_signs,
    reason_against,
    repeated,
    taken,
)
from groundstate.math.manifold.affinities import DENSE, joint
from groundstate.math.manifold.descent import Schedule, descend

GRID = 10_000  # rows from which a grid is faster than a tree
DEVICE = 5_000  # rows from which it is, on a device, faster than all pairs
START = 1e-4  # standard deviation of the first coordinate of a start


@dataclass(frozen=True)
class NeighborDescent:
    r"""Descent of the divergence of a map with momentum, gains and early exaggeration (t-SNE).

    Parameters
    ----------
    init : "pca", "random" or coordinates ``(n, p)``
    schedule : steps and rates; a rate of zero is :math:`\max(n/4\alpha, 50)` with the exaggeration α
    method : "exact", "barnes_hut", "fft", or "auto": all pairs up to 1,000 rows, a grid from
        10,000 on (one or two dimensions), a tree between
    angle : of the tree
    """

    init: Any = "pca"
    schedule: Schedule = field(default_factory=lambda: Schedule(rate=0.0))
    method: str = "auto"
    angle: float = 0.5

    def reason_against(self, problem: Problem) -> str | None:
        return reason_against(problem, NeighborMapEnergy)

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        begin = time.perf_counter()
        energy = problem.energy
        assert isinstance(energy, NeighborMapEnergy)
        x, p = problem.resident["x"], energy.components
        square = energy.memory.metric == "precomputed"
        index = repeated(x, problem.sample_weight)
        if not square:
            index = in_line(x, index)
        n = len(index)
        if not energy.perplexity < n:
            raise DataError(f"perplexity ({energy.perplexity:g}) must be less than n_samples ({n})")
        rows = taken(x, index, square)
        method = self.chosen(n, p, x.device.type, energy.pair.is_cauchy)
        gaps = square and bool(rows.isinf().any())  # a graph of near rows
        if gaps and self.method == "exact":
            raise DataError(
                "method='exact' needs the distances of all pairs, got a sparse matrix; choose "
                "method='barnes_hut' or 'auto', or pass the rows"
            )
        dense = method == "exact" and n <= DENSE and self.method != "barnes_hut" and not gaps
        i, j, pairs, _ = joint(
            rows, energy.perplexity, *metric_of(energy.memory), sparse=not dense,
            distance_power=energy.distance_power, n_components=p,
        )  # fmt: skip
        starts = torch.zeros(n + 1, dtype=torch.int64, device=x.device)
        starts[1:] = torch.bincount(i, minlength=n).cumsum(0)
        schedule = self.schedule
        if schedule.rate == 0:
            rate = max(n / (4 * schedule.exaggeration), 50.0)
            schedule = Schedule(**{**vars(schedule), "rate": rate})
        history = History(solver="NeighborDescent")
        run = Run(problem, history, max_epochs=schedule.max_iter)
        start = self.start(rows, p, problem.key, index, square)
        with Monitor(problem.callbacks, run) as monitor:

            def watch(step: int, value: float, Y: Tensor) -> Any:
                history.objective.append(value)
                history.n_iter = step
                run.logs = {"kl": value}
                if problem.callbacks:
                    self._keep(energy, x, index, Y)
                return monitor.epoch(value)

            found = descend(
                start, starts, j, pairs, schedule, method=method, angle=self.angle,
                pair=energy.pair, watch=watch,
            )  # fmt: skip
            self._keep(energy, x, index, found.Y)
        history.n_iter, history.stop = found.n_iter, found.stop
        history.converged = found.stop != "max_iter"
        history.extra["kl"] = [found.divergence]
        history.seconds.append(time.perf_counter() - begin)
        return history

    def chosen(self, n: int, p: int, device: str, cauchy: bool) -> str:
        """How pushes are summed."""
        if self.method == "barnes_hut" and (device != "cpu" or not cauchy):
            return "fft" if p <= 2 else "exact"
        if self.method == "fft" and p > 2:
            raise DataError(f"method='fft' is for maps of 1 or 2 dimensions, got {p}")
        if self.method != "auto":
            return "exact" if self.method == "fft" and p == 1 and device == "cpu" else self.method
        if device != "cpu" or not cauchy:
            return "fft" if n >= DEVICE and p <= 2 else "exact"
        if n <= DENSE or p > 3:
            return "exact"
        return "fft" if n >= GRID and p == 2 else "barnes_hut"

    def start(self, rows: Tensor, p: int, key: Key, index: Tensor, square: bool) -> Tensor:
        """Coordinates to start from."""
        kind = torch.float64 if rows.device.type == "cpu" else rows.dtype
        if not isinstance(self.init, str):
            return torch.as_tensor(self.init, device=rows.device)[index].to(kind)
        if self.init == "random":
            draw = torch.from_numpy(key.fold("map").numpy().standard_normal((len(rows), p)))
            return (START * draw).to(rows.device, kind)
        if square:
            raise DataError("init='pca' needs rows, not distances; pass init='random'")
        about = rows.double() - rows.double().mean(0)
        if p > min(about.shape):
            raise DataError(
                f"init='pca' needs n_components={p} at most min(n_samples, n_features)="
                f"{min(about.shape)}; pass init='random'"
            )
        if about.shape[1] <= 4 * len(about):
            axes = torch.linalg.eigh(about.T @ about).eigenvectors.flip(1)[:, :p]
        else:
            axes = torch.linalg.svd(about, full_matrices=False).Vh[:p].T
        Y = no_signs(about @ axes)
        return (Y / Y[:, 0].std(correction=0).clamp_min(1e-300) * START).to(kind)

    @staticmethod
    def _keep(energy: NeighborMapEnergy, x: Tensor, index: Tensor, Y: Tensor) -> None:
        """Remember the map in the order of the table."""
        order = index.argsort(stable=True)
        own = index[order]
        energy.remember(x[own], Y[order], own)
