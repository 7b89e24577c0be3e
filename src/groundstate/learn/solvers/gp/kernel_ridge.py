r"""Kernel ridge regression: one linear system, and all strengths and folds from one decomposition."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.energy.base import Energy
from groundstate.energy.kernels.squared import KernelSquaredEnergy
from groundstate.errors import Unreliable, Unsupported
from groundstate.learn.base import History, Penalty, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.solvers.gp.evidence import merged
from groundstate.math.kernels import Geometry, Precomputed
from groundstate.registry import solvers


class RidgeNorm(Penalty):
    r""":math:`\Omega = \tfrac12\sum_j \alpha_j\|f_j\|^2`, the norm of each output's function.

    Parameters
    ----------
    alpha : one strength, or one for each output

    Examples
    --------
    >>> from groundstate.math.kernels import Linear
    >>> e = KernelSquaredEnergy(1, 1, Linear())
    >>> e.set(torch.tensor([[2.0]]), torch.tensor([[0.5]]))
    >>> RidgeNorm([2.0])(e).item()
    1.0
    """

    alpha: Tensor

    def __init__(self, alpha: float | Sequence[float]) -> None:
        super().__init__()
        values = [float(a) for a in np.atleast_1d(np.asarray(alpha, dtype=float))]
        if not all(a >= 0 for a in values):
            raise ValueError(f"alpha must not be negative, got {alpha}")
        self.register_buffer("alpha", torch.tensor(values, dtype=torch.float64))

    def value(self, energy: Energy) -> Tensor:
        if not isinstance(energy, KernelSquaredEnergy):
            raise Unsupported(f"RidgeNorm is for sums of kernels, got {type(energy).__name__}")
        norms = energy.norms()
        return 0.5 * (self.alpha.to(norms) * norms).sum()


@solvers.register(formula=r"(K + \alpha w^{-1})\,a = y", make=lambda energy: KernelLeastSquares())
@dataclass(frozen=True)
class KernelLeastSquares:
    r"""Solve :math:`(K + \alpha w^{-1})a = y`; rows of equal content become one of summed weight.

    A system that is singular gets its solution of least norm.
    """

    def reason_against(self, problem: Problem) -> str | None:
        if not isinstance(problem.energy, KernelSquaredEnergy):
            return "it is for regression by a sum of kernels"
        if not problem.is_resident or set(problem.names) != {"x", "y"}:
            return "it needs resident x and y"
        if problem.penalty is not None and not isinstance(problem.penalty, RidgeNorm):
            return "its only penalty is RidgeNorm"
        return None

    def run(self, problem: Problem) -> History:
        energy = problem.energy
        assert isinstance(energy, KernelSquaredEnergy)
        history = History(solver="KernelLeastSquares", converged=True, stop="closed form")
        start = time.perf_counter()
        with Monitor(problem.callbacks, Run(problem, history, 1)) as monitor:
            x, y = problem.resident["x"].detach(), problem.resident["y"].detach()
            w, kernel = problem.sample_weight, energy.kernel
            if isinstance(kernel, Precomputed):
                K, centers = x, torch.arange(len(x), device=x.device)[:, None]
            else:
                index, w = merged(x, y, None, w)
                if len(index) != len(x) or w is not None:
                    x, y = x[index], y[index]
                K, centers = kernel.of(Geometry(x, x)).detach(), x
            penalty = problem.penalty
            alpha = penalty.alpha if isinstance(penalty, RidgeNorm) else torch.zeros(1)
            a = ridge_coefficients(K.double(), y.double(), alpha.to(x.device), w)
            energy.set(centers, a)
            _warn_of_rounding(K, y, a, x.dtype)
            history.n_iter = 1
            history.seconds.append(time.perf_counter() - start)
            monitor.epoch(0.0)
        return history


def _warn_of_rounding(K: Tensor, y: Tensor, a: Tensor, dtype: torch.dtype) -> None:
    r"""Say so where :math:`\sum_ia_ik_i` cancels: what rounding leaves, ε‖a‖ max k, is seen beside y."""
    left = torch.finfo(dtype).eps * a.norm(dim=0) * K.diagonal().abs().max()  # (m,)
    size = y.abs().amax(0)
    if bool((left > 0.01 * size).any()):
        share = float((left / size.clamp_min(1e-300)).max())
        warnings.warn(
            f"rounding alone may move predictions by {share:.1g} of the largest target, because the "
            "kernel's values are that large beside alpha; scale the inputs or raise alpha",
            Unreliable,
            stacklevel=2,
        )


def ridge_coefficients(K: Tensor, Y: Tensor, alpha: Tensor, weight: Tensor | None = None) -> Tensor:
    r"""The a of :math:`(K + \alpha w^{-1})a = Y`, ``(n, m)``, with one α or one for each output.

    Examples
    --------
    >>> K, y = torch.eye(2).double(), torch.ones(2, 1).double()
    >>> a = ridge_coefficients(K, y, torch.tensor([1.0]), torch.tensor([1.0, 3.0]))
    >>> a.flatten().numpy().round(6).tolist()
    [0.5, 0.75]
    """
    root = None if weight is None else weight.to(K).sqrt()[:, None]
    if root is not None:
        K, Y = K * root * root.T, Y * root
    alpha = alpha.to(K)
    if len(alpha) not in (1, Y.shape[1]):
        raise ValueError(
            f"alpha must be one number or one for each of the {Y.shape[1]} targets, got "
            f"{len(alpha)} of them"
        )
    groups = [(alpha[0], Y)] if len(alpha) == 1 else list(zip(alpha, Y.split(1, 1), strict=True))
    found = torch.cat([_shifted(K, strength, part) for strength, part in groups], 1)
    return found if root is None else found * root


def _shifted(K: Tensor, alpha: Tensor, Y: Tensor) -> Tensor:
    A = K.clone()
    A.diagonal().add_(alpha)
    L, failed = torch.linalg.cholesky_ex(A)
    if not bool(failed):
        return torch.cholesky_solve(Y, L)
    return torch.linalg.lstsq(A, Y, driver="gelsd" if A.device.type == "cpu" else None).solution


@dataclass(frozen=True)
class KernelRidgePath:
    r"""All ridge solutions of one Gram matrix: strengths and folds from one decomposition.

    With :math:`K = Q\Lambda Q^\top`, :math:`a = Q(\Lambda + \alpha)^{-1}Q^\top Y` for every α, and the
    residuals of a fold h that is left out are :math:`G_{hh}^{-1}a_h`, :math:`G = (K + \alpha)^{-1}`,
    without fitting again.

    Parameters
    ----------
    K : ``(n, n)``
    Y : ``(n, m)``

    Examples
    --------
    >>> x = torch.arange(5.0).double()[:, None]
    >>> path = KernelRidgePath(x @ x.T, x)
    >>> round(float(path.left_out(1.0)[1]), 4)
    0.0333
    """

    K: Tensor
    Y: Tensor

    @cached_property
    def spectrum(self) -> tuple[Tensor, Tensor, Tensor]:
        """Λ ``(n,)``, Q ``(n, n)`` and QᵀY ``(n, m)``."""
        values, vectors = torch.linalg.eigh(self.K)
        return values.clamp(min=0), vectors, vectors.T @ self.Y

    def coefficients(self, alphas: Sequence[float] | Tensor) -> Tensor:
        """Solutions for many strengths as one stack, ``(P, n, m)``."""
        values, Q, QY = self.spectrum
        strengths = torch.as_tensor(alphas).to(values)[:, None]
        return Q @ (QY / (values + strengths)[..., None])

    def left_out(self, alpha: float, folds: Sequence[NDArray[np.int64]] | None = None) -> Tensor:
        """Residuals of every row when its fold is not in the fit, ``(n, m)``; None: one by one."""
        values, Q, QY = self.spectrum
        gain = 1.0 / (values + alpha)
        a = Q @ (gain[:, None] * QY)
        if folds is None:
            return a / (Q.square() @ gain)[:, None]
        out = torch.full_like(a, torch.nan)  # rows in no fold are never left out
        for fold in folds:
            at = torch.as_tensor(fold, device=Q.device)
            half = Q[at] * gain.sqrt()
            out[at] = torch.linalg.solve(half @ half.T, a[at])
        return out

    def errors(
        self, alphas: Sequence[float], folds: Sequence[NDArray[np.int64]] | None = None
    ) -> NDArray[np.float64]:
        """Mean squared error of rows left out, for every strength, ``(P,)``."""
        found = [float(self.left_out(a, folds).square().nanmean()) for a in alphas]
        return np.array(found)
