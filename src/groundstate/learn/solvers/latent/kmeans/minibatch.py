r"""k-means on mini-batches: every centroid is the running mean of the rows it was given.

.. math:: c_z \leftarrow c_z + \sum_{batch} w,\qquad
          \mu_z \leftarrow \mu_z + \frac1{c_z}\sum_{batch} w\,(x - \mu_z)
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_matrix
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.compute.reduce import current
from groundstate.compute.weight_line.line import WeightLine
from groundstate.energy.basic import CentroidEnergy
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.solvers.latent.kmeans.lloyd import Lloyd
from groundstate.learn.solvers.latent.kmeans.rows import CentroidRows, nearest
from groundstate.learn.solvers.latent.kmeans.start import drawer_of
from groundstate.learn.solvers.latent.kmeans.table import as_csr
from groundstate.registry import solvers


@dataclass
class Centroids:
    """Centroids ``(k, d)`` float64 with the weight ``(k,)`` that each has seen, and the steps so far."""

    mu: Tensor
    counts: Tensor
    steps: int = 0
    since: float = 0.0

    def step(self, x: Tensor, weight: Tensor | None, ratio: float, key: Key) -> float:
        """One mini-batch; its sum of squared distances before the step."""
        k = len(self.mu)
        label, inertia = nearest(x, self.mu.to(x.dtype), weight)
        z = label.long()
        w = torch.ones(x.shape[0], dtype=torch.float64, device=z.device)
        w = w if weight is None else weight.double()
        n = torch.zeros(k, dtype=torch.float64, device=w.device).index_add_(0, z, w)
        if x.layout == torch.sparse_csr:
            rows = as_csr(x)
            hot = csr_matrix((w.numpy(), (z.numpy(), range(len(z)))), shape=(k, len(z)))
            sums = torch.from_numpy((hot @ rows.astype(float)).toarray())
        else:
            hot = torch.zeros(k, len(z), dtype=torch.float64, device=w.device)
            hot[z, torch.arange(len(z), device=w.device)] = w
            sums = hot @ x.double()
        self.counts = self.counts + n
        seen = self.counts.clamp_min(1e-300)[:, None]
        self.mu = torch.where(
            n[:, None] > 0, self.mu + (sums - n[:, None] * self.mu) / seen, self.mu
        )
        self.steps, self.since = self.steps + 1, self.since + x.shape[0]
        if ratio > 0 and (bool((self.counts == 0).any()) or self.since >= 10 * k):
            self.since = 0.0
            self._again(x, weight, ratio, key)
        return inertia

    def _again(self, x: Tensor, weight: Tensor | None, ratio: float, key: Key) -> None:
        """Centroids that have seen little begin again at drawn rows of the batch."""
        low = self.counts < ratio * self.counts.max()
        most = x.shape[0] // 2
        if int(low.sum()) > most:
            keep = torch.argsort(self.counts, stable=True)[most:]
            low[keep] = False
        number = int(low.sum())
        if not number:
            return
        self.mu = self.mu.clone()
        self.mu[low] = drawer_of(x, weight, key).random(number).to(self.mu)
        self.counts = torch.where(low, self.counts[~low].min(), self.counts)


@solvers.register(
    formula=r"\mu_z \leftarrow \mu_z + \frac1{c_z}\sum_{batch} w\,(x - \mu_z)",
    make=lambda energy: MiniBatchLloyd(n_init=1),
)
@dataclass(frozen=True)
class MiniBatchLloyd:
    """Passes of mini-batches from the weight line until the smoothed inertia stops to fall.

    Where one mini-batch holds all rows, the passes are those of ``Lloyd``.

    Parameters
    ----------
    init, n_init : as for ``Lloyd``; the start with the lowest inertia on ``init_size`` rows is kept
    batch_size : rows (units of weight) of a mini-batch
    max_iter : passes
    tol : stop when the smoothed squared move of the centroids is at most ``tol`` times the variance
    max_no_improvement : mini-batches without a lower smoothed inertia after which to stop
    ratio : of the largest count, below which a centroid begins again elsewhere
    """

    init: Any = "k-means++"
    n_init: int = 3
    batch_size: int = 1024
    max_iter: int = 100
    tol: float = 0.0
    max_no_improvement: int | None = 10
    ratio: float = 0.01
    init_size: int | None = None

    def reason_against(self, problem: Problem) -> str | None:
        return Lloyd().reason_against(problem)

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        energy = problem.energy
        assert isinstance(energy, CentroidEnergy)
        x, weight = problem.resident["x"], problem.sample_weight
        rows = as_csr(x) if x.layout == torch.sparse_csr else x
        line = WeightLine.of(rows, weights=None if weight is None else weight)
        state = self.start(problem, line, rows)
        if line.total <= self.batch_size and current().world == 1:
            return self._whole(problem, state)
        history = History(solver="MiniBatchLloyd")
        smooth: float | None = None
        moved: float | None = None
        best, waited = float("inf"), 0
        spread = _variance(rows, weight)
        fade = min(1.0, 2.0 * self.batch_size / (line.total + 1))
        with Monitor(problem.callbacks, Run(problem, history, self.max_iter)) as monitor:
            for epoch in range(self.max_iter):
                start, total, mass = time.perf_counter(), 0.0, 0.0
                for part, w in batches(
                    line, rows, problem.key.fold("epoch", epoch), self.batch_size
                ):
                    old = state.mu
                    value = state.step(part, w, self.ratio, problem.key.fold("again", state.steps))
                    count = float(part.shape[0] if w is None else w.sum())
                    total, mass = total + value, mass + count
                    each, shift = value / count, float((state.mu - old).square().sum())
                    if state.steps == 1:
                        continue  # the first says how good the start was
                    smooth = each if smooth is None else (1 - fade) * smooth + fade * each
                    moved = shift if moved is None else (1 - fade) * moved + fade * shift
                    waited = 0 if smooth < best else waited + 1
                    best = min(best, smooth)
                    if self.max_no_improvement is not None and waited >= self.max_no_improvement:
                        history.converged, history.stop = True, "no improvement"
                    elif self.tol > 0 and moved <= self.tol * spread:
                        history.converged, history.stop = True, f"shift below tol={self.tol}"
                    if history.converged:
                        break
                history.objective.append(0.5 * total / mass)
                history.seconds.append(time.perf_counter() - start)
                energy.mu.copy_(state.mu)
                wish = monitor.epoch(history.objective[-1])
                if history.converged or wish:
                    history.stop = history.stop or "callback"
                    break
        history.n_iter, history.stop = len(history.objective), history.stop or "max_iter"
        history.extra["steps"] = [float(state.steps)]
        history.extra["counts"] = state.counts.tolist()
        return history

    def _whole(self, problem: Problem, state: Centroids) -> History:
        """Lloyd's passes, of which the running means would be a slow copy: a batch is all rows."""
        energy, x, weight = problem.energy, problem.resident["x"], problem.sample_weight
        assert isinstance(energy, CentroidEnergy)
        energy.mu.copy_(state.mu)
        history = Lloyd(None, max_iter=self.max_iter, tol=self.tol).run(problem)
        z = nearest(x, energy.mu, weight)[0].long()
        w = None if weight is None else weight.double()
        history.solver = "MiniBatchLloyd"
        history.extra["steps"] = [float(history.n_iter)]
        history.extra["counts"] = torch.bincount(z, w, len(energy.mu)).double().tolist()
        return history

    def start(self, problem: Problem, line: WeightLine, rows: Any) -> Centroids:
        """The best of some starts, judged on some rows."""
        energy = problem.energy
        assert isinstance(energy, CentroidEnergy)
        k = len(energy.mu)
        size = self.init_size or max(3 * self.batch_size, 3 * k)
        sample, w = next(iter(batches(line, rows, problem.key.fold("init"), max(size, k))))
        part = Problem(energy, problem.rule, {"x": sample}, w, key=problem.key)
        found = []
        for i in range(self.n_init):
            mu = Lloyd(self.init).start(part, i).double().to(sample.device)
            found.append((nearest(sample, mu.to(sample.dtype), w)[1], i, mu))
        best = min(found, key=lambda one: one[:2])[2]
        return Centroids(best, torch.zeros(k, dtype=torch.float64, device=best.device))


def batches(
    line: WeightLine, rows: Any, key: Key, size: float
) -> Iterator[tuple[Tensor, Tensor | None]]:
    """Mini-batches of rows, tensors or CSR, with their weights, None for ones."""
    device = rows.device if isinstance(rows, Tensor) else torch.device("cpu")
    for index, weight in line.batches(key, size, device):
        if isinstance(rows, Tensor):
            yield rows[index], weight
        else:
            part = rows[index.numpy()]
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="Sparse", category=UserWarning)
                yield torch.sparse_csr_tensor(
                    torch.from_numpy(part.indptr).long(), torch.from_numpy(part.indices).long(),
                    torch.from_numpy(part.data), part.shape,
                ), weight  # fmt: skip


def _variance(rows: Any, weight: Tensor | None) -> float:
    """Mean over the columns of the weighted variance."""
    if isinstance(rows, Tensor):
        return CentroidRows(rows, weight).variance
    mean = rows.mean(0)
    return float((rows.multiply(rows).mean(0) - np.square(mean)).mean())
