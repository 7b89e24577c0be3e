r"""Conjugate gradients for many right sides at once, and log-determinants from their coefficients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor


class Operator(Protocol):
    """A symmetric positive definite matrix that only multiplies."""

    def __matmul__(self, v: Tensor) -> Tensor: ...


@dataclass(frozen=True)
class Solved:
    r"""What conjugate gradients found.

    Attributes
    ----------
    x : ``(..., n, r)``, :math:`A^{-1}B`
    steps : products with A
    error : ``(..., r)``, :math:`\|B - Ax\|/\|B\|`
    diagonal, off : ``(..., r, steps)``, ``(..., r, steps - 1)``, the tridiagonal matrix of each column in the
        Krylov basis of :math:`P^{-1/2}AP^{-1/2}`; a column that is done has ones on the diagonal
    """

    x: Tensor
    steps: int
    error: Tensor
    diagonal: Tensor
    off: Tensor


def conjugate(
    A: Operator,
    B: Tensor,
    precondition: Callable[[Tensor], Tensor] = lambda r: r,
    *,
    tol: float = 1e-8,
    max_iter: int = 1000,
) -> Solved:
    r"""Solve :math:`AX = B` for a symmetric positive definite A, all columns of B in one run.

    Parameters
    ----------
    A : matrix, or anything that multiplies columns
    B : ``(..., n, r)``
    precondition : :math:`P^{-1}r` for columns r, with P close to A
    tol : relative residual of every column
    max_iter : products with A at most

    Examples
    --------
    >>> A = torch.tensor([[4.0, 1.0], [1.0, 3.0]])
    >>> conjugate(A, torch.tensor([[1.0], [2.0]])).x.mul(11).round().flatten().tolist()
    [1.0, 7.0]
    """
    X, R = torch.zeros_like(B), B.clone()
    size = B.norm(dim=-2).clamp(min=torch.finfo(B.dtype).tiny)
    Z = precondition(R)
    D, rz = Z.clone(), (R * Z).sum(-2)
    live = R.norm(dim=-2) > tol * size
    diagonal, off = [], []
    before = ratio = torch.zeros_like(rz)
    steps = 0
    for step in range(max_iter):
        if not bool(live.any()):
            break
        AD = A @ D
        energy = (D * AD).sum(-2)
        live = live & (energy > 0)  # rounding has used up what can be known of a column
        a = torch.where(live, rz / torch.where(live, energy, 1.0), 0.0)
        X += a[..., None, :] * D
        R -= a[..., None, :] * AD
        Z = precondition(R)
        new = (R * Z).sum(-2)
        b = torch.where(live, new / torch.where(rz == 0, 1.0, rz), 0.0)
        inverse = torch.where(live, 1.0 / torch.where(a == 0, 1.0, a), 1.0)
        diagonal.append(torch.where(live, inverse + ratio * before, 1.0))
        off.append(torch.where(live, b.clamp(min=0).sqrt() * inverse, 0.0))
        before, ratio = inverse, b
        D = Z + b[..., None, :] * D
        rz = new
        steps = step + 1
        going = live & (R.norm(dim=-2) > tol * size)
        off[-1] = torch.where(going, off[-1], 0.0)
        live = going
    none = B.new_zeros((*rz.shape, 0))
    return Solved(
        X,
        steps,
        R.norm(dim=-2) / size,
        torch.stack(diagonal, -1) if diagonal else none,
        torch.stack(off[:-1], -1) if len(off) > 1 else none,
    )


class Step(NamedTuple):
    r"""Where conjugate gradients are after a step.

    Attributes
    ----------
    x : the point
    residual : :math:`\|b - Ax\|`
    length : the step along the last direction; 0 before the first
    direction, curvature : the next direction d and :math:`d^\top Ad` where that is not positive, and the
        steps end; else None and 0
    """

    x: Any
    residual: float
    length: float = 0.0
    direction: Any = None
    curvature: float = 0.0


def steps(
    times: Callable[[Any], Any],
    r: Any,
    x: Any,
    precondition: Callable[[Any], Any] | None = None,
    *,
    restart: bool = False,
    flat: float = 0.0,
) -> Iterator[Step]:
    r"""Conjugate gradients for one right side, a step at a time, the start first.

    Parameters
    ----------
    times : products Ad, for arrays or tensors of the shape of x
    r : the residual b − Ax of the start
    x : start
    precondition : :math:`P^{-1}r`
    restart : take the residual anew in every step: steepest descent
    flat : curvature for each squared length of d up to which A counts as flat

    Examples
    --------
    >>> A = torch.tensor([[4.0, 1.0], [1.0, 3.0]])
    >>> b = torch.tensor([1.0, 2.0])
    >>> [round(step.residual, 4) for step, _ in zip(steps(lambda d: A @ d, b, 0 * b), range(3))]
    [2.2361, 0.559, 0.0]
    """
    z = r if precondition is None else precondition(r)
    d, rz = z, float((r * z).sum())
    square = rz if precondition is None else float((r * r).sum())
    yield Step(x, square**0.5)
    while True:
        product = times(d)
        curvature = float((d * product).sum())
        if not curvature > (flat * float((d * d).sum()) if flat else 0.0):
            yield Step(x, square**0.5, 0.0, d, curvature)
            return
        a = rz / curvature
        x, r = x + a * d, r - a * product
        z = r if precondition is None else precondition(r)
        before, rz = rz, float((r * z).sum())
        square = rz if precondition is None else float((r * r).sum())
        d = z if restart else z + (rz / before) * d
        yield Step(x, square**0.5, a)


def truncated(times: Callable[[Any], Any], b: Any, goal: float, max_iter: int) -> Any:
    r"""Solve :math:`Ax = b` until :math:`\|b - Ax\|` is at most ``goal``, or A curves no more.

    Parameters
    ----------
    times : products Ad, for arrays or tensors of the shape of b
    b : array or tensor
    goal : length of the residual
    max_iter : products at most

    Examples
    --------
    >>> A = torch.tensor([[4.0, 1.0], [1.0, 3.0]])
    >>> truncated(lambda d: A @ d, torch.tensor([1.0, 2.0]), 1e-6, 10).mul(11).round().tolist()
    [1.0, 7.0]
    """
    x = b * 0.0
    for count, step in enumerate(steps(times, b, x, flat=1e-16)):
        x = step.x
        if step.residual <= goal or count == max_iter or step.direction is not None:
            break
    return x


def log_quadratic(solved: Solved) -> Tensor:
    r""":math:`e_1^\top\log(T)e_1` of the tridiagonal matrix of each column, ``(r,)``.

    Times the squared length of its start it is the Gauss quadrature (Lanczos) estimate of
    :math:`z^\top\log(P^{-1/2}AP^{-1/2})z`, the mean of which over random z is a log-determinant.

    Examples
    --------
    >>> A = torch.diag(torch.tensor([1.0, 2.0, 4.0]).double())
    >>> z = torch.ones(3, 1).double()
    >>> round(float(3 * log_quadratic(conjugate(A, z, tol=1e-12)) - torch.logdet(A)), 6)
    0.0
    """
    if not solved.steps:
        return solved.x.new_zeros(solved.x.shape[1])
    T = torch.diag_embed(solved.diagonal)
    T = T + torch.diag_embed(solved.off, 1) + torch.diag_embed(solved.off, -1)
    values, vectors = torch.linalg.eigh(T)  # (r, k), (r, k, k)
    least = torch.finfo(values.dtype).tiny
    return (vectors[:, 0].square() * values.clamp(min=least).log()).sum(1)
