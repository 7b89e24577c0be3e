r"""Lloyd's algorithm: hard EM of the centroid energy, made fast."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.compute.reduce import current
from groundstate.energy.basic import CentroidEnergy
from groundstate.errors import NotConverged, ShapeError
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.fit import solver_for
from groundstate.learn.rules.naive import Naive
from groundstate.learn.solvers.latent.kmeans.rows import CentroidRows
from groundstate.learn.solvers.latent.kmeans.start import drawer_of
from groundstate.registry import solvers


@solvers.register(
    formula=r"\mu_z \leftarrow \operatorname{mean}\{x_i : z_i = z\},\quad "
    r"z_i = \arg\min_z\,\tfrac12\|x_i-\mu_z\|^2",
    make=lambda energy: Lloyd(),
)
@solver_for(CentroidEnergy, Naive)
@dataclass(frozen=True)
class Lloyd:
    r"""Lower :math:`J = \frac1{\sum w}\sum_i w_i\min_z\,\tfrac12\|x_i-\mu_z\|^2` in turn over labels and
    centroids.

    This is EM at T = 0. A row is compared with all centroids only where Hamerly's bounds leave its
    label open, so labels are those of the plain algorithm at every iteration. A centroid without
    rows moves to the row farthest from its own. Weights, sums and counts of moved rows are all that
    is summed over shards.

    Parameters
    ----------
    init : "k-means++", "random", centroids ``(k, d)``, a function of a key that gives them, or None
        for θ as it stands
    n_init : runs from different starts; the best is kept
    max_iter : iterations of a run
    tol : stop when :math:`\sum_z\|\Delta\mu_z\|^2` is at most ``tol`` times the mean variance of the
        columns, or when no label changes

    Notes
    -----
    ``History.objective`` is J after each iteration of the best run.

    Examples
    --------
    >>> from groundstate.learn import fit
    >>> energy = CentroidEnergy(2, 1).double()
    >>> x = torch.tensor([[-2.0], [-1.0], [1.0], [3.0]], dtype=torch.float64)
    >>> start = torch.tensor([[-1.0], [1.0]], dtype=torch.float64)
    >>> history = fit(energy, {"x": x}, Naive(latent="minimise"), Lloyd(init=start))
    >>> energy.mu.flatten().tolist(), round(8 * history.objective[-1], 6)  # twice J Σw: inertia
    ([-1.5, 2.0], 2.5)
    """

    init: str | Tensor | Callable[[Key], Tensor] | None = "k-means++"
    n_init: int = 1
    max_iter: int = 300
    tol: float = 1e-4

    def __post_init__(self) -> None:
        if isinstance(self.init, str) and self.init not in ("k-means++", "random"):
            raise ValueError(f"init must be 'k-means++', 'random' or centroids, got {self.init!r}")
        for name in ("n_init", "max_iter"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")

    def reason_against(self, problem: Problem) -> str | None:
        energy, rule = problem.energy, problem.rule
        if not isinstance(energy, CentroidEnergy) or not isinstance(rule, Naive):
            return "it is for a centroid energy with the Naive rule"
        if rule.latent != "minimise":
            return "it minimises over z; use Naive(latent='minimise')"
        if not problem.is_resident or set(problem.names) != {"x"}:
            return "it needs resident x, and z unknown"
        if problem.penalty is not None:
            return "it has no penalty"
        return None

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        energy = problem.energy
        assert isinstance(energy, CentroidEnergy)
        rows = CentroidRows(problem.resident["x"], problem.sample_weight)
        threshold = self.tol * rows.variance
        first = History(solver="Lloyd")
        best: History | None = None
        with Monitor(
            problem.callbacks, Run(problem, first, self.max_iter * self.n_init)
        ) as monitor:
            for i in range(self.n_init):
                kept = energy.mu.clone()
                energy.mu.copy_(self._start(problem, i))
                rows.begin(energy.mu.double())
                found = first if i == 0 else History(solver="Lloyd")
                stop = self._one(rows, energy, threshold, monitor, found)
                if best is None or found.objective[-1] < best.objective[-1] * (1 - 1e-12):
                    best = found
                else:
                    energy.mu.copy_(kept)
                if stop:
                    break
        assert best is not None
        best.n_iter = len(best.objective)
        if not best.converged and best.stop == "max_iter" and current().rank == 0:
            warnings.warn(
                f"Lloyd stopped after {self.max_iter} iterations while labels still changed; "
                "raise max_iter or tol",
                NotConverged,
                stacklevel=3,
            )
        return best

    def _start(self, problem: Problem, i: int) -> Tensor:
        energy = problem.energy
        assert isinstance(energy, CentroidEnergy)
        if self.init is None:
            return energy.mu
        key = problem.key.fold("start", i)
        if not isinstance(self.init, str):
            init = self.init if isinstance(self.init, Tensor) else self.init(key)
            if init.shape != energy.mu.shape:
                raise ShapeError(
                    f"init must hold one row per centroid, {tuple(energy.mu.shape)}, got "
                    f"{tuple(init.shape)}"
                )
            return init.to(energy.mu)
        x, weight = problem.resident["x"], problem.sample_weight
        drawer = drawer_of(x, weight, key)
        k = len(energy.mu)
        chosen = drawer.plus_plus(k) if self.init == "k-means++" else drawer.random(k)
        return chosen.to(energy.mu)

    def _one(
        self,
        rows: CentroidRows,
        energy: CentroidEnergy,
        threshold: float,
        monitor: Monitor,
        history: History,
    ) -> bool:
        """One run from the centroids of now; True when a callback wants to stop."""
        history.stop, wish = "max_iter", False
        start = time.perf_counter()
        at_once = None if monitor.callbacks else rows.run(threshold, self.max_iter)
        if at_once is not None:
            history.objective, history.converged, rest = at_once
            each = (time.perf_counter() - start) / len(history.objective)
            history.seconds = [each] * len(history.objective)
            if history.converged:
                history.stop = "labels" if rest else f"shift below tol={self.tol}"
            energy.mu.copy_(rows.centroids())
            history.extra["compared"] = [rows.compared]
            return False
        for _ in range(self.max_iter):
            start = time.perf_counter()
            moved = rows.assign()
            shift = rows.update()
            history.objective.append(rows.objective)
            history.seconds.append(time.perf_counter() - start)
            history.converged = moved == 0 or shift <= threshold
            if monitor.callbacks:
                energy.mu.copy_(rows.centroids())
            wish = monitor.epoch(rows.objective)
            if history.converged:
                history.stop = "labels" if moved == 0 else f"shift below tol={self.tol}"
            elif wish:
                history.stop = "callback"
            if history.converged or wish:
                break
        energy.mu.copy_(rows.centroids())
        history.extra["compared"] = [rows.compared]
        return wish


__all__ = ["Lloyd"]
