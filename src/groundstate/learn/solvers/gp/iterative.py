r"""Learning a Gaussian process whose covariance is never stored: evidence by conjugate gradients."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.energy.kernels.gaussian_process.exact import FieldEnergy, ProcessEnergy
from groundstate.energy.kernels.gaussian_process.iterative import IterativeProcessEnergy
from groundstate.learn.base import History, Problem
from groundstate.learn.solvers.gp.evidence import Conditioning, EvidenceObjective, sketch
from groundstate.learn.solvers.gp.polish import curvature, polish
from groundstate.math.kernels.covariance import TiledCovariance
from groundstate.math.kernels.pivots import pivoted_cholesky
from groundstate.math.linalg.conjugate_gradients import Solved, log_quadratic
from groundstate.registry import solvers

F64 = NDArray[np.float64]


@dataclass(frozen=True)
class IterativeEvidence:
    r"""Negative log marginal likelihood by conjugate gradients, with its gradient in θ.

    With probes :math:`z \sim N(0, P)`, P the preconditioner, and :math:`a = K^{-1}y`:
    :math:`\log|K| \approx \log|P| + \overline{z^\top P^{-1/2}\log(P^{-1/2}KP^{-1/2})P^{-1/2}z}` by
    Lanczos, and :math:`\operatorname{tr}(K^{-1}\partial K) \approx
    \operatorname{tr}(P^{-1}\partial K) + \overline{(K^{-1}z - P^{-1}z)^\top\partial K\,P^{-1}z}`,
    so that chance enters only where P is not K. The probes are the same for every θ.

    Parameters
    ----------
    field : the observed inputs
    y : ``(m, n)``
    key : of the probes
    probes : number of them
    tol : relative residual of the solutions
    rank, single, pivots : see `TiledCovariance`

    Examples
    --------
    >>> from groundstate.math.kernels import RBF
    >>> x = torch.linspace(0, 1, 50).double()[:, None]
    >>> f = FieldEnergy(x, RBF(1.0), 0.1)
    >>> e = IterativeEvidence(f, torch.sin(x.T), Key.of(0))
    >>> bool(abs(e(f.theta.detach().numpy())[0] - f(y=torch.sin(x.T)).item()) < 0.1)
    True
    """

    field: FieldEnergy
    y: Tensor
    key: Key
    probes: int = 16
    tol: float = 1e-4
    rank: int = 100
    single: bool = False
    pivots: Tensor | None = None

    def __call__(self, theta: F64) -> tuple[float, F64]:
        return self.at(theta)

    def at(self, theta: F64, slope: bool = True) -> tuple[float, F64]:
        """The estimate at θ and its gradient, which is zero where it is not asked for."""
        field, y, m = self.field, self.y, len(self.y)
        at = torch.as_tensor(theta).to(field.theta).requires_grad_(slope)
        with torch.set_grad_enabled(slope):
            spread, repeats = field.spread(at), field.repeats(at)
            own = field.kernel.diagonal(field.x, at, noise=False)
        K = TiledCovariance(
            field.kernel, field.x, spread.detach(), at.detach(), single=self.single,
            rank=self.rank, pivots=self.pivots,
        )  # fmt: skip
        P = K.preconditioner
        z = P.draw(self.probes, self.key.fold("probes").torch(y.device))
        found = K.solve(torch.cat([y.T, z], 1), self.tol)
        a, u, v = found.x[:, :m], found.x[:, m:], P.solve(z)
        part = Solved(u, found.steps, found.error[m:], found.diagonal[m:], found.off[m:])
        log_det = P.log_det + ((z * v).sum(0) * log_quadratic(part)).mean()
        constant = 0.5 * float(log_det) + 0.5 * len(field.x) * math.log(2 * math.pi)
        value = 0.5 * float((y.T * a).sum()) + m * (constant + float(repeats.detach()))
        if not slope or not len(at):
            return value, np.zeros(len(at))
        W = P.root()
        left = torch.cat([-0.5 * a, (0.5 * m / self.probes) * (u - v), -0.5 * m * W], 1)
        right = torch.cat([a, v, W], 1)
        gradient = K.slope(left, right, at)
        diagonal = 0.5 * m / P.D
        pairs = [
            (spread, (left * right).sum(1) + diagonal),
            (own, diagonal),
            (repeats, torch.full_like(repeats, m)),
        ]
        live = [(output, weight) for output, weight in pairs if output.requires_grad]
        if live:
            outputs, weights = zip(*live, strict=True)
            gradient = gradient + torch.autograd.grad(outputs, [at], weights)[0]
        return value, gradient.double().cpu().numpy()


@solvers.register(
    formula=r"K^{-1}y \text{ by preconditioned CG},\; \log|K| \text{ by Lanczos}",
    make=lambda energy: IterativeConditioning(),
)
@dataclass(frozen=True)
class IterativeConditioning(Conditioning):
    r"""Learn the kernel, then condition on the rows by conjugate gradients; K is never stored.

    Tables of 800 rows and more learn the kernel on half of them (1,000 at most) and polish it on
    all by `IterativeEvidence`; shorter ones learn it by the exact evidence.

    Parameters
    ----------
    noise, evidence : as in `Conditioning`
    probes : random vectors behind traces and log-determinants
    max_iter : steps on all rows at most
    """

    probes: int = 16
    max_iter: int = 10
    _ordered: ClassVar[bool] = True

    def reason_against(self, problem: Problem) -> str | None:
        if not isinstance(problem.energy, IterativeProcessEnergy):
            return "it is for a Gaussian process that solves by iteration"
        return super().reason_against(problem)

    def _condition(
        self, energy: ProcessEnergy, field: FieldEnergy, y: Tensor, key: Key, history: History
    ) -> None:
        assert isinstance(energy, IterativeProcessEnergy)
        part, y_part = sketch(field, y)
        if part is None:
            self.evidence.learn(field, y, None, key, history)
            energy.observe(field, y)
            return
        theta = field.theta.detach().double().cpu().numpy()
        learning = self.evidence.optimizer is not None and len(theta) > 0
        if learning:
            self.evidence.learn(part, y_part, None, key, History())
            theta = part.theta.detach().double().cpu().numpy()
        at = torch.as_tensor(theta).to(field.theta)
        pivots = pivoted_cholesky(field.kernel, field.x, energy.rank, at)[1]
        whole = IterativeEvidence(
            field, y, key, self.probes, rank=energy.rank, single=energy.single, pivots=pivots
        )
        if learning:
            rough = EvidenceObjective(part, y_part, None)
            hessian = curvature(rough, theta) * (len(field.x) / len(part.x))
            # the likelihood itself moves by √n from one sample to the next
            theta, value = polish(
                whole, theta, field.kernel.bounds, hessian, halvings=4,
                gtol=0.05 * math.sqrt(len(field.x)), ftol=1e-6, max_iter=self.max_iter,
            )  # fmt: skip
        else:
            value = whole.at(theta, slope=False)[0]
        with torch.no_grad():
            field.theta.copy_(torch.as_tensor(theta))
        history.objective.append(value)
        energy.observe(field, y)
