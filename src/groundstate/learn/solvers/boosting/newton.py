r"""Newton boosting on histograms: one small tree per step, fitted to gradients and hessians."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numba
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.random import U64, Key, mix64
from groundstate.compute.thread_policy import given_threads
from groundstate.compute.weight_line.hashing import row_hash
from groundstate.compute.weight_line.line import WeightLine
from groundstate.energy.trees.boosted import BoostedClassEnergy, BoostedEnergy
from groundstate.energy.trees.nodes import Tree, packed
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.rules.softmin import SoftMin
from groundstate.learn.solvers.boosting.histogram.device import DeviceGrower
from groundstate.learn.solvers.boosting.histogram.device_rows import device_bins
from groundstate.learn.solvers.boosting.histogram.grower import Grower, Limits
from groundstate.learn.solvers.boosting.losses import Loss
from groundstate.learn.solvers.trees.bins_numba import Bins
from groundstate.registry import solvers

_settings: Any = numba.config
_THREADS = threading.Lock()  # compiled threads serve one fit at a time; others run alone


@dataclass(frozen=True)
class Stopping:
    """Hold a share of the rows out and stop when it has not improved for some steps.

    ``score`` judges ``(energy, rows, weights)``, high is good; None takes minus the loss. ``rows``
    (x, y and their weights) are held-out rows of their own in the place of a share.
    """

    share: float | None = 0.1  # None: watch the training rows
    patience: int = 10
    tol: float = 1e-7
    score: Callable[[Any, NDArray[Any], NDArray[Any] | None], float] | None = None
    rows: tuple[Tensor, Tensor, Tensor] | None = None


@solvers.register(
    formula=r"F \leftarrow F - \nu\,G_\ell / (H_\ell + \lambda)",
    make=lambda energy: HistogramBoosting(max_iter=10, limits=Limits(min_weight=5.0)),
)
@dataclass(frozen=True)
class HistogramBoosting:
    r"""Add trees :math:`F \leftarrow F + \nu v_{\ell(x)}` with
    :math:`v_\ell = -G_\ell/(H_\ell + \lambda)`, each grown greedily on binned columns.

    Parameters
    ----------
    max_iter : steps; a step is one tree per score
    learning_rate : ν
    limits : of one tree
    max_bins : bins of a column, NaN not counted
    categories : (d,) number of categories of each column, 0 for numbers
    stopping : early stopping, None for none
    watch : whether to record the training loss of every step
    continued : go on from the trees that the energy has
    factors : (k,) what gradients of a class count, None for one; rows are counted by their weight
    goss : shares (a, b) of gradient-based one-side sampling: a tree sees the rows of largest
        gradients, a of the weight, and b of it from the others, which count (1 − a)/b times
    backend : ``"torch"`` grows trees where x is, ``"numba"`` on the CPU; ``"auto"`` takes torch on
        a GPU. Columns of categories are always cut on the CPU.
    """

    max_iter: int = 100
    learning_rate: float = 0.1
    limits: Limits = field(default_factory=Limits)
    max_bins: int = 255
    categories: tuple[int, ...] | None = None
    stopping: Stopping | None = None
    watch: bool = False
    continued: bool = False
    goss: tuple[float, float] | None = None
    factors: tuple[float, ...] | None = None
    backend: Literal["auto", "numba", "torch"] = "auto"

    def on_device(self, x: Tensor) -> bool:
        """Whether trees grow where ``x`` is."""
        if self.categories is not None and any(self.categories):
            return False
        return self.backend == "torch" or (self.backend == "auto" and x.device.type != "cpu")

    def reason_against(self, problem: Problem) -> str | None:
        energy, rule = problem.energy, problem.rule
        if not isinstance(energy, BoostedClassEnergy | BoostedEnergy):
            return "it grows the trees of a boosted energy"
        if isinstance(energy, BoostedClassEnergy) and not isinstance(rule, SoftMin):
            return "classes are learned by SoftMin"
        if isinstance(energy, BoostedEnergy) and not rule.contrast_is_constant(energy):
            return f"the contrast of {type(rule).__name__} depends on θ"
        if not problem.is_resident or set(problem.names) != {"x", "y"}:
            return "it needs resident x and y"
        if problem.penalty is not None:
            return "its penalty is Limits(l2=...)"
        return None

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        history = History(solver="HistogramBoosting", stop="max_iter")
        fit = _Fit(self, problem)
        with Monitor(problem.callbacks, Run(problem, history, self.max_iter)) as monitor:
            threads = max(1, min(given_threads(), int(_settings.NUMBA_NUM_THREADS)))
            alone = threads == 1 or not _THREADS.acquire(blocking=False)
            try:
                before = numba.get_num_threads()
                numba.set_num_threads(1 if alone else threads)
                fit.loop(monitor, history, 1 if alone else threads)
                numba.set_num_threads(before)
            finally:
                if not alone:
                    _THREADS.release()
        return history


class _Fit:
    """One run: rows, scores, trees."""

    def __init__(self, solver: HistogramBoosting, problem: Problem) -> None:
        self.solver, self.problem, self.key = solver, problem, problem.key
        self.energy: Any = problem.energy
        x, y = problem.resident["x"], problem.resident["y"]
        weight = None if problem.sample_weight is None else problem.sample_weight.cpu().double()
        stopping = solver.stopping
        extra = None if stopping is None else stopping.rows
        if extra is not None:  # they stand behind the others, without weight in training
            w = torch.ones(len(x), dtype=torch.float64) if weight is None else weight
            weight = torch.cat([w, torch.zeros(len(extra[0]), dtype=torch.float64)])
            x, y = torch.cat([x, extra[0]]), torch.cat([y, extra[1]])
        self.all_x = x
        self.there = solver.on_device(x)
        self.x = x if self.there else x.cpu().contiguous()
        y = y if self.there else y.cpu()
        self.y = y.double()[:, 0] if y.is_floating_point() else y
        self.held: NDArray[np.float64] | None = None
        self.train = None if weight is None else weight.numpy()
        if extra is not None:
            held = extra[2].cpu().double()
            self.held = torch.cat([torch.zeros(len(x) - len(held)).double(), held]).numpy()
        elif stopping is not None and stopping.share is not None:
            target = self.y.cpu().numpy()
            line = WeightLine.of(self.x.cpu().numpy(), target, weights=self.train)
            labels = None if y.is_floating_point() else target
            parts = line.cut(self.key.fold("validation"), stopping.share, stratify=labels)
            self.train, self.held = parts
            if not self.held.any() or not self.train.any():
                self.train, self.held = None if weight is None else weight.numpy(), None
        if self.train is not None and bool((self.train == 1.0).all()):
            self.train = None
        own = self.energy.point_loss if isinstance(self.energy, BoostedEnergy) else None
        b: Any = self.energy.b
        self.loss = Loss(own, self.y, len(b))
        self.trees: list[Tree] = []
        self.factor: Tensor | None = None
        if solver.factors is not None:
            self.factor = torch.tensor(solver.factors, dtype=torch.float64).to(self.y.device)[
                self.y
            ]
        self.hash: U64 | None = None
        if solver.goss is not None:
            self.hash = row_hash(self.x.cpu().numpy(), self.y.cpu().numpy())

    def _tensor(self, part: NDArray[np.float64] | None) -> Tensor | None:
        return None if part is None else torch.from_numpy(part).to(self.y.device)

    def _loss_weight(self, part: NDArray[np.float64] | None) -> Tensor | None:
        """What rows count in the loss: their weight times the factor of their class."""
        w = self._tensor(part)
        return w if self.factor is None else self.factor if w is None else w * self.factor

    def _grower(self, w: Tensor | None, threads: int) -> Any:
        solver = self.solver
        if self.there:
            bins = device_bins(self.x, w, solver.max_bins)
            return DeviceGrower(self.x, bins, w, solver.limits)
        X: NDArray[Any] = self.x.numpy()
        categories = None if solver.categories is None else np.array(solver.categories)
        bins = Bins.of(X, self.train, solver.max_bins, categories, threads=threads)
        return Grower(X, bins, self.train, solver.limits, threads)

    def loop(self, monitor: Monitor, history: History, threads: int) -> None:
        solver, start = self.solver, time.perf_counter()
        w = self._tensor(self.train)
        nodes = self.energy.nodes
        done = nodes.n_trees // self.loss.outputs if int(nodes.column[0]) >= 0 else 0
        if solver.continued and done:
            self.trees = [nodes.tree(t) for t in range(nodes.n_trees)]
            F = self.energy.raw(self.all_x).double().to(self.y.device)
        else:
            done, b = 0, self.loss.start(self._loss_weight(self.train))
            self.energy.b.copy_(torch.from_numpy(b))
            F = torch.from_numpy(np.tile(b, (len(self.x), 1))).to(self.y.device)
        F = F.T.contiguous().T  # scores of a class stand together
        grower = self._grower(w, threads)
        w = self._loss_weight(self.train)
        self._judge(F, history, w)
        for step in range(done, solver.max_iter):
            self._step(F, grower, step)
            history.seconds.append(time.perf_counter() - start)
            stop = self._judge(F, history, w)
            objective = float("nan")
            if monitor.callbacks:
                objective = self.loss.mean(F, w)
                history.objective.append(objective)
                nodes.set(self.trees)
            if monitor.epoch(objective) or stop:
                history.converged = stop
                break
        nodes.set(self.trees or [_stump(self.loss.outputs)])
        history.n_iter = len(self.trees) // self.loss.outputs

    def _step(self, F: Tensor, grower: Any, step: int) -> None:
        pairs = self.loss.gradients(F)
        if self.factor is not None:
            pairs = [(g * self.factor, h * self.factor) for g, h in pairs]
        live, key = None, None
        if self.solver.goss is not None or self.solver.limits.columns < 1:  # else nothing is drawn
            key = self.key.fold("tree", step)
        if self.solver.goss is not None and key is not None:
            live, factor = self._one_side(pairs, key)
            pairs = [(g * factor, h * factor) for g, h in pairs]
        for c, (g, h) in enumerate(pairs):
            tree, spans = grower.grow(g, h, 0 if key is None else key.fold(c).low, live)
            if self.loss.renews:
                self._renew(tree, spans, grower.rows, F[:, 0])
            tree.value *= self.solver.learning_rate
            tree.column = c
            self.trees.append(tree)
            grower.add(tree, spans, F[:, c])
        self.trees[-len(pairs) :] = packed(self.trees[-len(pairs) :])

    def _one_side(self, pairs: list[tuple[Tensor, Tensor]], key: Key) -> tuple[Any, Tensor]:
        """Rows that a tree sees, and how often they count.

        The others are drawn by their content: equal rows share their fate, so that a row of weight
        2 is two rows here too.
        """
        assert self.solver.goss is not None and self.hash is not None
        a, b = self.solver.goss
        size = torch.stack([g.abs() for g, _ in pairs]).sum(0).cpu().numpy()
        weight = np.ones(len(size)) if self.train is None else self.train
        order = np.argsort(-size, kind="stable")
        mass = np.cumsum(weight[order])
        mark = int(np.searchsorted(mass, a * mass[-1] * (1 - 1e-12)))
        top = size >= size[order[min(mark, len(size) - 1)]]
        drawn = mix64(self.hash ^ np.uint64(key.fold("one side").low))
        rest = (drawn >> np.uint64(11)) * 2.0**-53 < b / (1 - a)
        live = np.flatnonzero((top | rest) & (weight > 0)).astype(np.int32)
        return live, torch.from_numpy(np.where(top, 1.0, (1 - a) / b)).to(self.y.device)

    def _renew(self, tree: Tree, spans: Any, rows: Any, f: Tensor) -> None:
        residual = (self.y - f).cpu().numpy()
        order = rows.cpu().numpy() if isinstance(rows, Tensor) else rows
        for v, lo, hi in spans:
            own = order[lo:hi]
            w = None if self.train is None else self.train[own]
            tree.value[v, 0] = self.loss.leaf_value(residual[own], w)

    def _judge(self, F: Tensor, history: History, w: Tensor | None) -> bool:
        """Record scores (high is good); True when they have not improved for long enough."""
        stopping = self.solver.stopping
        if stopping is None and not self.solver.watch:
            return False
        held = None if self.held is None else self._loss_weight(self.held)
        if stopping is None or stopping.score is None:
            found: tuple[float | None, ...] = (
                -self.loss.mean(F, w),
                None if held is None else -self.loss.mean(F, held),
            )
        else:
            self.energy.nodes.set(self.trees or [_stump(self.loss.outputs)])
            found = tuple(
                None if part is None else self._scored(part)
                for part in (np.ones(len(self.x)) if self.train is None else self.train, self.held)
            )
        for name, value in zip(("train", "validation"), found):
            if value is not None:
                history.extra.setdefault(name, []).append(value)
        if stopping is None:
            return False
        seen = history.extra.get("validation", history.extra["train"])
        if len(seen) <= stopping.patience:
            return False
        reference = seen[-stopping.patience - 1] + stopping.tol
        stop = not any(value > reference for value in seen[-stopping.patience :])
        if stop:
            history.stop = f"no improvement in {stopping.patience} steps"
        return stop

    def _scored(self, part: NDArray[np.float64]) -> float:
        assert self.solver.stopping is not None and self.solver.stopping.score is not None
        rows = np.flatnonzero(part)
        return self.solver.stopping.score(self.energy, rows, part[rows])


def _stump(outputs: int) -> Tree:
    """A tree of one leaf of value zero."""
    one = np.zeros(1)
    none = np.full(1, -1)
    return Tree(none, one, none, none, np.zeros(1, bool), np.zeros((1, 1)), one, one,
                np.zeros(1, np.int64), {}, 0)  # fmt: skip
