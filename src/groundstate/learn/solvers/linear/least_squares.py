r"""Least squares and ridge: the closed form of a linear squared energy, on the rows themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from scipy.linalg.lapack import dpotrf, dpotrs
from torch import Tensor

from groundstate.compute.reduce import current
from groundstate.energy.basic import SquaredEnergy
from groundstate.learn.base import History, Problem
from groundstate.learn.penalties.norms import L2, plain_l2
from groundstate.learn.solvers.linear.least_squares_rows import Rows
from groundstate.learn.solvers.linear.least_squares_sums import RegressionSums, is_sparse
from groundstate.learn.solvers.passes import at_once
from groundstate.registry import solvers

WELL_CONDITIONED = 1e-5  # smallest pivot of the unit-diagonal Gram matrix that is trusted
REFINED = 0.03  # pivots from which a step of refinement would change no digit that matters
SPARSE_GRAM = 1000  # columns up to which sparse rows are solved by their Gram matrix


class OutputL2(L2):
    r""":math:`\Omega(W) = \tfrac12\sum_j s_j\|W_j\|^2`: a strength of its own for every output.

    Parameters
    ----------
    strength : Tensor, ``(m,)``

    Examples
    --------
    >>> OutputL2(torch.tensor([1.0, 2.0])).value_of(torch.ones(2, 3))
    tensor(4.5000)
    """

    def value_of(self, theta: Tensor) -> Tensor:
        return 0.5 * (torch.as_tensor(self.strength)[:, None] * theta.square()).sum()


@solvers.register(
    formula=r"W = (X^\top w X + \lambda)^{-1} X^\top w Y", make=lambda energy: LeastSquares()
)
@dataclass(frozen=True)
class LeastSquares:
    r"""Solve :math:`\min_{W,b} \tfrac12\sum_i w_i\|y_i - Wx_i - b\|^2 + \tfrac\lambda2\|W\|^2`.

    Rows are centred first, so large means cost no digits. While the Gram matrix is well conditioned
    one Cholesky factor gives the solution, with a step of iterative refinement where that matters;
    otherwise an orthogonal decomposition of the rows gives the one of smallest norm. With a penalty
    and fewer rows than columns the Gram matrix of the rows is factored instead. Sparse rows with
    many columns are solved by LSMR or conjugate gradients. Everything summed over rows is summed
    over shards.

    Parameters
    ----------
    way : "auto", "gram", "svd" or "iterative"
    positive : allow no weight below zero
    singular : report the singular values of the centred rows
    tol, max_iter : of the iterative way
    """

    way: Literal["auto", "gram", "svd", "iterative"] = "auto"
    positive: bool = False
    singular: bool = False
    tol: float = 1e-12
    max_iter: int | None = None

    def reason_against(self, problem: Problem) -> str | None:
        energy = problem.energy
        if not isinstance(energy, SquaredEnergy) or energy.net is not None:
            return "it is for a linear squared energy"
        if not problem.rule.contrast_is_constant(energy):
            return f"the contrast of {type(problem.rule).__name__} depends on θ"
        if not problem.is_resident or set(problem.names) != {"x", "y"}:
            return "it needs resident x and y"
        if problem.penalty is not None and not plain_l2(problem.penalty):
            return "its only penalty is L2 on the weights"
        return None

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        energy = problem.energy
        assert isinstance(energy, SquaredEnergy)
        with at_once(problem, "LeastSquares") as history:
            strength: Any = problem.penalty.strength if isinstance(problem.penalty, L2) else 0.0
            self._solve(problem, energy, torch.as_tensor(strength, dtype=torch.float64), history)
        return history

    def _solve(
        self, problem: Problem, energy: SquaredEnergy, strength: Tensor, history: History
    ) -> None:
        x, y, w = problem.resident["x"], problem.resident["y"], problem.sample_weight
        n, p = problem.rows, x.shape[1]
        alone, few = current().world == 1, n < p
        many = is_sparse(x) and p > SPARSE_GRAM
        wanted = self.way == "gram" or (self.way == "auto" and not few and not many)
        if wanted and not self.positive:
            sums = RegressionSums.of(x, y, w, energy.b is not None)
            found = solve_sums(sums, strength)
            if found is not None:
                W, pivot, rank = found
                if pivot < REFINED and not is_sparse(x):
                    W = _refined(W, sums, strength, Rows(x, y, w, sums.mean_x, sums.mean_y))
                self._store(energy, W, sums.mean_x, sums.mean_y)
                history.extra["rank"] = [float(rank)]
                if self.singular:
                    history.extra["singular"] = _roots(sums.xx)
                return
        mean_x, mean_y = _means(problem, energy.b is not None)
        rows = Rows(x, y, w, mean_x, mean_y)
        at = strength.to(rows.mean_x.device)
        if self.positive:
            W = rows.positive(at)
        elif self.way == "iterative" or (many and self.way == "auto" and alone):
            W, steps = rows.iterative(at, self.tol, self.max_iter)
            history.extra["steps"] = [float(steps)]
        else:
            dual = rows.dual(at) if few and bool((at > 0).all()) and self.way == "auto" else None
            if dual is None:
                dual, singular = rows.smallest(at)
                history.extra["rank"] = [float((singular > 0).sum())]
                history.extra["singular"] = singular.tolist()
            W = dual
        self._store(energy, W, mean_x, mean_y)

    @staticmethod
    def _store(energy: SquaredEnergy, W: Any, mean_x: Any, mean_y: Any) -> None:
        energy.W.copy_(torch.as_tensor(W).T)
        if energy.b is not None:
            energy.b.copy_(torch.as_tensor(mean_y - mean_x @ W))


@torch.no_grad()
def from_sums(
    energy: SquaredEnergy, sums: RegressionSums, strength: Tensor, positive: bool = False
) -> None:
    """Set W and b to the minimiser for rows that only their sums are known of."""
    found = None if positive else solve_sums(sums, strength)
    if found is not None:
        W = found[0]
    else:
        values, vectors = torch.linalg.eigh(torch.as_tensor(sums.xx))
        kept = values > float(values.max().clamp_min(0)) * len(values) * 2.0**-50
        root = values[kept].sqrt()
        pieces = [vectors[:, kept].T @ torch.as_tensor(sums.xy), vectors[:, kept] * root]
        zero = torch.zeros_like(root[:1]).new_zeros(pieces[1].shape[0])
        few = Rows(pieces[1].T.contiguous(), pieces[0] / root[:, None], None, zero, zero[:1])
        W = few.positive(strength) if positive else few.smallest(strength)[0]
    LeastSquares._store(energy, W, sums.mean_x, sums.mean_y)


def solve_sums(sums: RegressionSums, strength: Tensor) -> tuple[Any, float, int] | None:
    """W ``(p, m)``, the smallest pivot and the rank; None where the sums are nearly singular."""
    if strength.ndim:
        columns = []
        for j, value in enumerate(strength):
            one = RegressionSums(
                sums.weight, sums.mean_x, sums.mean_y[j : j + 1], sums.xx, sums.xy[:, j : j + 1],
                sums.yy[j : j + 1],
            )  # fmt: skip
            found = solve_sums(one, value)
            if found is None:
                return None
            columns.append(found)
        join = np.hstack if isinstance(sums.xx, np.ndarray) else torch.hstack
        W = join([c[0] for c in columns])
        return W, min(c[1] for c in columns), min(c[2] for c in columns)
    apply, pivot, rank = _inverse(sums, float(strength))
    return None if apply is None else (apply(sums.xy), pivot, rank)


def _inverse(sums: RegressionSums, strength: float) -> tuple[Any, float, int]:
    """(XᵀwX + λ)⁻¹ as a function, scaled to a unit diagonal; constant columns get weight zero."""
    gram = sums.xx.copy() if isinstance(sums.xx, np.ndarray) else sums.xx.clone()
    p = len(gram)
    diagonal = gram.reshape(-1)[:: p + 1]
    flat = diagonal <= 0
    rank = p - int(flat.sum())
    diagonal += strength
    if rank < p:
        diagonal[flat] = 1.0
    scale = 1.0 / diagonal**0.5
    gram *= scale[:, None]
    gram *= scale
    if isinstance(gram, np.ndarray):
        factor, failed = dpotrf(gram, lower=1, clean=0)
        pivot = 0.0 if failed else float(factor.reshape(-1, order="A")[:: p + 1].min())
    else:
        factor, info = torch.linalg.cholesky_ex(gram)
        failed, pivot = int(info), float(factor.diagonal().min())
    if failed or pivot < WELL_CONDITIONED:
        return None, pivot, rank

    def apply(right: Any) -> Any:
        right = right * scale[:, None]
        if isinstance(right, np.ndarray):
            found = dpotrs(factor, right, lower=1)[0] * scale[:, None]
        else:
            found = torch.cholesky_solve(right, factor) * scale[:, None]
        if rank < p:
            found[flat] = 0.0
        return found

    return apply, pivot, rank


def _refined(W: Any, sums: RegressionSums, strength: Tensor, rows: Rows) -> Any:
    """One step of iterative refinement: the residual of the rows, not of their products."""
    at = torch.as_tensor(W)
    residual = rows.gradient(at) - strength.to(at.device) * at
    given = residual.numpy() if isinstance(W, np.ndarray) else residual
    change = RegressionSums(sums.weight, sums.mean_x, sums.mean_y, sums.xx, given, sums.yy)
    found = solve_sums(change, strength)
    return W if found is None else W + found[0]


def _means(problem: Problem, intercept: bool) -> tuple[Tensor, Tensor]:
    x, y, w = problem.resident["x"], problem.resident["y"], problem.sample_weight
    if not intercept:
        # a sparse x gives no dense tensor of its own kind
        return y.new_zeros(x.shape[1]).double(), y.new_zeros(y.shape[1]).double()
    ones = torch.ones(len(y), dtype=torch.float64, device=y.device) if w is None else w.double()
    if is_sparse(x):
        from groundstate.learn.solvers.linear.least_squares_sums import scipy_rows

        over_x = torch.from_numpy(scipy_rows(x).T @ ones.numpy())
    else:
        over_x = x.sum(0, dtype=torch.float64) if w is None else ones @ x.double()
    sums = current().sum_dict({"x": over_x, "y": ones @ y.double(), "w": ones.sum().reshape(1)})
    return sums["x"] / sums["w"], sums["y"] / sums["w"]


def _roots(gram: Any) -> list[float]:
    values = torch.linalg.eigvalsh(torch.as_tensor(gram)).flip(0).clamp_min(0).sqrt()
    singular: list[float] = values.tolist()
    return singular
