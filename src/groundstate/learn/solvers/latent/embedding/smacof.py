r"""Maps of distances: :math:`\min_Y\sum_{i<j} w_{ij}(\|y_i - y_j\| - \delta_{ij})^2` by majorisation."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.optimize import isotonic_regression
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.compute.tiles import over_slices
from groundstate.energy.latent.embedding.stress import StressEnergy
from groundstate.errors import DataError
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.solvers.latent.embedding.common import (
    in_line,
    metric_of,
    reason_against,
    repeated,
    taken,
)
from groundstate.math.manifold.scaling import classical_scaling
from groundstate.math.neighbors.pairwise import pairwise

SLICE = 64  # rows whose sums are taken together
CELLS = 2**24  # pairs of one tile on a device
TINY = 1e-300


@dataclass(frozen=True)
class Smacof:
    r"""Stress majorisation, :math:`Y \leftarrow V^+B(Y)Y` (the Guttman transform), which never raises it.

    :math:`B_{ij} = -w_{ij}\delta_{ij}/\|y_i - y_j\|` off the diagonal, rows sum to zero;
    :math:`V^+ = I/n` for equal weights. With ``metric=False`` the distances are first replaced by
    disparities, the increasing function of them that fits the map best (isotonic regression).

    Parameters
    ----------
    metric : whether distances count, or their order alone
    init : "classical_mds", "random" or coordinates ``(n, p)``
    n_init : random starts; the map of least stress is kept
    max_iter, eps : steps, and the fall of the stress, in units of :math:`\sum_{i<j}\|y_i - y_j\|^2`,
        below which it stops
    weights : of the pairs, ``(n, n)``; None is one each
    normalized : stress-1, :math:`\sqrt{\sum(d - \hat d)^2/\sum d^2}`, in place of the sum
    """

    metric: bool = True
    init: Any = "classical_mds"
    n_init: int = 1
    max_iter: int = 300
    eps: float = 1e-6
    weights: Any = None
    normalized: bool = False

    def reason_against(self, problem: Problem) -> str | None:
        return reason_against(problem, StressEnergy)

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        begin = time.perf_counter()
        energy = problem.energy
        assert isinstance(energy, StressEnergy)
        x = problem.resident["x"]
        metric, params = metric_of(energy.memory)
        square = metric == "precomputed"
        index = repeated(x, problem.sample_weight)
        if not square:
            index = in_line(x, index)
        rows = taken(x, index, square)
        D = (rows if square else pairwise(rows, metric=metric, metric_params=params)).double()
        if not self.metric:
            D = _ranks(D)
        weight = self._weight(index, x)
        history = History(solver="Smacof")
        run = Run(problem, history, max_epochs=self.max_iter)
        given = not isinstance(self.init, str)
        best: tuple[float, Tensor, int, bool] | None = None
        order = index.argsort(stable=True)
        with Monitor(problem.callbacks, run) as monitor:
            for start in range(1 if given else self.n_init):

                def watch(step: int, value: float, Y: Tensor) -> Any:
                    history.objective.append(value)
                    if problem.callbacks:
                        energy.remember(x[index[order]], Y[order], index[order])
                    return monitor.epoch(value)

                Y = self._start(D, energy.components, problem.key.fold(f"start {start}"), index)
                found = self._descend(Y, D, weight, watch)
                if best is None or found[0] < best[0]:
                    best = found
            assert best is not None
            energy.remember(x[index[order]], best[1][order], index[order])
        history.n_iter, history.converged = best[2], best[3]
        history.stop = "eps" if best[3] else "max_iter"
        history.extra["stress"] = [best[0]]
        history.seconds.append(time.perf_counter() - begin)
        return history

    def _weight(self, index: Tensor, x: Tensor) -> Tensor | None:
        if self.weights is None:
            return None
        weight = torch.as_tensor(self.weights, device=x.device).double()
        if weight.shape != (len(x), len(x)) or not bool((weight >= 0).all()):
            raise DataError(
                f"weights must be one number of at least 0 for each pair, ({len(x)}, {len(x)}), got "
                f"shape {tuple(weight.shape)}"
            )
        if float((weight - weight.T).abs().max()) > 1e-8 * float(weight.max()):
            raise DataError("weights of pairs must be symmetric; pass (W + W.T) / 2")
        weight = weight[index][:, index].clone()
        weight.fill_diagonal_(0.0)
        return weight

    def _start(self, D: Tensor, p: int, key: Key, index: Tensor) -> Tensor:
        if not isinstance(self.init, str):
            return torch.as_tensor(self.init, device=D.device).double()[index]
        if self.init == "random":
            return torch.from_numpy(key.numpy().random((len(D), p))).to(D.device)
        Y: Tensor = classical_scaling(D, min(p, len(D)))[0]
        return torch.nn.functional.pad(Y, (0, p - Y.shape[1]))

    def _descend(
        self, Y: Tensor, D: Tensor, weight: Tensor | None, watch: Any
    ) -> tuple[float, Tensor, int, bool]:
        n = len(D)
        inverse = None if weight is None else _pseudo_inverse(weight)
        wanted = D if self.metric else self._disparities(D, D, weight)
        before, stress, size = float("inf"), 0.0, 0.0
        converged, step = False, 0
        BY, stress, size = transform(Y, wanted, weight)
        for step in range(1, self.max_iter + 1):
            Y = BY / n if inverse is None else inverse @ BY
            BY, stress, size = transform(Y, wanted, weight)
            if watch(step, self._value(stress, size), Y):
                break
            if before - stress <= self.eps * size and step > 1:
                converged = True
                break
            before = stress
            if not self.metric:
                wanted = self._disparities(D, _distances(Y), weight)
                BY, before, size = transform(Y, wanted, weight)
        return self._value(stress, size), Y, step, converged

    def _value(self, stress: float, size: float) -> float:
        return (stress / size) ** 0.5 if self.normalized and size > 0 else stress

    def _disparities(self, D: Tensor, away: Tensor, weight: Tensor | None) -> Tensor:
        """Increasing in the given distances, nearest to the map's, of mean square one."""
        i, j = torch.triu_indices(len(D), len(D), 1, device=D.device)
        given, now = D[i, j].cpu().numpy(), away[i, j].cpu().numpy()
        w = np.ones_like(given) if weight is None else weight[i, j].cpu().numpy()
        use = np.flatnonzero((given > 0) & (w > 0))  # zero is a missing distance, as in the peer
        order = use[np.lexsort((now[use], given[use]))]
        fitted = np.zeros_like(given)
        fitted[order] = isotonic_regression(now[order], weights=w[order]).x
        total = float((w * fitted**2).sum())
        fitted *= (w.sum() / total) ** 0.5 if total > 0 else 1.0
        out = torch.zeros_like(D)
        out[i, j] = torch.from_numpy(fitted).to(D)
        return out + out.T


def transform(Y: Tensor, wanted: Tensor, weight: Tensor | None) -> tuple[Tensor, float, float]:
    """B(Y)Y, the stress and the sum of squared distances over pairs."""
    if Y.device.type == "cpu":
        from groundstate.learn.solvers.latent.embedding.smacof_numba import guttman

        rows = np.ascontiguousarray(Y.numpy().T)
        out = np.empty_like(rows)
        table = wanted.numpy()
        pair = np.zeros((1, 1)) if weight is None else weight.numpy()
        parts = list(
            over_slices(
                lambda lo, hi: guttman(rows, table, pair, weight is not None, lo, hi, out),
                len(Y), SLICE,
            )
        )  # fmt: skip
        stress, size = (sum(part[c] for part in parts) / 2 for c in range(2))
        return torch.from_numpy(np.ascontiguousarray(out.T)), stress, size
    made, sums = [], torch.zeros(2, dtype=torch.float64, device=Y.device)
    step = max(1, CELLS // len(Y))
    for lo in range(0, len(Y), step):
        part, goal = Y[lo : lo + step], wanted[lo : lo + step]
        d = _distances(part, Y)
        w = torch.ones_like(d) if weight is None else weight[lo : lo + step]
        sums = sums + torch.stack([(w * (d - goal).square()).sum(), (w * d.square()).sum()])
        ratio = torch.where(d > TINY, w * goal / d.clamp_min(TINY), 0.0)
        made.append(ratio.sum(1, keepdim=True) * part - ratio @ Y)
    return torch.cat(made), float(sums[0]) / 2, float(sums[1]) / 2


def _distances(part: Tensor, Y: Tensor | None = None) -> Tensor:
    exact = "donot_use_mm_for_euclid_dist"
    return torch.cdist(part, part if Y is None else Y, compute_mode=exact)


def _ranks(D: Tensor) -> Tensor:
    """The order of the distances, as a fraction; all that a map of the order may see. Zero stays."""
    values, at = torch.unique(D, return_inverse=True)
    return (
        at.double() / max(1, len(values) - 1) if float(values[0]) == 0 else (at + 1.0) / len(values)
    )


def _pseudo_inverse(weight: Tensor) -> Tensor:
    """V⁺ of :math:`V = \\mathrm{diag}(W1) - W`, for pairs that join all rows."""
    n = len(weight)
    V = torch.diag(weight.sum(1)) - weight
    return torch.linalg.pinv(V + 1.0 / n, hermitian=True) - 1.0 / n
