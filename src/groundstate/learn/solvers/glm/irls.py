r"""Newton's method for generalised linear models: iteratively reweighted least squares."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from groundstate.energy.linear.glm import GLMEnergy
from groundstate.errors import NotConverged
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.penalties.norms import L2, plain_l2
from groundstate.learn.solvers.glm.irls_rows import Array, Rows, over_shards, rows_of
from groundstate.learn.solvers.glm.irls_system import System, Target
from groundstate.math.losses.deviance import Deviance
from groundstate.registry import solvers

DEAR = 2**17  # elements of the rows from which Hessians are worth saving
ROUNDING = 1e-9  # promised fall of the objective below which no step need be found
MAX_UNKNOWNS = 2000  # beyond this the Hessian costs more than L-BFGS saves


@solvers.register(
    formula=r"\Delta = -(X^\top H X + \lambda)^{-1}\nabla J,\ H = \mu'^2/V(\mu)",
    make=lambda energy: IRLS(),
)
@dataclass(frozen=True)
class IRLS:
    r"""Lower the mean half-deviance plus :math:`\tfrac\lambda2\|W\|^2/\sum w` by Newton steps.

    The Hessian is :math:`X^\top HX + \lambda` with the expected information
    :math:`H = \mu'^2/V(\mu)`, or the observed one where that cannot be negative. Steps are halved
    until the objective falls. A factor that still contracts well is used again. At the end φ is
    Pearson's :math:`\sum_i w_i (y_i-\mu_i)^2/V(\mu_i)` over the degrees of freedom. Sums over rows
    are sums over shards.

    Parameters
    ----------
    max_iter : steps at most
    tol : largest entry of the gradient of the objective at the end
    method : "newton", "lbfgs" or "auto", which takes Newton up to 2,000 unknowns
    """

    max_iter: int = 100
    tol: float = 1e-4
    method: Literal["auto", "newton", "lbfgs"] = "auto"

    def reason_against(self, problem: Problem) -> str | None:
        energy = problem.energy
        if not isinstance(energy, GLMEnergy):
            return "it is for generalised linear energies"
        if not problem.rule.contrast_is_constant(energy):
            return f"the contrast of {type(problem.rule).__name__} depends on θ"
        if not problem.is_resident or set(problem.names) - {"offset"} != {"x", "y"}:
            return "it needs resident x and y"
        if problem.penalty is not None and not plain_l2(problem.penalty):
            return "its only penalty is L2 on the weights"
        return None

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        energy = problem.energy
        assert isinstance(energy, GLMEnergy)
        history = History(solver="IRLS", converged=True)
        run = Run(problem, history, self.max_iter * energy.m)
        rows = rows_of(problem.resident["x"], energy.b is not None)
        newton = self.method == "newton" or (self.method == "auto" and rows.size <= MAX_UNKNOWNS)
        deviance = []
        with Monitor(problem.callbacks, run) as monitor:
            for j in range(energy.m):
                system = _system(problem, rows, j)
                lower = self._newton if newton else self._lbfgs
                converged = lower(system, problem, monitor, j)
                history.converged &= converged is not False
                _store(energy, j, system)
                deviance.append(_finish(energy, j, system, rows.size))
                if converged is None:  # a callback wants to stop
                    return history
        history.extra["deviance"] = deviance
        late = run.epoch >= self.max_iter
        history.stop = "gradient" if history.converged else "max_iter" if late else "no descent"
        if not history.converged:
            what = "stopped" if late else "found no further descent"
            cure = "raise max_iter, scale" if late else "scale"
            warnings.warn(
                f"IRLS {what} after {run.epoch} steps before the gradient reached "
                f"tol={self.tol}; {cure} the inputs or strengthen the penalty",
                NotConverged,
                stacklevel=3,
            )
        return history

    def _newton(self, system: System, problem: Problem, monitor: Monitor, j: int) -> bool | None:
        history = monitor.run.history
        start, last, renew = time.perf_counter(), np.inf, True
        dear = len(system.eta) * system.rows.size > DEAR
        for _ in range(self.max_iter):
            gradient = system.gradient(renew)
            largest = float(abs(gradient).max(initial=0.0))
            ratio = largest / last
            if (
                not renew and ratio > (0.6 if dear else 0.3) and largest > self.tol
            ):  # the old factor has worn out
                gradient = system.gradient(True)
            small = largest <= self.tol
            # the step taken from a small gradient squares its error: stop after it
            done = not system.step(gradient) or small
            if problem.callbacks:
                _store(_glm(problem), j, system)
            history.objective.append(system.value)
            history.seconds.append(time.perf_counter() - start)
            start = time.perf_counter()
            if monitor.epoch(system.value):
                return None
            if done:
                return small or system.promised <= ROUNDING * (1 + abs(system.value))
            # Newton converges quadratically: where the next gradient will be small, or where a
            # Hessian costs as much as many gradients, the old factor with its corrections will do
            renew, last = not dear and largest * min(ratio, 1.0) ** 2 > self.tol, largest
        return False

    def _lbfgs(self, system: System, problem: Problem, monitor: Monitor, j: int) -> bool | None:
        history = monitor.run.history
        start = [time.perf_counter()]

        class Stop(Exception):
            pass

        def each(intermediate_result: object) -> None:
            if problem.callbacks:
                _store(_glm(problem), j, system)
            value = float(intermediate_result.fun)  # type: ignore[attr-defined]
            history.objective.append(value)
            history.seconds.append(time.perf_counter() - start[0])
            start[0] = time.perf_counter()
            if monitor.epoch(value):
                raise Stop
            if float(abs(slopes[0]).max()) <= self.tol:
                raise _Small

        unit = system.units()  # the optimiser sees θ in these, where all curvatures are alike
        slopes = [np.full(len(unit), np.inf)]  # at the point seen last: a step ends with its own

        def at(u: Array) -> tuple[float, Array]:
            value, slopes[0] = system.at(u * unit)
            return value, slopes[0] * unit

        options = {
            "maxiter": self.max_iter, "gtol": self.tol * float(unit.min()),
            "ftol": 64 * np.finfo(float).eps, "maxls": 50, "maxcor": 10,
        }  # fmt: skip
        begin = system.theta / unit
        try:
            result = minimize(
                at, begin, jac=True, method="L-BFGS-B", callback=each, options=options
            )
        except Stop:
            return None
        except _Small:
            return True
        _, gradient = at(result.x)
        if not result.nit:
            monitor.epoch(system.value)
        if result.status != 2:
            return bool(result.status == 0)
        # no step downhill was found: an optimum only where the gradient promises next to none
        return float(gradient @ gradient) <= ROUNDING * (1 + abs(system.value))


class _Small(Exception):
    """The gradient is."""


def _glm(problem: Problem) -> GLMEnergy:
    assert isinstance(problem.energy, GLMEnergy)
    return problem.energy


def _numbers(values: Tensor) -> Array:
    return np.ascontiguousarray(values.detach().double().cpu().numpy())


def _system(problem: Problem, rows: Rows, j: int) -> System:
    energy = _glm(problem)
    offset = problem.resident.get("offset")
    per_output = offset is not None and offset.ndim == 2 and offset.shape[1] > 1
    w = problem.sample_weight
    target = Target(
        Deviance(energy.family, energy.link),
        _numbers(problem.resident["y"][:, j]),
        np.empty(0) if w is None else _numbers(w),
        None if offset is None else _numbers(offset.reshape(len(offset), -1)[:, j * per_output]),
    )
    theta = _numbers(energy.W[j])
    if energy.b is not None:
        b = float(energy.b[j])
        theta = np.append(theta, b if rows.shift is None else b + theta @ rows.shift)
    strength = problem.penalty.strength if isinstance(problem.penalty, L2) else 0.0
    cold = not theta.any()
    return System(rows, target, theta, float(strength), problem.total_weight, cold)


def _store(energy: GLMEnergy, j: int, system: System) -> None:
    theta, shift = system.theta, system.rows.shift
    if energy.b is None:
        energy.W[j].copy_(torch.from_numpy(theta))
        return
    energy.W[j].copy_(torch.from_numpy(theta[:-1]))
    moved = 0.0 if shift is None else float(theta[:-1] @ shift)
    energy.b[j] = float(theta[-1]) - moved


def _finish(energy: GLMEnergy, j: int, system: System, unknowns: int) -> float:
    """Set φ by Pearson's statistic where the family has one; the deviance."""
    target = system.target
    y, mu = torch.from_numpy(target.y), energy.link.inverse(torch.from_numpy(system.eta))
    w = torch.from_numpy(target.w) if len(target.w) else torch.ones_like(y)
    deviance = float((w * energy.family.unit_deviance(y, mu)).sum())
    (deviance,) = map(float, over_shards(np.float64(deviance)))
    if energy.family.scaled:
        variance = energy.family.variance(mu)
        own = (w * (y - mu).square() / variance).sum(), (w * y.square() / variance).sum()
        pearson, square = map(float, over_shards(*map(np.float64, own)))
        free = system.total - unknowns
        phi = pearson / (free if free > 0 else system.total)
        energy.phi[j] = max(phi, 1e-12 * square / system.total, 1e-300)
    return deviance
