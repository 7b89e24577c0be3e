r"""Logistic regression for all folds and all strengths of a penalty at once.

A fold is a weight vector, so folds and strengths are one population (``logistic_population``), or,
where there are very few rows or many unknowns, the folds of one strength after the other: a single
product gives the scores of all of them, another their gradients. They share one Hessian, that of the
rows under their mean weights at the mean of their parameters, which is near each of theirs; iterating

.. math:: \theta_f \leftarrow \theta_f - B_\lambda^{-1}\,\nabla J_f(\theta_f)

with exact gradients converges to the exact solutions. Strengths are then visited from strong to weak,
each from the tangent of the path through the last two.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from groundstate.compute.thread_policy import for_rows
from groundstate.energy.basic import LinearEnergy
from groundstate.errors import NotConverged
from groundstate.learn.base import History, Penalty, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.penalties.norms import L2
from groundstate.learn.rules.softmin import SoftMin
from groundstate.learn.solvers.logistic.large import _factor, _solved
from groundstate.learn.solvers.logistic.newton import Newton
from groundstate.learn.solvers.logistic.objective import SoftmaxObjective
from groundstate.learn.solvers.logistic.population import UNKNOWNS, Population
from groundstate.learn.solvers.logistic.softmax import hessian, pin, probabilities
from groundstate.learn.solvers.logistic.sparse import ProximalNewton

F64 = NDArray[np.float64]
ROWS_PER_UNKNOWN = 50  # of the part that gives the shared Hessian
SLOW = 0.4  # a gradient that shrinks less asks for a new Hessian
COARSE = 1e-5  # gradients of this size are known in single precision
WIDE = 2e5  # times tol: columns of this size still have their gradients in single precision
OWN = 2**21  # multiply-adds up to which every member has a Hessian of its own
CHORDS = 12  # steps of the population before a member goes on alone


@dataclass
class FoldPaths:
    """Solutions of all members.

    Attributes
    ----------
    theta : ``(folds, strengths, R, D)``, R = 1 for two classes, the intercept last
    steps : ``(folds, strengths)``
    """

    theta: F64
    steps: NDArray[np.int64]


def fold_paths(
    x: torch.Tensor,
    y: torch.Tensor,
    weights: F64,
    strengths: F64,
    classes: int,
    intercept: bool,
    tol: float = 1e-4,
    max_iter: int = 100,
) -> FoldPaths:
    r"""Minimise :math:`\sum_i w_{fi}\ell_i(\theta) + \tfrac\lambda2\|\theta\|^2` for all f and λ.

    Parameters
    ----------
    x, y : rows ``(n, p)``, dense or CSR, and class numbers
    weights : ``(folds, n)``, zero for held-out rows
    strengths : λ, from strong to weak
    classes : number of classes
    intercept : whether there is one, unpenalised
    tol : largest entry of the gradient of the mean objective of a fold
    max_iter : steps of a member at most

    Examples
    --------
    >>> x = torch.tensor([[-1.0], [0.0], [1.0], [2.0]], dtype=torch.float64)
    >>> found = fold_paths(x, torch.tensor([0, 1, 0, 1]), np.ones((1, 4)), np.ones(1), 2, True, 1e-9)
    >>> found.theta[0, 0, 0].round(6).tolist()
    [0.452875, -0.226438]
    """
    with for_rows(x):
        folds = _Folds(x, y, weights, classes, intercept, tol)
        found = _paths(folds, strengths, tol, max_iter)
    if folds.rows.shift is not None:
        found.theta[..., -1] -= found.theta[..., :-1] @ folds.rows.shift.numpy()
    return found


def _paths(folds: _Folds, strengths: F64, tol: float, max_iter: int) -> FoldPaths:
    r, d = folds.rows.shape
    many, n = len(strengths), len(folds.weights)
    if not folds.small and r * d <= UNKNOWNS and many > 1:
        paths = folds.together(strengths, tol, max_iter)
        if paths is not None:
            return paths
    out = np.empty((n, many, r, d))
    steps = np.zeros((n, many), np.int64)
    theta, before = np.zeros((n, r, d)), None
    for c, strength in enumerate(strengths):
        if not c or not folds.still(theta, float(strengths[c - 1]), float(strength), tol):
            start = theta
            if before is not None and strength > 0:
                ratio = np.log(strengths[c - 1] / strength)
                ratio /= np.log(strengths[c - 2] / strengths[c - 1])
                start = theta + (theta - before) * ratio
            found, steps[:, c] = folds.solve(start, float(strength), tol, max_iter)
            before = theta if c else None
            theta = found
        else:
            before = None
        out[:, c] = theta
    return FoldPaths(out, steps)


class _Folds:
    """The population of one strength after the other."""

    def __init__(
        self, x: torch.Tensor, y: torch.Tensor, weights: F64, classes: int, intercept: bool,
        tol: float,
    ) -> None:  # fmt: skip
        self.weights = np.ascontiguousarray(weights)
        self.totals = self.weights.sum(1)
        energy = LinearEnergy(x.shape[1], classes, intercept).double()
        self.data = {"x": x if x.layout == torch.sparse_csr else x.double(), "y": y}
        mean = torch.from_numpy(self.weights.mean(0))
        self.rows = SoftmaxObjective(Problem(energy, SoftMin(), self.data, mean))
        self.energy = energy
        r, d = self.rows.shape
        self.every = max(1, self.rows.n // (ROWS_PER_UNKNOWN * r * d))
        self.w = self.weights
        if tol >= COARSE and _single_precision_will_do(self.rows, tol):
            self.w = self.w.astype(np.float32)
        self.slope: Any = None  # the last gradient
        self.small = len(weights) * self.rows.n * (r * d) ** 2 <= OWN

    @cached_property
    def members(self) -> Population:
        return Population(self.rows, self.w)

    def together(self, strengths: F64, tol: float, max_iter: int) -> FoldPaths | None:
        """All members at once; those whose shared Hessians do not serve them go on alone."""
        solved = self.members.solve(strengths, tol)
        if solved is None:
            return None
        theta, steps, done = solved
        for c in np.flatnonzero(~done.all(0)):
            some = np.flatnonzero(~done[:, c])
            theta[some, c], steps[some, c] = self._alone(
                theta[some, c], float(strengths[c]), tol, max_iter, steps[some, c], some
            )
        return FoldPaths(theta, steps)

    def still(self, theta: F64, before: float, strength: float, tol: float) -> bool:
        """Whether θ, solved for one strength, is good enough for the next as it is."""
        if self.slope is None:
            return False
        self.slope[:, :, : self.rows.p] -= (
            (before - strength) * theta[:, :, : self.rows.p] / self.totals[:, None, None]
        )
        return bool(abs(self.slope).max() <= tol)

    def gradient(self, theta: F64) -> F64:
        """∇ of the mean objective of every fold, ``(F, R, D)``."""
        every = np.arange(len(theta))
        return self.members.gradient(theta, every, np.tile(self.rows.ridge, (len(theta), 1)))

    def _own_steps(self, theta: F64, gradient: F64) -> F64 | None:
        """Newton steps with the Hessian of every member; None where one is singular."""
        rows, (f, r, d) = self.rows, theta.shape
        x = rows.sample(1)[0]  # (n, D)
        p = probabilities(theta @ x.T)  # (F, R, n)
        if rows.binary:
            h = self.weights * (p * (1.0 - p))[:, 0]  # (F, n)
            hessians = (h[:, None, :] * x.T) @ x
        else:
            free = [d - 1] if rows.intercept else []
            hessians = np.stack(
                [pin(hessian(x, q, w), free, r) for q, w in zip(p, self.weights, strict=True)]
            )
        hessians.reshape(f, -1)[:, :: r * d + 1] += np.tile(rows.ridge, r)
        hessians /= self.totals[:, None, None]
        try:
            step: F64 = np.linalg.solve(hessians, gradient.reshape(f, r * d, 1))
        except np.linalg.LinAlgError:
            return None
        return step.reshape(f, r, d)

    def _shared(self, theta: F64, strength: float) -> Any:
        """A factor of the Hessian at the mean of the members."""
        rows = self.rows
        rows.ridge[: rows.p] = strength
        return _factor(rows.hessian(theta.mean(0), self.every))

    def solve(self, theta: F64, strength: float, tol: float, max_iter: int) -> tuple[F64, Any]:
        f, r, d = theta.shape
        self.rows.ridge[: self.rows.p] = strength
        theta = theta.copy()
        used, last = np.zeros(f, np.int64), np.inf
        factor: Any = None
        step: Any = None
        for _ in range(CHORDS):
            gradient = self.gradient(theta)
            size = abs(gradient).max((1, 2))
            worst = float(size.max())
            self.slope = gradient
            if worst <= tol:
                return theta, used
            if not np.isfinite(worst) or worst > 4 * last:
                break
            if self.small:
                step = self._own_steps(theta, gradient)
                if step is None:
                    break
            elif factor is None or worst > SLOW * last:
                factor = self._shared(theta, strength)
            last = worst
            moving = size > tol
            used += moving
            if not self.small:
                scaled = np.asfortranarray(gradient.reshape(f, r * d).T)
                step = _solved(factor, scaled).T.reshape(f, r, d)
            theta -= step
        return self._alone(theta, strength, tol, max_iter, used)

    def _alone(
        self, theta: F64, strength: float, tol: float, max_iter: int, used: Any, some: Any = None
    ) -> tuple[F64, Any]:
        """Members that the shared Hessian does not serve, by Newton's method each."""
        out, self.slope = theta, None
        binary = self.rows.binary
        penalty = L2(strength * (2.0 if binary else 1.0)) if strength > 0 else None
        for f, weight in enumerate(self.weights if some is None else self.weights[some]):
            start = theta[f] if np.isfinite(theta[f]).all() else np.zeros_like(theta[f])
            self.rows.store(start if abs(start).max() < 1e3 else 0 * start)
            problem = Problem(self.energy, SoftMin(), self.data, torch.from_numpy(weight), penalty)
            with warnings.catch_warnings():  # a separable fold scores as well as it can
                warnings.simplefilter("ignore", NotConverged)
                used[f] += Newton(max_iter=max_iter, tol=tol).run(problem).n_iter
            out[f] = self.rows.start()
        return out, used


@torch.no_grad()
def sparse_fold_paths(
    x: torch.Tensor,
    y: torch.Tensor,
    weights: F64,
    penalties: Sequence[Penalty],
    classes: int,
    intercept: bool,
    tol: float = 1e-8,
    max_iter: int = 100,
) -> FoldPaths:
    """The same with penalties that set weights to zero, each from the solution before it.

    Parameters
    ----------
    penalties : L1 or elastic net, from strong to weak
    tol : duality gap relative to the objective at zero
    x, y, weights, classes, intercept, max_iter
        As in ``fold_paths``.
    """
    energy = LinearEnergy(x.shape[1], classes, intercept).to(x.dtype)
    shape = (1 if classes == 2 else classes, x.shape[1] + intercept)
    out = np.empty((len(weights), len(penalties), *shape))
    steps = np.zeros((len(weights), len(penalties)), np.int64)
    for f, weight in enumerate(weights):
        for p in energy.parameters():
            p.zero_()
        for c, penalty in enumerate(penalties):
            problem = Problem(
                energy, SoftMin(), {"x": x, "y": y}, torch.from_numpy(weight), penalty
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", NotConverged)
                steps[f, c] = ProximalNewton(max_iter=max_iter, tol=tol).run(problem).n_iter
            theta = energy.W.double()
            if energy.b is not None:
                theta = torch.cat([theta, energy.b.double()[:, None]], 1)
            out[f, c] = (theta[1:] - theta[:1] if classes == 2 else theta).numpy()
    return FoldPaths(out, steps)


@dataclass(frozen=True)
class FixedParameters:
    """A solver that keeps θ as it was given, for parameters that come from elsewhere."""

    def reason_against(self, problem: Problem) -> str | None:
        return None

    def run(self, problem: Problem) -> History:
        history = History(converged=True, solver="FixedParameters", stop="given")
        with Monitor(problem.callbacks, Run(problem, history, max_epochs=1)) as monitor:
            history.objective.append(float(problem.objective()))
            monitor.epoch(history.objective[0])
        return history


def _single_precision_will_do(rows: SoftmaxObjective, tol: float) -> bool:
    """Large dense rows whose columns are not far from zero, nor so wide that tol is rounding."""
    if rows.sparse or rows.n * rows.p < 2**13:
        return False
    x = rows.x[:: max(1, rows.n // 2**13), : rows.p]
    mean, square = np.full(len(x), 1.0 / len(x)) @ x, np.einsum("ij,ij->j", x, x) / len(x)
    near = bool((mean**2 <= 0.999 * square).all() and square.max() <= (WIDE * tol) ** 2)
    return near and float(np.vdot(rows.x, rows.x)) < 1e30
