r"""Linear systems and least squares, with a word on how they were solved."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from groundstate.errors import ShapeError
from groundstate.math.arrays import as_tensor, to_numpy
from groundstate.math.linalg.checks import matrix
from groundstate.math.linalg.conjugate_gradients import conjugate
from groundstate.math.linalg.operator import LinearOperator
from groundstate.math.linalg.predicates import is_symmetric

METHODS = ("auto", "cholesky", "lu", "qr", "svd", "cg")


class SolveInfo:
    r"""How a system was solved.

    Attributes
    ----------
    method : "cholesky", "lu", "qr", "svd" or "cg"; an array of them where the systems of a batch differ
    residual : :math:`\|b - Ax\|/\|b\|`, ``(...,)``
    condition : :math:`s_1/s_r`, computed when it is asked for; of the part of A that conjugate gradients
        saw for "cg"
    steps : products with A, for "cg"
    """

    def __init__(
        self,
        method: Any,
        residual: Any,
        condition: Callable[[], Any],
        steps: int | None = None,
    ) -> None:
        self.method, self.residual, self.steps = method, residual, steps
        self._condition = condition

    @cached_property
    def condition(self) -> Any:
        return self._condition()

    def __repr__(self) -> str:
        return f"SolveInfo(method={self.method!r}, residual={self.residual})"


def solve(
    A: Any, b: Any, method: str = "auto", *, tol: float = 1e-12, max_iter: int | None = None
) -> tuple[Any, SolveInfo]:
    r"""x with :math:`Ax = b`; where there is none or more than one, the shortest x of least
    :math:`\|Ax - b\|`.

    ======== ==================================================================================
    cholesky :math:`LL^\top x = b`, A symmetric positive definite
    lu       with exchanged rows, A square and regular
    qr       :math:`Rx = Q^\top b`, A with independent columns; least squares if there are more rows
    svd      :math:`x = A^+b` for any A; singular values up to :math:`\max(m,n)\,\varepsilon s_1` are zero
    cg       products with A only, A symmetric positive definite: a matrix or a ``LinearOperator``
    auto     Cholesky where it applies, else LU; SVD where A is singular or not square
    ======== ==================================================================================

    Parameters
    ----------
    A : ``(..., m, n)``, or a ``LinearOperator`` for "cg"
    b : ``(m,)`` or ``(..., m)`` like the batch of A, or columns ``(..., m, r)``
    method : see above
    tol, max_iter : relative residual at which "cg" stops, and its products at most (10 n)

    Returns
    -------
    x : ``(..., n)`` or ``(..., n, r)``
    info : SolveInfo

    Raises
    ------
    numpy.linalg.LinAlgError : where A is not what the method needs

    Examples
    --------
    >>> x, info = solve([[3.0, 1.0], [1.0, 2.0]], [5.0, 5.0])
    >>> x.round(12).tolist(), info.method, round(info.condition, 4)
    ([1.0, 2.0], 'cholesky', 2.618)
    >>> x, info = solve([[1.0, 1.0], [1.0, 1.0]], [2.0, 2.0])
    >>> x.round(12).tolist(), info.method
    ([1.0, 1.0], 'svd')
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    numpy = not isinstance(b, Tensor) and not isinstance(A, Tensor)
    give = to_numpy if numpy else lambda value: value
    operator: LinearOperator | None
    if isinstance(A, LinearOperator):
        if method not in ("auto", "cg"):
            raise ValueError(f"a LinearOperator is solved by method='cg', got {method!r}")
        operator, rhs, method = A, as_tensor(b, "b"), "cg"
        vector = rhs.ndim == 1 or tuple(rhs.shape) == (*operator.shape[:-2], operator.shape[-2])
    else:
        left = matrix(as_tensor(A, "A", b if isinstance(b, Tensor) else None))
        rhs = as_tensor(b, "b", left)
        dtype = torch.promote_types(left.dtype, rhs.dtype)
        left, rhs = left.to(dtype), rhs.to(dtype)
        vector = rhs.ndim == 1 or rhs.shape == left.shape[:-1]
        operator = LinearOperator.of(left) if method == "cg" else None
    rows = operator.shape[-2] if operator is not None else left.shape[-2]
    columns = rhs[..., None] if vector else rhs
    if columns.ndim < 2 or columns.shape[-2] != rows:
        raise ShapeError(f"b must have {rows} rows like A, got shape {tuple(rhs.shape)}")
    if operator is not None:
        if rhs.is_complex() or operator.is_complex:
            raise ValueError("method='cg' is for real systems; solve the real and imaginary parts")
        x, steps, bounds = _by_cg(operator, columns, tol, max_iter)
        gap = columns - operator.columns(x)
        info = SolveInfo("cg", give(_relative(gap, columns)), lambda: give(bounds()), steps)
    else:
        columns = columns.expand(*left.shape[:-2], *columns.shape[-2:])
        x, how = _auto(left, columns) if method == "auto" else (BY[method](left, columns), method)
        gap = (columns - left @ x).detach()
        info = SolveInfo(how, give(_relative(gap, columns)), lambda: give(_condition(left)))
    return give(x[..., 0] if vector else x), info


def _relative(gap: Tensor, b: Tensor) -> Tensor:
    size = torch.linalg.matrix_norm(b.detach())
    return torch.linalg.matrix_norm(gap.detach()) / torch.where(size == 0, 1.0, size)


def _condition(A: Tensor) -> Tensor:
    """Largest over smallest singular value that is not zero in floating point."""
    s = torch.linalg.svdvals(A.detach())
    floor = max(A.shape[-2:]) * torch.finfo(A.dtype).eps * s[..., :1]
    least = torch.where(s > floor, s, torch.inf).amin(-1)
    return s[..., 0] / least


def _by_cholesky(A: Tensor, b: Tensor) -> Tensor:
    L, failed = torch.linalg.cholesky_ex(_need_square(A, "cholesky"))
    if bool(failed.any()) or not bool(is_symmetric(A.detach(), _loose(A)).all()):
        raise np.linalg.LinAlgError(
            "method='cholesky' needs a symmetric positive definite A; use method='lu' or 'svd'"
        )
    return torch.cholesky_solve(b, L)


def _by_lu(A: Tensor, b: Tensor) -> Tensor:
    LU, pivots, failed = torch.linalg.lu_factor_ex(_need_square(A, "lu"))
    if bool(failed.any()):
        raise np.linalg.LinAlgError("A is singular; method='svd' gives the shortest solution")
    return torch.linalg.lu_solve(LU, pivots, b)


def _by_qr(A: Tensor, b: Tensor) -> Tensor:
    m, n = A.shape[-2:]
    Q, R = torch.linalg.qr(A)
    diagonal = R.detach().diagonal(dim1=-2, dim2=-1).abs()
    if m < n or bool((diagonal == 0).any()):
        raise np.linalg.LinAlgError(
            f"method='qr' needs independent columns, got A of shape {tuple(A.shape)}; "
            "method='svd' gives the shortest solution"
        )
    return torch.linalg.solve_triangular(R, Q.mH @ b, upper=True)


def _by_svd(A: Tensor, b: Tensor) -> Tensor:
    """The value comes from the factors; the gradient, where one is asked for, from A⁺b as a whole,
    which has one at repeated singular values too.
    """
    rtol = max(A.shape[-2:]) * torch.finfo(A.dtype).eps
    U, s, Vh = torch.linalg.svd(A.detach(), full_matrices=False)
    kept = s > rtol * s[..., :1]
    inverse = torch.where(kept, 1 / torch.where(kept, s, 1.0), 0.0)
    x = Vh.mH @ (inverse[..., None] * (U.mH @ b.detach()))
    if A.requires_grad or b.requires_grad:
        smooth = torch.linalg.pinv(A, rtol=rtol) @ b
        x = x + (smooth - smooth.detach())
    return x


BY: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "cholesky": _by_cholesky,
    "lu": _by_lu,
    "qr": _by_qr,
    "svd": _by_svd,
}


def _auto(A: Tensor, b: Tensor) -> tuple[Tensor, Any]:
    """Each system of a batch by the cheapest method that it allows."""
    names = np.array(["cholesky", "lu", "svd"])
    choice = torch.full(A.shape[:-2], 2, device=A.device)
    if A.shape[-2] == A.shape[-1]:
        least = A.shape[-1] * torch.finfo(A.dtype).eps
        symmetric = is_symmetric(A.detach())
        if bool(symmetric.any()):
            L, failed = torch.linalg.cholesky_ex(A)
            d = L.detach().diagonal(dim1=-2, dim2=-1).abs()
            good = symmetric & (failed == 0) & (d.amin(-1) > least**0.5 * d.amax(-1))
            if bool(good.all()):
                return torch.cholesky_solve(b, L), "cholesky"
            choice = torch.where(good, 0, choice)
        LU, pivots, failed = torch.linalg.lu_factor_ex(A)
        d = LU.detach().diagonal(dim1=-2, dim2=-1).abs()
        good = (failed == 0) & (d.amin(-1) > least * d.amax(-1))
        if bool(good.all()) and bool((choice == 2).all()):
            return torch.linalg.lu_solve(LU, pivots, b), "lu"
        choice = torch.where((choice == 2) & good, 1, choice)
    if bool((choice == 2).all()):
        return _by_svd(A, b), "svd"
    flat, columns, kind = A.flatten(0, -3), b.flatten(0, -3), choice.flatten()
    x = b.new_zeros(len(flat), A.shape[-1], b.shape[-1])
    for i, name in enumerate(names):
        at = (kind == i).nonzero()[:, 0]
        if len(at):
            x = x.index_copy(0, at, BY[name](flat[at], columns[at]))
    return x.reshape(*A.shape[:-2], *x.shape[-2:]), names[choice.cpu().numpy()]


def _loose(A: Tensor) -> float:
    root: float = torch.finfo(A.dtype).eps ** 0.5
    return root * float(A.detach().abs().max()) * A.shape[-1]


def _need_square(A: Tensor, method: str) -> Tensor:
    if A.shape[-1] != A.shape[-2]:
        raise ShapeError(
            f"method={method!r} needs a square A, got {tuple(A.shape)}; use 'qr' or 'svd'"
        )
    return A


def _by_cg(
    A: LinearOperator, b: Tensor, tol: float, max_iter: int | None
) -> tuple[Tensor, int, Callable[[], Tensor]]:
    limit = 10 * A.shape[-1] if max_iter is None else max_iter
    found: dict[str, Any] = {}
    x: Tensor = _Implicit.apply(b, A.tensor, A, tol, limit, found)

    def condition() -> Tensor:
        diagonal = found["diagonal"]
        if not diagonal.shape[-1]:
            return diagonal.new_ones(diagonal.shape[:-2])
        # columns that were done early are filled up with ones, which are no Ritz values
        T = torch.diag_embed(torch.where(diagonal == 1.0, diagonal[..., :1], diagonal))
        T = T + torch.diag_embed(found["off"], 1) + torch.diag_embed(found["off"], -1)
        values = torch.linalg.eigvalsh(T)
        seen: Tensor = (values[..., -1] / values[..., 0]).amax(-1)
        return seen

    return x, found["steps"], condition


class _Implicit(torch.autograd.Function):
    r"""Conjugate gradients with the gradient of the solution itself: for :math:`h = A^{-1}g` it is h in b
    and :math:`-hx^\top` in A.
    """

    @staticmethod
    def forward(
        ctx: Any,
        b: Tensor,
        matrix: Tensor | None,
        A: LinearOperator,
        tol: float,
        max_iter: int,
        found: dict[str, Any],
    ) -> Tensor:
        solved = conjugate(_Columns(A), b, tol=tol, max_iter=max_iter)
        left = torch.linalg.matrix_norm(b - A.columns(solved.x))
        bound = max(1e3 * tol, torch.finfo(b.dtype).eps ** 0.5) * torch.linalg.matrix_norm(b)
        if not bool((left <= bound).all()):
            raise np.linalg.LinAlgError(
                f"conjugate gradients stopped after {solved.steps} of at most {max_iter} products "
                "before they had solved the system; A must be symmetric positive definite, or may need "
                "more products: raise max_iter, or solve A.H @ A x = A.H b"
            )
        found.update(steps=solved.steps, diagonal=solved.diagonal, off=solved.off)
        ctx.A, ctx.tol, ctx.max_iter = A, tol, max_iter
        ctx.save_for_backward(matrix, solved.x)
        return solved.x

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        matrix, x = ctx.saved_tensors
        h = _Implicit.apply(grads[0], matrix, ctx.A, ctx.tol, ctx.max_iter, {})
        to_A = -(h @ x.mH) if ctx.needs_input_grad[1] else None
        return h, to_A, None, None, None, None


class _Columns:
    """An operator as conjugate gradients ask for it."""

    def __init__(self, A: LinearOperator) -> None:
        self.A = A

    def __matmul__(self, v: Tensor) -> Tensor:
        return self.A.columns(v)
