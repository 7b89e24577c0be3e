r"""Learning a Gaussian process: the parameters of its kernel by marginal likelihood."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.compute.rows.distinct import distinct_rows
from groundstate.compute.thread_policy import for_factors
from groundstate.compute.weight_line.hashing import row_hash
from groundstate.energy.kernels.gaussian_process.exact import FieldEnergy, ProcessEnergy
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.solvers.gp.polish import Objective, curvature, polish
from groundstate.math.linalg.gaussian_process import cholesky, lower_inverse
from groundstate.registry import solvers

F64 = NDArray[np.float64]
SKETCH = 1000  # rows at most on which a long table's parameters are found before they are polished
LONG = 800  # rows from which that pays


@dataclass
class EvidencePoint:
    """The energy of the data at θ, its gradient, and the factor of K."""

    value: float
    gradient: F64
    factor: Tensor


def evidence(
    field: FieldEnergy,
    y: Tensor,
    theta: Tensor | None = None,
    weight: Tensor | None = None,
    *,
    slope: bool = True,
) -> EvidencePoint:
    r"""Negative log marginal likelihood of draws ``y`` ``(m, n)`` and its gradient in θ.

    With :math:`a = K^{-1}y` the gradient is
    :math:`-\tfrac12\operatorname{tr}((aa^\top - K^{-1})\,\partial K)`: one factor, one inverse, and
    one backward pass through the kernel, whatever the number of parameters.
    """
    at = (field.theta if theta is None else theta).detach()
    with torch.no_grad():
        slope = slope and len(at) > 0
        if slope:
            K, extra, repeats, pull = field.pulled(at)
        else:
            K, extra = field.parts(at)
            repeats = field.repeats(at)
        full = K.clone()
        full.diagonal().add_(extra)
        L = cholesky(full)
        del full
        rows = y if weight is None else y * weight.sqrt()[:, None]
        total = float(len(y) if weight is None else weight.sum())
        a = torch.cholesky_solve(rows.T, L)  # (n, m)
        constant = float(L.diagonal().log().sum()) + 0.5 * len(L) * math.log(2 * math.pi)
        value = 0.5 * float((rows.T * a).sum()) + total * (constant + float(repeats))
        if not slope:
            return EvidencePoint(value, np.zeros(len(at)), L)
        # K is symmetric: half of W, taken twice, is all of it
        W = lower_inverse(L).mul_(total).addmm_(a, a.T, alpha=-1.0).tril_()
        W.diagonal().mul_(0.5)
        g = pull(W, total)
    return EvidencePoint(value, g.double().cpu().numpy(), L)


@solvers.register(
    formula=r"\nabla_\theta = -\tfrac12\operatorname{tr}((aa^\top - K^{-1})\,\partial_\theta K)",
    make=lambda energy: Evidence(),
)
@dataclass(frozen=True)
class Evidence:
    r"""L-BFGS within bounds on :math:`\tfrac12 y^\top K^{-1}y + \tfrac12\log|2\pi K|`, with the
    gradient :math:`-\tfrac12\operatorname{tr}((aa^\top - K^{-1})\,\partial_\theta K)`.

    Tables of 800 rows and more are first solved on half of their rows (1,000 at most), from every
    start; only the best is polished on all rows.

    Parameters
    ----------
    restarts : further starts, drawn within the bounds of the kernel
    optimizer : "lbfgs", None to leave θ as it is, or ``optimizer(objective, theta, bounds)`` that
        returns (theta, value)
    max_iter : iterations of each run at most
    """

    restarts: int = 0
    optimizer: Any = "lbfgs"
    max_iter: int = 15000

    def reason_against(self, problem: Problem) -> str | None:
        if not isinstance(problem.energy, FieldEnergy):
            return "it is for a Gaussian field"
        if not problem.is_resident or problem.penalty is not None:
            return "it needs resident y and no penalty"
        return None

    def run(self, problem: Problem) -> History:
        field = problem.energy
        assert isinstance(field, FieldEnergy)
        history = History(solver="Evidence", converged=True, stop="gradient")
        with Monitor(problem.callbacks, Run(problem, history, self.max_iter)) as monitor:
            start = time.perf_counter()
            y, w = problem.resident["y"], problem.sample_weight
            with for_factors(y.shape[-1], y.device):
                self.learn(field, y, w, problem.key, history)
            history.seconds.append(time.perf_counter() - start)
            monitor.epoch(history.objective[-1] / problem.total_weight)
        history.n_iter = max(1, len(history.objective))
        return history

    def learn(
        self, field: FieldEnergy, y: Tensor, w: Tensor | None, key: Key, history: History
    ) -> Tensor:
        """Set θ; returns the factor of K there."""
        bounds = field.kernel.bounds
        if self.optimizer is None or not len(bounds):
            point = evidence(field, y, weight=w, slope=False)
            history.objective.append(point.value)
            return point.factor
        starts = [field.theta.detach().double().cpu().numpy()]
        if self.restarts:
            if not np.isfinite(bounds).all():
                raise ValueError("restarts need finite bounds on every parameter of the kernel")
            rng = key.fold("restarts").numpy()
            starts += list(rng.uniform(bounds[:, 0], bounds[:, 1], (self.restarts, len(bounds))))
        part, y_part = sketch(field, y) if self.optimizer == "lbfgs" else (None, y)
        whole = EvidenceObjective(field, y, w)
        rough = whole if part is None else EvidenceObjective(part, y_part, w)
        best = min((self.minimise(rough, s, bounds) for s in starts), key=lambda pair: pair[1])[0]
        if part is not None:  # curvature grows with the rows, so the part knows that of the whole
            hessian = curvature(rough, best) * (len(field.x) / len(part.x))
            best = polish(whole, best, bounds, hessian, max_iter=self.max_iter)[0]
        with torch.no_grad():
            field.theta.copy_(torch.as_tensor(best))
        point = whole.at(best)
        history.objective += [*whole.values, point.value]
        return point.factor

    def minimise(self, objective: Objective, start: F64, bounds: F64) -> tuple[F64, float]:
        if callable(self.optimizer):
            theta, value = self.optimizer(objective, start, bounds)
            return np.asarray(theta), float(value)
        from scipy.optimize import minimize

        found = minimize(
            objective, np.clip(start, bounds[:, 0], bounds[:, 1]), jac=True, method="L-BFGS-B",
            bounds=bounds, options={"maxiter": self.max_iter},
        )  # fmt: skip
        return found.x, float(found.fun)


class EvidenceObjective:
    """The evidence as a function of θ that remembers its values and its best point."""

    def __init__(self, field: FieldEnergy, y: Tensor, w: Tensor | None) -> None:
        self.field, self.y, self.w = field, y, w
        self.values: list[float] = []
        self.best: tuple[F64, EvidencePoint] | None = None

    def __call__(self, theta: F64) -> tuple[float, F64]:
        at = torch.as_tensor(theta).to(self.field.theta)
        try:
            point = evidence(self.field, self.y, at, self.w)
        except np.linalg.LinAlgError:
            return math.inf, np.zeros(len(theta))
        self.values.append(point.value)
        if self.best is None or point.value < self.best[1].value:
            self.best = theta.copy(), point
        return point.value, point.gradient

    def at(self, theta: F64) -> EvidencePoint:
        """The point at θ, which is mostly the best one seen."""
        if self.best is not None and np.array_equal(self.best[0], theta):
            return self.best[1]
        at = torch.as_tensor(theta).to(self.field.theta)
        return evidence(self.field, self.y, at, self.w, slope=False)


def sketch(field: FieldEnergy, y: Tensor) -> tuple[FieldEnergy | None, Tensor]:
    """A part of a long table, chosen by the content of its rows."""
    if len(field.x) < LONG:
        return None, y
    size = min(SKETCH, len(field.x) // 2)
    order = np.argsort(row_hash(field.x, y.T.contiguous()))[:size]
    at = torch.from_numpy(np.sort(order)).to(field.x.device)
    weight = None if field.weight is None else field.weight[at]
    part = FieldEnergy(field.x[at], field.kernel, field.noise[at], weight)
    return part, y[:, at]


@solvers.register(formula=r"m(x) = k_x^\top K^{-1} y", make=lambda energy: Conditioning())
@dataclass(frozen=True)
class Conditioning:
    r"""Learn the kernel by `Evidence`, then condition on the rows,
    :math:`m(x) = k_x^\top K^{-1}y`. Rows of equal content become one row of summed weight.

    Parameters
    ----------
    noise : α, variance of each observation, a number or ``(n,)``; None takes the energy's
    evidence : how the parameters of the kernel are found
    """

    noise: Any = None
    evidence: Evidence = Evidence()
    _ordered: ClassVar[bool] = False  # whether the order of the rows must not matter

    def reason_against(self, problem: Problem) -> str | None:
        if not isinstance(problem.energy, ProcessEnergy):
            return "it is for a Gaussian process"
        if not problem.is_resident or set(problem.names) != {"x", "y"} or problem.penalty:
            return "it needs resident x and y and no penalty"
        return None

    def run(self, problem: Problem) -> History:
        energy = problem.energy
        assert isinstance(energy, ProcessEnergy)
        history = History(solver=type(self).__name__, converged=True, stop="gradient")
        start = time.perf_counter()
        with Monitor(problem.callbacks, Run(problem, history, 1)) as monitor:
            x, y = problem.resident["x"].detach(), problem.resident["y"].detach()
            noise = energy.noise if self.noise is None else self.noise
            alpha = torch.as_tensor(noise).to(x).expand(len(x))
            index, weight = merged(x, y, alpha, problem.sample_weight, self._ordered)
            field = FieldEnergy(x[index], energy.kernel, alpha[index], weight)
            y = ((y[index] - energy.shift) / energy.scale).T.contiguous()
            with for_factors(y.shape[-1], y.device):
                self._condition(energy, field, y, problem.key, history)
            history.extra["log_marginal_likelihood"] = [-history.objective[-1]]
            history.extra["noise"] = alpha[index].tolist()
            if weight is not None:
                history.extra["weight"] = weight.tolist()
            history.seconds.append(time.perf_counter() - start)
            monitor.epoch(history.objective[-1] / problem.total_weight)
        history.n_iter = max(1, len(history.objective))
        return history

    def _condition(
        self, energy: ProcessEnergy, field: FieldEnergy, y: Tensor, key: Key, history: History
    ) -> None:
        """Learn θ, then take the observations ``(m, n)`` in."""
        energy.observe(field, y, self.evidence.learn(field, y, None, key, history))


def merged(
    x: Tensor, y: Tensor, alpha: Tensor | None, weight: Tensor | None, ordered: bool = False
) -> tuple[Tensor, Tensor | None]:
    """First places of rows of different content, and their summed weights.

    Without repeated or weighted rows the order stays and the weights are None; else the order is
    that of the content, so that a weighted table and its repeated twin are the same to the bit.
    ``ordered`` takes that order always.
    """
    if weight is None and not ordered and any(map(_all_different, (x[:, 0], y[:, 0]))):
        return torch.arange(len(x), device=x.device), None
    hashes = row_hash(x, y, None if alpha is None else alpha.contiguous())
    first, sums = distinct_rows(hashes, weight)
    plain = bool((sums == 1).all()) and len(first) == len(x)
    if plain and not ordered:
        return torch.arange(len(x), device=x.device), None
    at = torch.from_numpy(first).to(x.device)
    if plain:
        return at, None
    return at, torch.from_numpy(sums).to(x)


def _all_different(column: Tensor) -> bool:
    values = np.sort(column.detach().cpu().numpy())
    return bool((values[1:] != values[:-1]).all())
