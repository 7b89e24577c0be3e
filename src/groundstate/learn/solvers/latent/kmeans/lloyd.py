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
from groundstate.learn.rules.naive import Naive
from groundstate.learn.solvers.latent.kmeans.drawers import Drawer
from groundstate.learn.solvers.latent.kmeans.rows import BOUNDS, CentroidRows, CentroidRun
from groundstate.learn.solvers.latent.kmeans.start import STARTS, drawer_of
from groundstate.registry import solvers

RESIDENT = 2**28  # labels and bounds of the runs that share a pass


@solvers.register(
    formula=r"\mu_z \leftarrow \operatorname{mean}\{x_i : z_i = z\},\quad "
    r"z_i = \arg\min_z\,\tfrac12\|x_i-\mu_z\|^2",
    make=lambda energy: Lloyd(),
)
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
    init : "k-means++", "scalable-k-means++", "random", centroids ``(k, d)``, a function of a key that
        gives them, or None for θ as it stands
    n_init : runs from different starts, which share every pass over the rows; the best is kept
    max_iter : iterations of a run
    tol : stop when :math:`\sum_z\|\Delta\mu_z\|^2` is at most ``tol`` times the mean variance of the
        columns, or when no label changes
    stop : "shift" for that rule; "max_shift" stops when :math:`\max_z\|\Delta\mu_z\| < tol`
    bounds : "auto", or which lower bounds skip rows: "lloyd" none, "hamerly", "yinyang", "elkan"
    relocate : whether a centroid without rows moves to the row farthest from its own, or stays

    Notes
    -----
    ``History.objective`` is J after each iteration of the best run. ``History.extra`` holds its
    ``"max_shift"`` of each iteration, how many rows were ``"compared"`` with all centroids, and the
    final J of all ``"restarts"``.

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
    stop: str = "shift"
    bounds: str = "auto"
    relocate: bool = True

    def __post_init__(self) -> None:
        if isinstance(self.init, str) and self.init not in STARTS:
            raise ValueError(f"init must be {', '.join(STARTS)} or centroids, got {self.init!r}")
        for name in ("n_init", "max_iter"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.stop not in ("shift", "max_shift"):
            raise ValueError(f"stop must be 'shift' or 'max_shift', got {self.stop!r}")
        if self.bounds not in BOUNDS:
            raise ValueError(f"bounds must be one of {', '.join(BOUNDS)}, got {self.bounds!r}")

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
        x, weight = problem.resident["x"], problem.sample_weight
        rows = CentroidRows(x, weight, self.bounds, self.relocate)
        drawer = drawer_of(x, weight, problem.key) if isinstance(self.init, str) else None
        histories: list[History] = []
        ends: list[Tensor] = []
        first = History(solver="Lloyd")
        with Monitor(problem.callbacks, Run(problem, first, self.max_iter)) as monitor:
            at_once = max(1, RESIDENT // max(1, len(x) * len(energy.mu)))
            for lo in range(0, self.n_init, at_once):
                some = range(lo, min(self.n_init, lo + at_once))
                runs = [rows.begin(self.start(problem, i, drawer)) for i in some]
                found = [first if i == 0 else History(solver="Lloyd") for i in some]
                wish = self._together(rows, runs, energy, monitor, found)
                histories += found
                ends += [rows.centroids(run) for run in runs]
                if wish:
                    break
        best = 0
        for i, one in enumerate(histories):  # of equals the first
            if one.objective[-1] < histories[best].objective[-1] * (1 - 1e-12):
                best = i
        energy.mu.copy_(ends[best])
        history = histories[best]
        history.n_iter = len(history.objective)
        history.extra["restarts"] = [one.objective[-1] for one in histories]
        if not history.converged and history.stop == "max_iter" and current().rank == 0:
            warnings.warn(
                f"Lloyd stopped after {self.max_iter} iterations while labels still changed; "
                "raise max_iter or tol",
                NotConverged,
                stacklevel=3,
            )
        return history

    def start(self, problem: Problem, i: int, drawer: Drawer | None = None) -> Tensor:
        """Centroids of start i, ``(k, d)``, by a drawer of the rows that other starts used."""
        energy = problem.energy
        assert isinstance(energy, CentroidEnergy)
        if self.init is None:
            return energy.mu.clone()
        key = problem.key.fold("start", i)
        if not isinstance(self.init, str):
            init = self.init if isinstance(self.init, Tensor) else self.init(key)
            if init.shape != energy.mu.shape:
                raise ShapeError(
                    f"init must hold one row per centroid, {tuple(energy.mu.shape)}, got "
                    f"{tuple(init.shape)}"
                )
            return init.to(energy.mu)
        if drawer is None:
            drawer = drawer_of(problem.resident["x"], problem.sample_weight, key)
        drawer.reseed(key)
        return drawer.start(self.init, len(energy.mu)).to(energy.mu)

    def _limits(self, rows: CentroidRows) -> tuple[float, float]:
        """The sum of squared moves and the largest move at which a run rests."""
        if self.stop == "shift":
            return self.tol * rows.variance, -1.0
        return -1.0, self.tol

    def _together(
        self,
        rows: CentroidRows,
        runs: list[CentroidRun],
        energy: CentroidEnergy,
        monitor: Monitor,
        histories: list[History],
    ) -> bool:
        """Runs side by side until each has converged; True when a callback wants to stop."""
        threshold, furthest = self._limits(rows)
        active = list(zip(runs, histories, strict=True))
        if not monitor.callbacks:
            active = [pair for pair in active if not self._at_once(rows, *pair)]
        wish = False
        for _ in range(self.max_iter):
            if not active:
                break
            start = time.perf_counter()
            moved = rows.assign([run for run, _ in active])
            for changed, (run, history) in zip(moved, active, strict=True):
                square = rows.update(run)
                most = float(run.shift.max())
                history.objective.append(run.objective)
                history.extra.setdefault("max_shift", []).append(most)
                history.converged = changed == 0 or square <= threshold or most < furthest
                history.stop = self._why(history.converged, changed == 0)
                history.seconds.append(time.perf_counter() - start)
            best = min((run for run, _ in active), key=lambda run: run.objective)
            if monitor.callbacks:
                energy.mu.copy_(rows.centroids(best))
            wish = monitor.epoch(best.objective)
            active = [(run, history) for run, history in active if not history.converged]
            if wish:
                for _, history in active:
                    history.stop = "callback"
                break
        for run, history in zip(runs, histories, strict=True):
            history.extra["compared"] = [run.compared]
        return wish

    def _at_once(self, rows: CentroidRows, run: CentroidRun, history: History) -> bool:
        """A whole run in one compiled call, where rows are few; whether it was done."""
        start = time.perf_counter()
        done = rows.run(run, *self._limits(rows), self.max_iter)
        if done is None:
            return False
        history.objective, history.extra["max_shift"], history.converged, rest = done
        history.seconds = [(time.perf_counter() - start) / len(done[0])] * len(done[0])
        history.stop = self._why(history.converged, rest)
        return True

    def _why(self, converged: bool, rest: bool) -> str:
        if not converged:
            return "max_iter"
        return "labels" if rest else f"{self.stop} below tol={self.tol}"
