r"""Stochastic descent on a linear score, one row at a time, for any loss of the table."""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from groundstate.compute.weight_line.line import WeightLine
from groundstate.energy.basic import LinearEnergy
from groundstate.energy.linear.loss import LinearLossEnergy
from groundstate.errors import NotConverged
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.rules.margins.one_vs_rest import OneVsRestLoss
from groundstate.learn.solvers.perceptron_numba import _decay as decay_of
from groundstate.learn.solvers.svm.hinge.rows_numba import (
    F64,
    add_row,
    dot_row,
    inside,
    jit,
    matrix_of,
    rows_of,
    shuffle,
    square_of,
    store,
    stream,
    write,
)
from groundstate.learn.solvers.svm.smo.rows import canonical_rows
from groundstate.math.losses import PointLoss, ResidualLoss
from groundstate.math.losses.pointwise_numba import point
from groundstate.registry import solvers

RATES = {"constant": 0, "adaptive": 0, "optimal": 1, "invscaling": 2, "pa1": 3, "pa2": 4}
BIG = 1e12  # largest slope of a loss that a step follows


@dataclass
class State:
    """What goes on from one run to the next: steps seen, sums of the mean, the paid L1 penalty."""

    t: float = 1.0
    theta: F64 = field(default_factory=lambda: np.zeros((0, 0)))  # (problems, features + 1)
    sums: F64 = field(default_factory=lambda: np.zeros((0, 0)))
    paid: F64 = field(default_factory=lambda: np.zeros((0, 0)))
    owed: F64 = field(default_factory=lambda: np.zeros(0))


@solvers.register(
    formula=r"\theta \leftarrow \theta - \eta_t(w\,\ell'\,\tilde x + \alpha\theta)",
    make=lambda energy: OnlineDescent(),
)
@dataclass(frozen=True)
class OnlineDescent:
    r"""Visit the rows in a fresh order each epoch; every visit moves
    :math:`\theta \leftarrow (1 - \eta_t\alpha)\theta - \eta_t w\,\ell'(\theta\tilde x, y)\,\tilde x`.

    Batches are single rows of the weight line: equal rows are one, so that a weight of 2 is the row
    twice. L1 acts by what each weight still owes of the penalty (Tsuruoka's truncation).

    Parameters
    ----------
    rate : "optimal" :math:`\eta = 1/\alpha(t_0 + t)` with Bottou's t₀, "invscaling"
        :math:`\eta_0/t^p`, "constant", "adaptive" (divided by 5 where the loss stalls), "pa1" or
        "pa2" (passive-aggressive)
    eta0, power : η₀ and p
    max_iter : epochs at most
    tol : stop when the mean loss of an epoch has not fallen by ``tol`` below the best ...
    patience : ... for this many epochs; None goes on to the end
    shuffle : a fresh order each epoch
    average : end at the mean of θ, over all visits or from this many on
    validation : share of the weight line that is held out and whose score is watched instead
    state : of an earlier run that this one goes on from
    quiet : whether stopping at ``max_iter`` is what was asked for
    """

    rate: str = "invscaling"
    eta0: float = 0.01
    power: float = 0.25
    max_iter: int = 1000
    tol: float | None = 1e-3
    patience: int = 5
    shuffle: bool = True
    average: bool | int = False
    validation: float = 0.0
    state: State | None = None
    quiet: bool = False

    def reason_against(self, problem: Problem) -> str | None:
        energy, rule = problem.energy, problem.rule
        if isinstance(energy, LinearEnergy):
            if type(rule) is not OneVsRestLoss:
                return "classes are learned by OneVsRestLoss"
        elif not isinstance(energy, LinearLossEnergy):
            return "it is for linear scores"
        if not problem.is_resident or set(problem.names) != {"x", "y"}:
            return "it needs resident x and y"
        if decay_of(problem) is None:
            return "its penalties are L1, L2 and ElasticNet on the weights"
        if problem.resident["x"].device.type != "cpu":
            return "it visits one row at a time, which is for the CPU"
        return None

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        history = History(solver="OnlineDescent")
        run = Run(problem, history, self.max_iter)
        visits = _Visits(problem, self)
        best, stale, eta = math.inf, 0, self.eta0
        alone = bool(problem.callbacks) or self.validation > 0 or self.rate == "adaptive"
        with Monitor(problem.callbacks, run) as monitor:
            while run.epoch < self.max_iter and not history.stop:
                start = time.perf_counter()
                losses = visits.epochs(eta, 1 if alone else self.max_iter)
                if problem.callbacks:
                    visits.store()
                seconds = (time.perf_counter() - start) / len(losses)
                history.objective += losses.tolist()
                history.seconds += [seconds] * len(losses)
                run.epoch += len(losses) - 1
                if monitor.epoch(history.objective[-1]):
                    break
                if not np.isfinite(losses).all():
                    raise FloatingPointError(
                        "the weights overflowed in stochastic descent; scale the inputs, e.g. "
                        "with StandardScaler, or lower eta0"
                    )
                for watched in [visits.error()] if self.validation else losses.tolist():
                    stale = 0 if self.tol is None or watched < best - self.tol else stale + 1
                    best = min(best, watched)
                if stale >= self.patience and not history.stop:
                    if self.rate != "adaptive" or eta <= 1e-6:
                        history.converged, history.stop = True, f"tol={self.tol}"
                    eta, stale = eta / 5, 0
            visits.store()
        history.extra["t"] = [visits.state.t]
        history.stop = history.stop or "max_iter"
        if history.stop == "max_iter" and self.tol is not None and not self.quiet:
            warnings.warn(
                f"stochastic descent used all {self.max_iter} epochs before the loss settled to "
                f"tol={self.tol}; raise max_iter or scale the inputs",
                NotConverged,
                stacklevel=3,
            )
        return history


class _Visits:
    """Rows on their line, one score for each separate problem, and their running means."""

    def __init__(self, problem: Problem, how: OnlineDescent) -> None:
        energy = self.energy = problem.energy
        assert isinstance(energy, LinearEnergy | LinearLossEnergy)
        x, y = problem.resident["x"].detach(), problem.resident["y"].detach()
        self.rows, self.how, self.intercept = rows_of(x), how, energy.b is not None
        classes = isinstance(energy, LinearEnergy)
        rule = problem.rule
        own_loss: Any = rule.loss if isinstance(rule, OneVsRestLoss) else energy.loss
        self.loss: PointLoss = own_loss
        self.y: NDArray[Any] = y.numpy() if classes else y.double().numpy()[:, 0]
        weights, self.held = problem.sample_weight, None
        if how.validation:
            line = WeightLine.of(matrix_of(x), self.y, weights=weights)
            labels = self.y if classes else None
            kept, self.held = line.cut(
                problem.key.fold("validation"), how.validation, stratify=labels
            )
            weights = torch.from_numpy(kept)
        self.index, self.weight = canonical_rows(matrix_of(x), y, weights)
        self.total = float(self.weight.sum())
        self.place = np.arange(len(self.index))
        self.random = stream(problem.key.fold("visits"))
        self.targets = self.y[None]  # (problems, n)
        if classes:
            k = energy.W.shape[0]
            which = np.array([1] if k == 2 else range(k))[:, None]
            own = (self.y == which).astype(np.float64)
            self.targets = 2 * own - 1 if isinstance(self.loss, ResidualLoss) else own
        l2, l1 = decay_of(problem) or (0.0, 0.0)
        if classes and energy.W.shape[0] == 2:
            l2 *= 0.5  # W₀ = −W₁: both squares are half that of the difference
        self.alpha = np.array([l2, l1]) / problem.total_weight
        self.first = self._first() if how.rate == "optimal" else 0.0
        self.state = State() if how.state is None else how.state
        if not len(self.state.theta):
            W = energy.W.detach().double().numpy()
            b = np.zeros(len(W)) if energy.b is None else energy.b.detach().double().numpy()
            line_ = np.column_stack([W, b])
            line_ = line_[1:] - line_[:1] if classes and len(W) == 2 else line_
            self.state.theta = np.array(line_, order="C")
            self.state.sums, self.state.paid = np.zeros((2, *line_.shape))
            self.state.owed = np.zeros(len(line_))

    def _first(self) -> float:
        """Bottou's t₀: the first step is as long as a typical weight."""
        alpha = float(self.alpha.sum()) or 1e-4
        typical = math.sqrt(1 / math.sqrt(alpha))
        y = 1.0
        eta = torch.tensor([-typical], dtype=torch.float64)
        slope = abs(float(self.loss.gradient(eta, torch.full_like(eta, y))))
        return 1 / (alpha * typical / max(1.0, slope))

    def epochs(self, eta: float, most: int) -> F64:
        """Visit every row once an epoch, until the loss settles; mean losses before each step."""
        how, state = self.how, self.state
        assert self.loss.compiled is not None
        after = float(how.average) if how.average is not True else 1.0
        losses = np.empty(most)
        done, state.t = online_epochs(
            losses, self.total, -math.inf if how.tol is None else how.tol, how.patience, how.shuffle,
            self.random, self.rows, self.targets, self.index, self.weight, self.place, state.theta,
            state.sums, state.paid, state.owed, state.t, *self.loss.compiled, RATES[how.rate], eta,
            how.power, self.first, self.alpha[0], self.alpha[1], self.intercept,
            0.01 if self.rows.sparse is not None else 1.0,  # intercepts of sparse rows move every time
            after if how.average else 0.0,
        )  # fmt: skip
        return losses[:done]

    def mean(self) -> F64:
        after = 1.0 if self.how.average is True else float(self.how.average)
        seen = self.state.t - after
        if not self.how.average or seen <= 0:
            return self.state.theta
        return self.state.sums / seen

    def store(self) -> None:
        thetas = self.mean()
        if isinstance(self.energy, LinearEnergy):
            store(self.energy, thetas)
            return
        assert isinstance(self.energy, LinearLossEnergy)
        write(self.energy.W, thetas[0][None, :-1])
        if self.energy.b is not None:
            write(self.energy.b, thetas[0][-1:])

    def error(self) -> float:
        """Of the held-out rows: the share that is wrong, or the share of variance not explained."""
        assert self.held is not None
        total = max(float(self.held.sum()), 1e-300)
        scores = np.stack([line_scores(self.rows, theta, len(self.y)) for theta in self.mean()])
        if isinstance(self.energy, LinearEnergy):
            guess = scores[0] > 0 if len(scores) == 1 else scores.argmax(0)
            return float(self.held @ (guess != self.y)) / total
        spread = self.held @ (self.y - self.held @ self.y / total) ** 2
        return float(self.held @ (self.y - scores[0]) ** 2) / max(float(spread), 1e-300)


@jit
def line_scores(rows: Any, theta: Any, n: int) -> Any:
    """Scores of all rows, ``(n,)``."""
    x, sparse = rows
    out = np.empty(n)
    for i in range(n):
        out[i] = dot_row(x, sparse, i, theta) + theta[-1]
    return out


@inside
def online_epoch(
    rows: Any, y: Any, index: Any, w: Any, place: Any, theta: Any, sums: Any, paid: Any,
    owed: float, t: float, code: int, parameter: float, link: int, k: float, rate: int,
    eta0: float, power: float, first: float, l2: float, l1: float, intercept: bool, slow: float,
    average: float,
) -> tuple[float, float, float]:  # fmt: skip
    """One pass; the summed loss, the clock, and the L1 penalty that every weight owes by now."""
    x, sparse = rows
    d = len(theta) - 1
    total, scale, eta = 0.0, 1.0, eta0
    for position in range(len(place)):
        i, weight = index[place[position]], w[place[position]]
        score = scale * dot_row(x, sparse, i, theta) + theta[d]
        loss, slope, _ = point(code, parameter, link, k, score, y[i])
        total += weight * loss
        if rate == 1:
            eta = 1.0 / ((l2 + l1 if l2 + l1 > 0.0 else 1e-4) * (first + t - 1.0))
        elif rate == 2:
            if power == 0.25:  # roots are quicker than powers
                eta = eta0 / math.sqrt(math.sqrt(t))
            else:
                eta = eta0 / (math.sqrt(t) if power == 0.5 else t**power)
        step = -eta * min(max(slope, -BIG), BIG) * weight
        if rate >= 3:
            square = square_of(x, sparse, i)
            side = 1.0 if slope < 0.0 else -1.0 if slope > 0.0 else 0.0
            if rate == 3:
                step = side * min(eta0, loss / square) * weight if square > 0.0 else 0.0
            else:
                step = side * loss / (square + 0.5 / eta0) * weight
        elif l2 > 0.0:
            keep = max(0.0, 1.0 - eta * l2)
            scale *= keep if weight == 1.0 else keep**weight
        if scale < 1e-9:
            for j in range(d):
                theta[j] *= scale
            scale = 1.0
        if step != 0.0:
            add_row(x, sparse, i, step / scale, theta)
            if intercept:
                theta[d] += slow * step
        if l1 > 0.0 and rate < 3:
            owed += eta * l1 * weight
            for j in range(d):
                before = scale * theta[j]
                if before > 0.0:
                    after = max(0.0, before - (owed + paid[j]))
                elif before < 0.0:
                    after = min(0.0, before + (owed - paid[j]))
                else:
                    continue
                paid[j] += after - before
                theta[j] = after / scale
        if average > 0.0 and t >= average:
            for j in range(d):
                sums[j] += weight * scale * theta[j]
            sums[d] += weight * theta[d]
        t += weight
    for j in range(d):
        theta[j] *= scale
    return total, t, owed


@jit
def online_epochs(
    losses: Any, all_weight: float, tol: float, patience: int, shuffled: bool, random: Any, rows: Any,
    y: Any, index: Any, w: Any, place: Any, theta: Any, sums: Any, paid: Any, owed: Any, t: float,
    code: int, parameter: float, link: int, k: float, rate: int, eta0: float, power: float,
    first: float, l2: float, l1: float, intercept: bool, slow: float, average: float,
) -> tuple[int, float]:  # fmt: skip
    """Epochs of all problems until no loss in ``patience`` epochs fell by ``tol``: how many, the clock."""
    best, stale, end = math.inf, 0, t
    for epoch in range(len(losses)):
        if shuffled:
            shuffle(place, len(place), random)
        total = 0.0
        for p in range(len(theta)):
            summed, end, owed[p] = online_epoch(
                rows, y[p], index, w, place, theta[p], sums[p], paid[p], owed[p], t, code, parameter,
                link, k, rate, eta0, power, first, l2, l1, intercept, slow, average,
            )  # fmt: skip
            total += summed
        t = end
        losses[epoch] = total / all_weight
        stale = 0 if losses[epoch] < best - tol else stale + 1
        best = min(best, losses[epoch])
        if stale >= patience or not math.isfinite(total):
            return epoch + 1, t
    return len(losses), t
