r"""The perceptron algorithm: one row at a time, move only on a mistake."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from groundstate.compute.weight_line.line import WeightLine
from groundstate.energy.basic import LinearEnergy
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.penalties.norms import L1, L2, ElasticNet
from groundstate.learn.rules.margins.perceptron import Perceptron
from groundstate.learn.solvers.svm.hinge.rows_numba import (
    F64,
    Rows,
    add_row,
    dot_row,
    inside,
    jit,
    matrix_of,
    rows_of,
    shuffle,
    stream,
    write,
)
from groundstate.learn.solvers.svm.smo.rows import canonical_rows
from groundstate.registry import solvers


@solvers.register(
    formula=r"W_y \mathrel{+}= \eta x,\ W_{\hat y} \mathrel{-}= \eta x",
    make=lambda energy: OnlinePerceptron(),
)
@dataclass(frozen=True)
class OnlinePerceptron:
    r"""Visit the rows in a fresh order each epoch; on a mistake :math:`\hat y \ne y`,
    :math:`W_y \leftarrow W_y + \eta w\,\tilde x,\; W_{\hat y} \leftarrow W_{\hat y} - \eta w\,\tilde x`.

    It is stochastic descent on :math:`e_y - \min_{y'} e_{y'}` with batches of one row of the weight
    line; of equal energies the first wins. With two classes each moves by half, so that their
    difference moves by :math:`\eta w\,\tilde x`. On separable rows the number of mistakes is finite.

    Parameters
    ----------
    eta : step size η; without a penalty it only scales weights that start at zero
    max_iter : epochs at most
    tol : stop when the mean loss of an epoch has not fallen by ``tol`` below the best ...
    patience : ... for this many epochs; ``tol=None`` runs until no mistake is left
    shuffle : a fresh order each epoch, or the canonical order every time
    average : end at the mean of the weights over all visits
    separate : more than two classes learn each against the rest, with mistakes of their own
    validation : share of the weight line that is held out and whose errors are watched instead
    """

    eta: float = 1.0
    max_iter: int = 1000
    tol: float | None = 1e-3
    patience: int = 5
    shuffle: bool = True
    average: bool = False
    separate: bool = False
    validation: float = 0.0

    def reason_against(self, problem: Problem) -> str | None:
        if not isinstance(problem.energy, LinearEnergy) or type(problem.rule) is not Perceptron:
            return "it is for a linear class energy with the perceptron rule"
        if not problem.is_resident or set(problem.names) != {"x", "y"}:
            return "it needs resident x and y"
        if _decay(problem) is None:
            return "its penalties are L1, L2 and ElasticNet on the weights"
        if bool((problem.resident["y"] < 0).any()):
            return "some targets are unknown"
        if problem.energy.W.device.type != "cpu":
            return "it visits one row at a time, which is for the CPU"
        return None

    def run(self, problem: Problem) -> History:
        history = History(solver="OnlinePerceptron")
        run = Run(problem, history, self.max_iter)
        energy = problem.energy
        assert isinstance(energy, LinearEnergy)
        table = _Table(problem, self)
        best, stale = np.inf, 0
        with Monitor(problem.callbacks, run) as monitor:
            while run.epoch < self.max_iter:
                start = time.perf_counter()
                loss, mistakes = table.epoch()
                table.store(energy)
                history.objective.append(loss)
                history.extra.setdefault("mistakes", []).append(float(mistakes))
                history.seconds.append(time.perf_counter() - start)
                if monitor.epoch(loss):
                    return history
                if mistakes == 0:
                    history.converged, history.stop = True, "no mistakes"
                    return history
                watched = table.error(energy) if self.validation else loss
                stale = 0 if self.tol is None or watched < best - self.tol else stale + 1
                best = min(best, watched)
                if stale >= self.patience:
                    history.converged, history.stop = True, f"tol={self.tol}"
                    return history
        history.stop = "max_iter"
        return history


def _decay(problem: Problem) -> tuple[float, float] | None:
    """Strengths of L2 and L1, where the penalty is made of those, on the weights alone."""
    penalty = problem.penalty
    if penalty is None:
        return 0.0, 0.0
    if not isinstance(penalty, L1 | L2 | ElasticNet) or penalty.select is not None:
        return None
    if penalty.intercept:
        return None
    strength = float(penalty.strength)
    if isinstance(penalty, ElasticNet):
        return strength * (1 - penalty.l1_ratio), strength * penalty.l1_ratio
    return (strength, 0.0) if isinstance(penalty, L2) else (0.0, strength)


class _Table:
    """Rows on their line, weights, and their running mean."""

    def __init__(self, problem: Problem, how: OnlinePerceptron) -> None:
        energy = problem.energy
        assert isinstance(energy, LinearEnergy)
        x, y = problem.resident["x"].detach(), problem.resident["y"]
        self.rows: Rows = rows_of(x)
        self.y, self.how, self.intercept = y.numpy(), how, energy.b is not None
        weights = problem.sample_weight
        self.held: NDArray[np.float64] | None = None
        if how.validation:
            line = WeightLine.of(matrix_of(x), y.numpy(), weights=weights)
            key = problem.key.fold("validation")
            kept, self.held = line.cut(key, how.validation, stratify=y.numpy())
            weights = torch.from_numpy(kept)
        # equal rows are one, and their order is that of their content, before it is shuffled
        self.index, self.weight = canonical_rows(matrix_of(x), y, weights)
        self.total = float(self.weight.sum())
        self.place = np.arange(len(self.index))
        self.random = stream(problem.key.fold("visits"))
        W = energy.W.detach().double().numpy()
        b = np.zeros(len(W)) if energy.b is None else energy.b.detach().double().numpy()
        self.theta: F64 = np.ascontiguousarray(np.column_stack([W, b]))  # (K, d+1)
        decay = _decay(problem) or (0.0, 0.0)
        self.decay = np.array(decay) / self.total
        self.sums = np.zeros_like(self.theta if how.average else self.theta[:0])
        self.clock = np.zeros(1)

    def epoch(self) -> tuple[float, int]:
        """Visit every row once: mean loss and mistakes."""
        if self.how.shuffle:
            shuffle(self.place, len(self.place), self.random)
        separate = self.how.separate and len(self.theta) > 2
        summed, mistakes = perceptron_epoch(
            self.rows, self.y, self.index, self.weight, self.place, self.theta, self.how.eta,
            self.intercept, separate, self.decay, self.sums, self.clock,
        )  # fmt: skip
        return float(summed) / self.total, int(mistakes)

    def _mean(self) -> F64:
        if not len(self.sums) or self.clock[0] == 0:
            return self.theta
        if self.decay.any():
            return self.sums / self.clock[0]
        return self.theta - self.sums / self.clock[0]

    def store(self, energy: LinearEnergy) -> None:
        theta = self._mean()
        write(energy.W, theta[:, :-1])
        if energy.b is not None:
            write(energy.b, theta[:, -1])

    def error(self, energy: LinearEnergy) -> float:
        """Share of the held-out weight on the wrong side."""
        assert self.held is not None
        wrong = _wrong(self.rows, self.y, self.held, self._mean(), self.intercept)
        return float(wrong) / max(float(self.held.sum()), 1e-300)


@inside
def _score(x: Any, sparse: Any, i: int, theta: Any, intercept: bool, score: Any) -> int:
    """Scores −e of all classes; which is the highest, the first of equals."""
    winner = 0
    for k in range(len(theta)):
        score[k] = theta[k, -1] if intercept else 0.0
        score[k] += dot_row(x, sparse, i, theta[k])
        if score[k] > score[winner]:
            winner = k
    return winner


@jit
def _wrong(rows: Any, y: Any, w: Any, theta: Any, intercept: bool) -> float:
    x, sparse = rows
    total, score = 0.0, np.empty(len(theta))
    for i in range(len(y)):
        if w[i] > 0.0 and _score(x, sparse, i, theta, intercept, score) != y[i]:
            total += w[i]
    return total


@inside
def _push(x: Any, sparse: Any, i: int, by: float, theta: Any, intercept: bool) -> None:
    add_row(x, sparse, i, by, theta)
    if intercept:
        theta[-1] += by


@jit
def perceptron_epoch(
    rows: Any, y: Any, index: Any, w: Any, place: Any, theta: Any, eta: float, intercept: bool,
    separate: bool, decay: Any, sums: Any, clock: Any,
) -> tuple[float, int]:  # fmt: skip
    """One pass; the summed loss and the number of mistakes.

    ``sums`` collects what the mean of θ over the visits needs: θ itself where it decays, otherwise
    each change times the visits before it.
    """
    x, sparse = rows
    classes, d = theta.shape[0], theta.shape[1] - 1
    score = np.empty(classes)
    decays = decay[0] > 0.0 or decay[1] > 0.0
    lazily = len(sums) > 0 and not decays
    total, mistakes = 0.0, 0
    for position in range(len(place)):
        i, weight = index[place[position]], w[place[position]]
        own, step = y[i], eta * weight
        winner = _score(x, sparse, i, theta, intercept, score)
        if separate:
            for k in range(classes):
                t = 1.0 if k == own else -1.0
                if t * score[k] <= 0.0:
                    mistakes += 1
                    total -= weight * t * score[k]
                    _push(x, sparse, i, t * step, theta[k], intercept)
                    if lazily:
                        _push(x, sparse, i, t * step * clock[0], sums[k], intercept)
        elif winner != own:
            mistakes += 1
            total += weight * (score[winner] - score[own])
            by = 0.5 * step if classes == 2 else step
            _push(x, sparse, i, by, theta[own], intercept)
            _push(x, sparse, i, -by, theta[winner], intercept)
            if lazily:
                _push(x, sparse, i, by * clock[0], sums[own], intercept)
                _push(x, sparse, i, -by * clock[0], sums[winner], intercept)
        clock[0] += weight
        if decays:
            keep, off = max(0.0, 1.0 - step * decay[0]), step * decay[1]
            for k in range(classes):
                for j in range(d):
                    v = keep * theta[k, j]
                    theta[k, j] = max(v - off, 0.0) if v > 0.0 else min(v + off, 0.0)
            for k in range(len(sums)):
                for j in range(d + 1):
                    sums[k, j] += weight * theta[k, j]
    return total, mistakes
