r"""Conjugate gradients and steepest descent: :math:`Ax = b` as the minimum of
:math:`\tfrac12x^\top Ax - b^\top x`, and their use on any function.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from groundstate.math.linalg.conjugate_gradients import steps
from groundstate.math.optim.line_search import Search, search
from groundstate.math.optim.objective import Function, Objective, Space
from groundstate.math.optim.result import IndefiniteError, OptimResult
from groundstate.math.optim.walk import Walk

Product = Callable[[Tensor], Tensor]


class Solved(NamedTuple):
    """State of a linear solver: the last point, residual norms, products, bad direction."""

    path: list[Tensor]
    steps: list[float]
    residual: float
    products: int
    converged: bool
    bad: tuple[Tensor, float] | None  # direction without positive curvature


def cg(
    A: Any,
    b: Any,
    M: Any = None,
    *,
    x0: Any = None,
    rtol: float = 1e-8,
    max_iter: int | None = None,
) -> OptimResult:
    r"""Solve :math:`Ax = b` with A positive definite, in at most n steps but for rounding.

    .. math::
        \alpha = \frac{r^\top z}{d^\top Ad}, \quad x \leftarrow x + \alpha d, \quad
        r \leftarrow r - \alpha Ad, \quad z = Mr, \quad
        d \leftarrow z + \frac{r^\top z}{r_{old}^\top z_{old}}\,d .

    Parameters
    ----------
    A : matrix ``(n, n)`` (NumPy, torch or sparse) or a function :math:`v \mapsto Av`
    b : right-hand side ``(n,)``
    M : preconditioner, about :math:`A^{-1}`, a matrix or a function
    x0 : start; 0 by default
    rtol : stop when :math:`\|r\| \le` rtol :math:`\|b\|`
    max_iter : steps at most; 10 n by default

    Returns
    -------
    OptimResult ; ``fun`` is :math:`\tfrac12x^\top Ax - b^\top x`, ``grad_norm`` is
    :math:`\|b - Ax\|`, ``njev`` counts products with A

    Raises
    ------
    IndefiniteError : if :math:`d^\top Ad \le 0`; its ``direction`` is that d

    Examples
    --------
    >>> import numpy as np
    >>> A, b = np.array([[3.0, 2.0], [2.0, 6.0]]), np.array([2.0, -8.0])
    >>> cg(A, b, x0=[-2.0, -2.0]).path.round(6).tolist()
    [[-2.0, -2.0], [0.08, -0.613333], [2.0, -2.0]]
    """
    return _linear("cg", A, b, M, x0, rtol, max_iter)


def steepest_descent(
    A: Any,
    b: Any,
    *,
    x0: Any = None,
    rtol: float = 1e-8,
    max_iter: int | None = None,
) -> OptimResult:
    r"""Solve :math:`Ax = b` by :math:`x \leftarrow x + \frac{r^\top r}{r^\top Ar}\,r`,
    :math:`r = b - Ax`.

    Every step is exact along r, so successive residuals are orthogonal; the number of steps grows
    with the condition of A. Parameters, answer and errors as in ``cg``.

    Examples
    --------
    >>> found = steepest_descent([[2.0, 0.0], [0.0, 2.0]], [2.0, 4.0])
    >>> found.nit, found.x.tolist()
    (1, [1.0, 2.0])
    """
    return _linear("steepest", A, b, None, x0, rtol, max_iter)


def _linear(
    kind: str, A: Any, b: Any, M: Any, x0: Any, rtol: float, max_iter: int | None
) -> OptimResult:
    space = Space(b)
    rhs = space.start
    x = torch.zeros_like(rhs) if x0 is None else torch.as_tensor(x0).to(rhs).reshape(-1)
    if x.shape != rhs.shape:
        raise ValueError(f"x0 has {x.numel()} numbers, but b has {rhs.numel()}")
    times = _product(A, space, rhs, "A")
    precondition = None if M is None else _product(M, space, rhs, "M")
    limit = (10 * len(rhs) if kind == "cg" else 10_000) if max_iter is None else max_iter
    small = rtol * float(rhs.norm())
    done = conjugate(times, rhs, x, precondition, small, limit, restart=kind == "steepest")
    x = done.path[-1]
    if done.bad is not None:
        d, curvature = done.bad
        raise IndefiniteError(
            f"A is not positive definite: the direction met in step {len(done.steps)} has "
            f"curvature {curvature:.6g}, so the quadratic has no minimum; .direction holds it",
            space.give(d),
            curvature,
            space.give(x),
        )
    fun = 0.5 * float(x @ times(x)) - float(rhs @ x)
    reason = (
        f"the residual is at most rtol={rtol} of b"
        if done.converged
        else f"max_iter={limit} iterations were not enough"
    )
    return OptimResult(
        space.give(x), fun, done.residual, len(done.steps), len(done.steps) + 1, done.products,
        space.give(torch.stack(done.path)), reason, done.converged, tuple(done.steps),
    )  # fmt: skip


def _product(A: Any, space: Space, like: Tensor, name: str) -> Product:
    """Products with a matrix or with what a function gives, on flat torch vectors."""
    if callable(A) and not isinstance(A, Tensor) and not hasattr(A, "shape"):
        return lambda v: torch.as_tensor(A(space.give(v))).to(like).reshape(-1)
    if isinstance(A, Tensor):
        matrix = A.to(like)
    elif hasattr(A, "toarray") or (not hasattr(A, "__array__") and hasattr(A, "matvec")):
        return lambda v: torch.as_tensor(A @ v.cpu().numpy()).to(like)  # sparse, LinearOperator
    else:
        matrix = torch.as_tensor(A).to(like)
    n = len(like)
    if matrix.shape != (n, n):
        raise ValueError(f"{name} must be ({n}, {n}) to fit b, got {tuple(matrix.shape)}")
    return lambda v: matrix @ v


def conjugate(
    times: Product,
    b: Tensor,
    x: Tensor,
    precondition: Product | None,
    small: float,
    max_iter: int,
    *,
    restart: bool = False,
    keep_path: bool = True,
) -> Solved:
    """The iteration of ``cg`` on flat vectors; stops at a direction without positive curvature.

    ``restart`` takes the (preconditioned) residual anew in every step: steepest descent.
    """
    path, lengths, bad = list[Tensor](), list[float](), None
    for step in steps(times, b - times(x), x, precondition, restart=restart):
        residual = step.residual
        if step.direction is not None:
            bad = step.direction, step.curvature
            break
        if path:
            lengths.append(step.length)
        if not keep_path:
            path.clear()
        path.append(step.x)
        if residual <= small or len(lengths) >= max_iter or not math.isfinite(residual):
            break
    products = 1 + len(lengths) + (bad is not None)
    return Solved(path, lengths, residual, products, residual <= small, bad)


def nonlinear_cg(
    f: Function,
    x0: Any,
    *,
    grad: Function | None = None,
    line_search: Search = "wolfe",
    c2: float = 0.1,
    tol: float = 1e-8,
    max_iter: int = 2000,
    keep_path: bool = True,
) -> OptimResult:
    r"""Minimise f along :math:`d \leftarrow -g + \beta d`,
    :math:`\beta = \max(0,\, g^\top(g - g_{old})/\|g_{old}\|^2)` (Polak-Ribière+).

    On a quadratic with exact steps it is ``cg``. Where :math:`\beta = 0` or d does not descend, it
    starts anew from the gradient.

    Parameters
    ----------
    f : function of a point
    x0 : start
    grad : gradient of f; None differentiates
    line_search : "wolfe" or "exact"
    c2 : how much of the slope a Wolfe step may leave; conjugate directions need good steps
    tol : stop when :math:`\|\nabla f\| \le` tol
    max_iter : steps at most
    keep_path : remember all points

    Examples
    --------
    >>> nonlinear_cg(lambda x: ((x - 1) ** 4).sum() + (x**2).sum(), [3.0]).x.round(5).tolist()
    [0.41025]
    """
    walk = Walk(Objective(f, x0, grad), tol, max_iter, keep_path)
    d, alpha, slope = -walk.g, 0.0, 0.0
    while not walk.stops():
        new = float(walk.g @ d)
        if not new < 0:
            d = -walk.g
            new = float(walk.g @ d)
        first = 1.0 / max(1.0, float(d.norm())) if alpha == 0 else alpha * slope / new
        alpha, _, _, reason, ok = search(
            walk.objective, walk.x, d, line_search, alpha0=max(first, 1e-12), c2=c2
        )
        if alpha == 0 or not ok:
            walk.fail(reason)
            break
        slope, old = new, walk.g
        walk.move(alpha * d, alpha)
        beta = max(0.0, float(walk.g @ (walk.g - old)) / float(old @ old))
        d = -walk.g + beta * d
    return walk.result()
