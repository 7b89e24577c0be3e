r"""The perceptron algorithm: one row at a time, move only on a mistake."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import torch
from numpy.typing import NDArray

from groundstate.compute.line import WeightLine
from groundstate.energy.reference import LinearEnergy
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.fit import solver_for
from groundstate.learn.rules.perceptron import Perceptron
from groundstate.registry import solvers


@solvers.register(
    formula=r"W_y \mathrel{+}= \eta x,\ W_{\hat y} \mathrel{-}= \eta x",
    make=lambda energy: OnlinePerceptron(),
)
@solver_for(LinearEnergy, Perceptron)
@dataclass(frozen=True)
class OnlinePerceptron:
    r"""Visit the rows in a fresh order each epoch; on a mistake :math:`\hat y \ne y`,
    :math:`W_y \leftarrow W_y + \eta w\,\tilde x,\; W_{\hat y} \leftarrow W_{\hat y} - \eta w\,\tilde x`.

    It is stochastic descent on :math:`e_y - \min_{y'} e_{y'}` with batches of one row of the weight
    line. On separable data the number of mistakes is finite.

    Parameters
    ----------
    eta : step size η; it only scales the weights when they start at zero
    max_iter : epochs at most
    tol : stop when the mean loss of an epoch has not fallen by ``tol`` below the best ...
    patience : ... for this many epochs; ``tol=None`` runs until no mistake is left
    shuffle : a fresh order each epoch, or the canonical order every time
    """

    eta: float = 1.0
    max_iter: int = 1000
    tol: float | None = 1e-3
    patience: int = 5
    shuffle: bool = True

    def reason_against(self, problem: Problem) -> str | None:
        if not isinstance(problem.energy, LinearEnergy) or type(problem.rule) is not Perceptron:
            return "it is for a linear class energy with the perceptron rule"
        if not problem.is_resident or set(problem.names) != {"x", "y"}:
            return "it needs resident x and y"
        if problem.penalty is not None:
            return "it has no penalty"
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
        x, y = problem.resident["x"].double().numpy(), problem.resident["y"].numpy()
        line = WeightLine.of(x, y, weights=problem.sample_weight)
        theta = _augmented(energy)
        best, stale = np.inf, 0
        with Monitor(problem.callbacks, run) as monitor:
            while run.epoch < self.max_iter:
                start = time.perf_counter()
                key = problem.key.fold("epoch", run.epoch if self.shuffle else 0)
                batches = line.batches(key, line.total)  # the whole line: rows once, merged
                weights = batches.weights
                w = np.ones(len(batches.rows)) if weights is None else weights.numpy()
                order = batches.rows.numpy()
                summed, mistakes = _epoch(theta, x, y, order, w, self.eta, energy.b is not None)
                _write(energy, theta)
                loss = float(summed) / line.total
                history.objective.append(loss)
                history.extra.setdefault("mistakes", []).append(float(mistakes))
                history.seconds.append(time.perf_counter() - start)
                if monitor.epoch(loss):
                    return history
                if mistakes == 0:
                    history.converged, history.stop = True, "no mistakes"
                    return history
                stale = 0 if self.tol is None or loss < best - self.tol else stale + 1
                best = min(best, loss)
                if stale >= self.patience:
                    history.converged, history.stop = True, f"tol={self.tol}"
                    return history
        history.stop = "max_iter"
        return history


def _augmented(energy: LinearEnergy) -> NDArray[np.float64]:
    W = energy.W.detach().double().numpy()
    b = np.zeros(len(W)) if energy.b is None else energy.b.detach().double().numpy()
    return np.ascontiguousarray(np.column_stack([W, b]))  # (K, d+1)


@torch.no_grad()
def _write(energy: LinearEnergy, theta: NDArray[np.float64]) -> None:
    energy.W.copy_(torch.from_numpy(theta[:, :-1].copy()))
    if energy.b is not None:
        energy.b.copy_(torch.from_numpy(theta[:, -1].copy()))


@numba.njit(cache=True)
def _epoch(
    theta: Any, x: Any, y: Any, order: Any, w: Any, eta: float, intercept: bool
) -> tuple[float, int]:
    classes, d = theta.shape[0], theta.shape[1] - 1
    score = np.empty(classes)
    total, mistakes = 0.0, 0
    for position in range(len(order)):
        i = order[position]
        for k in range(classes):
            s = theta[k, d]
            for j in range(d):
                s += theta[k, j] * x[i, j]
            score[k] = s
        # lowest energy is highest score; ties count as mistakes against the target
        winner = 0 if y[i] != 0 else 1
        for k in range(classes):
            if k != y[i] and score[k] > score[winner]:
                winner = k
        if score[winner] < score[y[i]]:
            continue
        mistakes += 1
        total += w[position] * (score[winner] - score[y[i]])
        step = eta * w[position]
        for j in range(d):
            theta[y[i], j] += step * x[i, j]
            theta[winner, j] -= step * x[i, j]
        if intercept:
            theta[y[i], d] += step
            theta[winner, d] -= step
    return total, mistakes
