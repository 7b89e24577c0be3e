r"""Laplace's approximation: the mode of the latent function, and the kernel by its evidence."""

from __future__ import annotations

import itertools
import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import softplus

from groundstate.compute.random import Key
from groundstate.compute.thread_policy import for_factors
from groundstate.energy.kernels.gaussian_process.laplace import LaplaceClassEnergy, LaplaceEnergy
from groundstate.errors import DataError
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.solvers.gp.evidence import Evidence, merged
from groundstate.math.kernels import Geometry, Kernel

F64 = NDArray[np.float64]
DEFAULT = Evidence()
ENOUGH = 1e-10  # gain of the approximate evidence below which the mode is found


@dataclass
class Mode:
    """The mode of the latent function: slope g, roots s of the curvature, factor of I + sKs."""

    value: float  # log of the approximate evidence
    f: Tensor
    p: Tensor
    g: Tensor
    s: Tensor
    L: Tensor
    a: Tensor


class Field:
    """Rows of two classes and a kernel; rows of one content are one row of summed weight.

    Where the kernel has noise of its own, equal rows have different latent values: a weight is then
    so many rows, and must be a whole number.
    """

    def __init__(self, x: Tensor, y: Tensor, weight: Tensor | None, kernel: Kernel) -> None:
        noise = kernel.diagonal(x[:1]) - kernel.diagonal(x[:1], noise=False)
        if float(noise.abs().sum()) > 0:
            if weight is not None:
                times = weight.round().long()
                if not torch.allclose(times.to(weight), weight):
                    raise DataError(
                        "a kernel with noise of its own makes rows of weights, which must be whole "
                        "numbers; use a kernel without White"
                    )
                x, y = x.repeat_interleave(times, 0), y.repeat_interleave(times)
            weight = None
        else:
            at, weight = merged(x, y[:, None], None, weight)
            x, y = x[at], y[at]
        self.x, self.y, self.kernel = x, y.to(x.dtype), kernel
        self.w = torch.ones_like(self.y) if weight is None else weight.to(x.dtype)
        self.geometry = Geometry(x)

    def mode(self, K: Tensor, max_iter: int, start: Tensor | None = None) -> Mode:
        """Newton's steps to the mode (Rasmussen and Williams, 2006, algorithm 3.1)."""
        f = torch.zeros_like(self.y) if start is None else start
        last, sign = -math.inf, 2 * self.y - 1
        for _ in range(max_iter):
            p = torch.sigmoid(f)
            W = self.w * p * (1 - p)
            s = W.sqrt()
            sK = s[:, None] * K
            B = sK * s
            B.diagonal().add_(1.0)
            L = torch.linalg.cholesky_ex(B)[0]  # I + sKs has no eigenvalue below one
            g = self.w * (self.y - p)
            b = W * f + g
            a = b - s * torch.cholesky_solve((sK @ b)[:, None], L)[:, 0]
            f = K @ a
            value = float(-0.5 * a @ f - self.w @ softplus(-sign * f) - L.diagonal().log().sum())
            if value - last < ENOUGH:
                break
            last = value
        if not math.isfinite(last):
            raise DataError(
                "the latent function has no finite mode: the kernel's values are not finite or not "
                "those of a covariance; scale the columns or choose another kernel"
            )
        return Mode(last, f, p, g, s, L, a)

    def evidence(
        self, theta: F64 | Tensor, max_iter: int, start: Tensor | None = None, slope: bool = True
    ) -> tuple[Mode, F64]:
        r"""The mode at θ and the gradient of the log evidence (algorithm 5.1), in one backward pass:
        :math:`\partial = \langle\tfrac12 aa^\top - \tfrac12R + ug^\top, \partial K\rangle`.
        """
        at = torch.as_tensor(theta).to(self.x).requires_grad_(slope)
        with torch.set_grad_enabled(slope):
            K = self.kernel.of(self.geometry, at)
        with torch.no_grad():
            fixed = K.detach()
            mode = self.mode(fixed, max_iter, start)
            if not slope or not at.numel():
                return mode, np.zeros(at.numel())
            R = torch.cholesky_solve(torch.diag(mode.s), mode.L) * mode.s[:, None]
            C = torch.linalg.solve_triangular(mode.L, mode.s[:, None] * fixed, upper=False)
            third = self.w * mode.p * (1 - mode.p) * (1 - 2 * mode.p)
            s2 = -0.5 * (fixed.diagonal() - C.square().sum(0)) * third
            u = s2 - R @ (fixed @ s2)
            M = 0.5 * (torch.outer(mode.a, mode.a) - R) + torch.outer(u, mode.g)
        (grad,) = torch.autograd.grad(K, at, M)
        return mode, grad.double().cpu().numpy()


@dataclass(frozen=True)
class Laplace:
    r"""The kernel by L-BFGS on Laplace's log evidence, then the mode of the latent function,

    .. math:: \hat f = \arg\max_f \sum_i w_i\log\sigma((2y_i - 1)f_i) - \tfrac12 f^\top K^{-1}f ,

    for two classes, for each class against the rest, or for each pair.

    Parameters
    ----------
    kernel : where the search for the parameters starts; None takes the energy's
    search : how it goes on
    max_iter : Newton steps to a mode at most
    warm : start Newton's steps at the last mode
    """

    kernel: Kernel | None = None
    search: Evidence = DEFAULT
    max_iter: int = 100
    warm: bool = False

    def reason_against(self, problem: Problem) -> str | None:
        if not isinstance(problem.energy, LaplaceEnergy | LaplaceClassEnergy):
            return "it is for classes from a Gaussian process"
        if self.kernel is None and not isinstance(problem.energy, LaplaceEnergy):
            return "the energy has no kernel of its own; pass Laplace(kernel)"
        if not problem.is_resident or set(problem.names) != {"x", "y"} or problem.penalty:
            return "it needs resident x and y and no penalty"
        return None

    def run(self, problem: Problem) -> History:
        start = time.perf_counter()
        energy, x, y = problem.energy, problem.resident["x"], problem.resident["y"]
        kernel = self.kernel
        if kernel is None:
            assert isinstance(energy, LaplaceEnergy)
            kernel = energy.kernel
        history = History(solver="Laplace", converged=True, stop="gradient")
        with Monitor(problem.callbacks, Run(problem, history, 1)) as monitor:
            values = []
            members: list[LaplaceEnergy] = []
            for m, (rows, label) in enumerate(tasks(energy, y)):
                w = problem.sample_weight
                own = None if w is None else w[rows]
                field = Field(x[rows], label, own, kernel)
                one = (
                    energy
                    if isinstance(energy, LaplaceEnergy)
                    else LaplaceEnergy(x.shape[1], kernel)
                )
                with for_factors(len(field.x), x.device):
                    values.append(self._learn(one, field, kernel, problem.key.fold("member", m)))
                members.append(one)
            if isinstance(energy, LaplaceClassEnergy):
                energy.members = nn.ModuleList(members)
            history.extra["log_marginal_likelihood"] = values
            history.objective.append(-float(np.mean(values)))
            history.seconds.append(time.perf_counter() - start)
            monitor.epoch(history.objective[-1] / problem.total_weight)
        history.n_iter = 1
        return history

    def _learn(self, energy: LaplaceEnergy, field: Field, kernel: Kernel, key: Key) -> float:
        theta, bounds = kernel.theta, kernel.bounds
        last: list[Tensor | None] = [None]

        def objective(at: F64) -> tuple[float, F64]:
            try:
                mode, slope = field.evidence(at, self.max_iter, last[0])
            except DataError:  # parameters too far out
                return math.inf, np.zeros(len(at))
            last[0] = mode.f if self.warm else None
            return -mode.value, -slope

        if self.search.optimizer is not None and len(bounds):
            starts = [theta]
            if self.search.restarts:
                if not np.isfinite(bounds).all():
                    raise ValueError("restarts need finite bounds on every parameter of the kernel")
                rng = key.fold("restarts").numpy()
                shape = (self.search.restarts, len(bounds))
                starts += list(rng.uniform(bounds[:, 0], bounds[:, 1], shape))
            found = [self.search.minimise(objective, at, bounds) for at in starts]
            theta = min(found, key=lambda pair: pair[1])[0]
        mode, _ = field.evidence(theta, self.max_iter, last[0], slope=False)
        energy.observe(kernel.clone_with_theta(theta), field.x, mode.g, mode.s)
        return mode.value


def tasks(energy: Any, y: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Rows and labels of every problem of two classes."""
    everything = torch.arange(len(y), device=y.device)
    if isinstance(energy, LaplaceEnergy):
        return [(everything, y)]
    if energy.mode == "one_vs_rest":
        return [(everything, (y == c).long()) for c in range(energy.k)]
    pairs = itertools.combinations(range(energy.k), 2)
    return [(at, (y[at] == b).long()) for a, b in pairs for at in [everything[(y == a) | (y == b)]]]
