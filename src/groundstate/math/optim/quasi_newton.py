r"""Quasi-Newton methods: curvature learned from gradients, :math:`Hs = y` with
:math:`s = \Delta x`, :math:`y = \Delta\nabla f`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from groundstate.math.optim.line_search import Search, search
from groundstate.math.optim.objective import Function, Objective
from groundstate.math.optim.result import OptimResult
from groundstate.math.optim.walk import Walk

Form = Literal["inverse", "hessian"]
CURVED = 1e-10  # an update needs yᵀs above this share of ‖y‖‖s‖


def is_curved(s: Tensor, y: Tensor) -> bool:
    """Whether a pair shows positive curvature, so that an update keeps the matrix definite."""
    return float(y @ s) > CURVED * float(y.norm()) * float(s.norm())


def bfgs_update(H: Any, s: Any, y: Any, form: Form = "inverse") -> Any:
    r"""One BFGS update of the Hessian or of its inverse.

    .. math::
        \text{hessian:}\quad H + \frac{yy^\top}{y^\top s} - \frac{Hss^\top H}{s^\top Hs}, \qquad
        \text{inverse:}\quad (I - \rho sy^\top)B(I - \rho ys^\top) + \rho ss^\top,
        \quad \rho = 1/y^\top s .

    The result satisfies the secant equation :math:`Hs = y` (:math:`By = s`) and is positive
    definite if ``H`` is. A pair with :math:`y^\top s \le 10^{-10}\|y\|\|s\|` changes nothing.

    Examples
    --------
    >>> import numpy as np
    >>> H = bfgs_update(np.eye(2), np.array([1.0, 0.0]), np.array([3.0, 1.0]), "hessian")
    >>> (H @ [1.0, 0.0]).round(12).tolist()
    [3.0, 1.0]
    """
    if form not in ("inverse", "hessian"):
        raise ValueError(f"form must be 'inverse' or 'hessian', got {form!r}")
    native = isinstance(H, Tensor)
    M, a, b = (torch.as_tensor(v).double() if not native else v for v in (H, s, y))
    new = _updated(M, a, b, form) if is_curved(a, b) else M
    return new if native else new.numpy()


def _updated(M: Tensor, s: Tensor, y: Tensor, form: Form) -> Tensor:
    ys = y @ s
    if form == "hessian":
        Hs = M @ s
        return M + torch.outer(y, y) / ys - torch.outer(Hs, Hs) / (s @ Hs)
    By = M @ y
    # (I − ρsyᵀ)B(I − ρysᵀ) + ρssᵀ, multiplied out
    cross = torch.outer(By, s) / ys
    return M - cross - cross.T + torch.outer(s, s) * ((1 + (y @ By) / ys) / ys)


def bfgs(
    f: Function,
    x0: Any,
    form: Form = "inverse",
    *,
    grad: Function | None = None,
    line_search: Search = "wolfe",
    A: Any = None,
    tol: float = 1e-8,
    max_iter: int = 500,
) -> OptimResult:
    r"""Minimise f along :math:`p = -H^{-1}\nabla f` with H learned by ``bfgs_update`` from
    :math:`H_0 = I`.

    Parameters
    ----------
    f : function of a point
    x0 : start
    form : keep the "inverse" (a product per step) or the "hessian" (a solve per step); the same
        iterates either way
    grad : gradient of f; None differentiates
    line_search : "wolfe", "exact" or "armijo"; with Wolfe's conditions every pair shows positive
        curvature, so H stays positive definite
    A : Hessian of a quadratic f, for exact steps in closed form
    tol : stop when :math:`\|\nabla f\| \le` tol
    max_iter : steps at most

    Returns
    -------
    OptimResult ; ``hessian`` is the matrix that was learned, ``(n, n)``

    Examples
    --------
    >>> import torch
    >>> A = torch.tensor([[3.0, 1.0], [1.0, 2.0]]).double()
    >>> found = bfgs(lambda x: 0.5 * x @ A @ x, [1.0, 1.0], line_search="exact", A=A)
    >>> [round(a, 6) for a in found.steps], found.hessian.round(9).tolist()
    ([0.277778, 0.72], [[3.0, 1.0], [1.0, 2.0]])
    """
    if form not in ("inverse", "hessian"):
        raise ValueError(f"form must be 'inverse' or 'hessian', got {form!r}")
    objective = Objective(f, x0, grad)
    walk = Walk(objective, tol, max_iter)
    matrix = None if A is None else torch.as_tensor(A).to(walk.x)
    M = torch.eye(walk.x.numel(), dtype=walk.x.dtype, device=walk.x.device)
    while not walk.stops():
        p = -(M @ walk.g) if form == "inverse" else -_definite_solve(M, walk.g)
        if not _advance(walk, p, line_search, matrix):
            break
        s, y = walk.last
        if is_curved(s, y):
            M = _updated(M, s, y, form)
    return walk.result(M if form == "hessian" else torch.linalg.inv(M))


def _definite_solve(H: Tensor, g: Tensor) -> Tensor:
    L, failed = torch.linalg.cholesky_ex(H)
    if bool(failed):  # rounding ate the last digit of definiteness
        return torch.linalg.lstsq(H, g[:, None]).solution[:, 0]
    return torch.cholesky_solve(g[:, None], L)[:, 0]


def _advance(walk: Walk, p: Tensor, method: Search, A: Tensor | None = None) -> bool:
    """Search along p and move; False at the end of the digits."""
    if not float(walk.g @ p) < 0:
        p = -walk.g
    alpha, _, _, reason, ok = search(walk.objective, walk.x, p, method, A=A)
    if alpha == 0 or not ok:
        if alpha > 0:
            walk.move(alpha * p, alpha)
        walk.fail(reason)
        return False
    walk.move(alpha * p, alpha)
    return True


def two_loop(g: Tensor, pairs: Sequence[tuple[Tensor, Tensor]]) -> Tensor:
    r""":math:`B\,g` for the inverse Hessian B that L-BFGS pairs (s, y) imply, oldest pair first.

    The start of the recursion is :math:`\gamma I` with :math:`\gamma = s^\top y/y^\top y` of the
    last pair. Without pairs it is g.

    Examples
    --------
    >>> s, y = torch.tensor([1.0, 0.0]), torch.tensor([2.0, 0.0])
    >>> two_loop(torch.tensor([4.0, 4.0]), [(s, y)]).tolist()
    [2.0, 2.0]
    """
    q, weights = g.clone(), list[Tensor]()
    for s, y in reversed(pairs):
        a = (s @ q) / (s @ y)
        q -= a * y
        weights.append(a)
    if pairs:
        s, y = pairs[-1]
        q *= (s @ y) / (y @ y)
    for (s, y), a in zip(pairs, reversed(weights), strict=True):
        q += (a - (y @ q) / (s @ y)) * s
    return q


def lbfgs(
    f: Function,
    x0: Any,
    memory: int = 10,
    *,
    grad: Function | None = None,
    line_search: Search = "wolfe",
    tol: float = 1e-8,
    max_iter: int = 1000,
    keep_path: bool = True,
) -> OptimResult:
    r"""Minimise f along :math:`p = -B\nabla f` with B known by its last ``memory`` pairs alone.

    Parameters
    ----------
    f : function of a point
    x0 : start
    memory : pairs (s, y) kept
    grad : gradient of f; None differentiates
    line_search : "wolfe", "exact" or "armijo"
    tol : stop when :math:`\|\nabla f\| \le` tol
    max_iter : steps at most
    keep_path : remember all points; False saves memory

    Examples
    --------
    >>> rosenbrock = lambda x: (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
    >>> lbfgs(rosenbrock, [-1.2, 1.0]).x.round(6).tolist()
    [1.0, 1.0]
    """
    if memory < 1:
        raise ValueError(f"memory must be at least 1 pair, got {memory}")
    walk = Walk(Objective(f, x0, grad), tol, max_iter, keep_path)
    pairs: deque[tuple[Tensor, Tensor]] = deque(maxlen=memory)
    while not walk.stops():
        p = -two_loop(walk.g, pairs)
        if not pairs:  # nothing is known of the scale yet
            p = p / max(1.0, float(p.norm()))
        if not _advance(walk, p, line_search):
            break
        if is_curved(*walk.last):
            pairs.append(walk.last)
    return walk.result()
