r"""Maps of fuzzy neighbours by stochastic steps: :math:`\min_Y -\sum p\log q + (1 - p)\log(1 - q)`."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.energy.latent.embedding.fuzzy_map import FuzzyMapEnergy
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
from groundstate.math.manifold.fuzzy import fuzzy_pairs
from groundstate.math.manifold.scaling import classical_scaling
from groundstate.math.manifold.spectral import spread_start

LOOKS = 10  # at the energy, on the way
WIDTH = 10.0  # of the start
NOISE = 1e-4
MANY = 10_000  # rows beyond which fewer epochs are enough
F32 = np.float32


@dataclass(frozen=True)
class FuzzyDescent:
    r"""Edges pull as often as their membership says, m random rows push for every pull (UMAP).

    A pair pulls in the epochs :math:`p_\max/p_{ij}, 2p_\max/p_{ij}, \dots`. Rates fall as
    :math:`\eta(1 - t/T)^2`: the last quarter of the epochs takes the noise of the draws out. One thread
    goes through the edges in a fixed order, so that a seed is a map.

    Parameters
    ----------
    init : "spectral", "pca", "random" or coordinates ``(n, p)``
    max_iter : epochs; None is 500, and 200 beyond 10,000 rows
    rate : η
    negatives, repulsion : m and γ
    mix, connectivity : of the graph, see ``groundstate.manifold.fuzzy_graph``
    """

    init: Any = "spectral"
    max_iter: int | None = None
    rate: float = 1.0
    negatives: int = 5
    repulsion: float = 1.0
    mix: float = 1.0
    connectivity: float = 1.0

    def reason_against(self, problem: Problem) -> str | None:
        return reason_against(problem, FuzzyMapEnergy)

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        from groundstate.math.manifold.fuzzy_numba import epochs

        begin = time.perf_counter()
        energy = problem.energy
        assert isinstance(energy, FuzzyMapEnergy)
        x, p = problem.resident["x"], energy.components
        square = energy.memory.metric == "precomputed"
        index = repeated(x, problem.sample_weight)
        if not square:
            index = in_line(x, index)
        n = len(index)
        if not 2 <= energy.neighbors <= n:
            raise DataError(
                f"n_neighbors={energy.neighbors} must be 2 to n_samples={n}: a row is one of its own"
            )
        rows = taken(x, index, square).cpu()
        i, j, value = fuzzy_pairs(
            rows, energy.neighbors, *metric_of(energy.memory), self.mix, self.connectivity
        )
        total = self.max_iter if self.max_iter is not None else (500 if n <= MANY else 200)
        Y = self.start(rows, csr_array((value.numpy(), (i.numpy(), j.numpy())), shape=(n, n)), p,
                       problem.key, index, square, energy)  # fmt: skip
        kept = value >= value.max() / max(total, 1)
        i, j, value = i[kept], j[kept], value[kept]
        starts = np.zeros(n + 1, np.int64)
        starts[1:] = torch.bincount(i, minlength=n).cumsum(0).numpy()
        every = (value.max() / value).numpy().astype(F32)
        due, pushed = every.copy(), (every / F32(max(self.negatives, 1))).astype(F32)
        state = np.array([problem.key.fold("pushes").low | 1], np.uint64)
        settings = (
            F32(energy.a),
            F32(energy.b),
            F32(self.repulsion),
            F32(self.rate),
            F32(self.negatives),
        )
        history = History(solver="FuzzyDescent", stop="max_iter", converged=True)
        run = Run(problem, history, max_epochs=total)
        bounds = np.unique(np.linspace(0, total, LOOKS + 1).astype(int))
        ends, back = j.numpy().astype(np.int32), index.argsort(stable=True)
        done = 0
        with Monitor(problem.callbacks, run) as monitor:
            for first, last in pairwise(bounds):
                epochs(Y, starts, ends, every, due, pushed, first, last, total, *settings, state)
                done = int(last)
                seen = self.objective(Y, i.numpy(), ends, value.numpy(), problem.key, energy)
                history.objective.append(seen)
                run.logs = {"cross_entropy": seen}
                if problem.callbacks:  # in the order of the table
                    energy.remember(x[index[back]], torch.from_numpy(Y).to(x)[back], index[back])
                if monitor.epoch(seen):
                    history.stop = "callback"
                    break
            energy.remember(x[index], torch.from_numpy(Y).to(x), index)
        history.n_iter, history.about["places"] = done, index
        history.seconds.append(time.perf_counter() - begin)
        return history

    def objective(
        self, Y: Any, i: Any, j: Any, value: Any, key: Key, energy: FuzzyMapEnergy
    ) -> float:
        """The energy of the map per row, its pushes by as many pairs as there are edges."""
        n = len(Y)
        a, b = key.fold("look").numpy().integers(0, n, (2, max(len(i), 1000)))
        a, b = a[a != b], b[a != b]
        square = [torch.from_numpy(((Y[u] - Y[v]).astype(np.float64) ** 2).sum(1))
                  for u, v in ((i, j), (a, b))]  # fmt: skip
        pull = float((torch.from_numpy(value) * energy.apart(square[0])[0]).sum()) / n
        push = float(energy.apart(square[1])[1].mean()) * energy.repulsion * float(value.sum()) / n
        return pull + push

    def start(
        self, rows: Tensor, graph: Any, p: int, key: Key, index: Tensor, square: bool,
        energy: FuzzyMapEnergy,
    ) -> Any:  # fmt: skip
        """Coordinates to start from, float32 ``(n, p)``."""
        n, generator = len(rows), key.fold("map").numpy()
        if not isinstance(self.init, str):
            return np.ascontiguousarray(torch.as_tensor(self.init).cpu()[index.cpu()].numpy(), F32)
        if self.init == "random":
            return generator.uniform(-WIDTH, WIDTH, (n, p)).astype(F32)
        if self.init == "pca":
            if square or p > min(rows.shape):
                raise DataError(
                    f"init='pca' needs rows with at least n_components={p} features, not distances; "
                    "pass init='spectral'"
                )
            about = rows.double() - rows.double().mean(0)
            U, s, _ = torch.linalg.svd(about, full_matrices=False)
            Y = no_signs(U[:, :p] * s[:p]).numpy()
            Y = WIDTH * Y / max(np.abs(Y).max(), 1e-300)
        else:
            Y = spread_start(graph, p, lambda label: self._centres(rows, label, p, square), WIDTH)
        return (Y + NOISE * generator.standard_normal((n, p))).astype(F32)

    @staticmethod
    def _centres(rows: Tensor, label: Any, p: int, square: bool) -> Any:
        """Places for the parts of a graph, by the distances between their means."""
        count = int(label.max()) + 1
        mean = torch.zeros(count, rows.shape[1], dtype=torch.float64)
        at = torch.from_numpy(label).long()
        mean.index_add_(0, at, rows.double())
        mean /= torch.bincount(at, minlength=count)[:, None]
        if square:
            across = torch.zeros(count, count, dtype=torch.float64)
            across.index_add_(1, at, mean)
            D = across / torch.bincount(at, minlength=count)
            D = (D + D.T) / 2
            D.fill_diagonal_(0)
        else:
            D = torch.cdist(mean, mean)
        q = min(p, count)
        Y = torch.zeros(count, p, dtype=torch.float64)
        Y[:, :q] = classical_scaling(D, q)[0]
        return Y.numpy()
