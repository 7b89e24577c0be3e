r"""Newton's method: for roots :math:`x - f/f'`, for minima :math:`x - (\nabla^2 f)^{-1}\nabla f`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from groundstate.math.optim.line_search import search
from groundstate.math.optim.objective import Function, Objective, Space
from groundstate.math.optim.result import OptimResult, SingularError
from groundstate.math.optim.walk import FLOOR, Walk

Damping = Literal["auto", "none"]


@dataclass(frozen=True)
class TaylorModel:
    r"""The quadratic that f looks like near a point,
    :math:`m(x) = f_0 + g^\top(x - x_0) + \tfrac12(x - x_0)^\top H(x - x_0)`.

    Its error is of third order; its stationary point is Newton's step.

    Attributes
    ----------
    x0, fun, grad, hess : the point, and value, gradient ``(n,)`` and Hessian ``(n, n)`` there
    """

    x0: Tensor
    fun: float
    grad: Tensor
    hess: Tensor
    space: Space

    def __call__(self, x: Any) -> float:
        d = torch.as_tensor(x).to(self.x0).reshape(-1) - self.x0
        return self.fun + float(self.grad @ d) + 0.5 * float(d @ (self.hess @ d))

    @property
    def stationary(self) -> Any:
        """Where the gradient of the model is zero: :math:`x_0 - H^{-1}g`."""
        return self.space.give(self.x0 - _solve(self.hess, self.grad))


def taylor(
    f: Function, x0: Any, *, grad: Function | None = None, hess: Function | None = None
) -> TaylorModel:
    r"""The second-order model of f at ``x0``.

    Examples
    --------
    >>> m = taylor(lambda x: x.exp().sum(), [0.0])
    >>> m([0.5]), m.stationary.tolist()
    (1.625, [-1.0])
    """
    objective = Objective(f, x0, grad, hess)
    x = objective.start
    fun, g = objective.both(x)
    return TaylorModel(x, fun, g, objective.hessian(x), objective.space)


def newton_root(
    f: Function,
    x0: Any,
    *,
    fprime: Function | None = None,
    tol: float = 1e-12,
    max_iter: int = 50,
) -> OptimResult:
    r"""Solve :math:`f(x) = 0` by :math:`x \leftarrow x - f(x)/f'(x)`.

    Near a simple root the number of correct digits doubles with every step. With several unknowns
    f returns as many numbers, and the step solves with the Jacobian.

    Parameters
    ----------
    f : function of a number or a vector
    x0 : start
    fprime : derivative or Jacobian; None differentiates f, written in torch or plain arithmetic
    tol : stop when :math:`\|f\|` or the step, relative to x, is at most this
    max_iter : steps at most

    Returns
    -------
    OptimResult ; ``grad_norm`` is :math:`\|f(x)\|`. A zero derivative ends the search, and
    ``reason`` says so.

    Examples
    --------
    >>> found = newton_root(lambda x: x**2 - 2, 1.0)
    >>> [round(float(x), 10) for x in found.path[:4]]
    [1.0, 1.5, 1.4166666667, 1.4142156863]
    """
    space = Space(x0)
    x = space.start
    path, nfev, njev, reason, converged = [x], 0, 0, "", False
    value = x
    while True:
        value, J = _value_and_jacobian(f, fprime, space, x)
        nfev, njev = nfev + 1, njev + 1
        if float(value.norm()) <= tol:
            reason, converged = f"|f| is at most tol={tol}", True
        elif len(path) > max_iter:
            reason = f"max_iter={max_iter} steps were not enough"
        elif not bool(torch.isfinite(value).all()):
            reason = "f is not finite here; start nearer to a root"
        if reason:
            break
        try:
            step = _solve(J, value)
        except SingularError:
            reason = "the derivative is zero here, so there is no Newton step; start elsewhere"
            break
        x = x - step
        path.append(x)
        if float(step.norm()) <= tol * max(1.0, float(x.norm())):
            value, _ = _value_and_jacobian(f, fprime, space, x)
            nfev, njev = nfev + 1, njev + 1
            reason, converged = f"the step is at most tol={tol}", True
            break
    size = float(value.norm())
    fun = float(value) if value.numel() == 1 else size
    return OptimResult(
        space.give(x), fun, size, len(path) - 1, nfev, njev, space.give(torch.stack(path)),
        reason, converged,
    )  # fmt: skip


def _value_and_jacobian(
    f: Function, fprime: Function | None, space: Space, x: Tensor
) -> tuple[Tensor, Tensor]:
    n = x.numel()
    if fprime is not None:
        point = space.give(x)
        value = torch.as_tensor(f(point)).to(x).reshape(-1)
        return value, torch.as_tensor(fprime(point)).to(x).reshape(n, n)

    def flat(v: Tensor) -> Tensor:
        out = f(v.reshape(space.shape))
        return (out if isinstance(out, Tensor) else torch.as_tensor(out).to(v)).reshape(-1)

    value = flat(x).detach()
    if value.shape != x.shape:
        raise ValueError(f"f must return {n} numbers, as many as x has, got {value.numel()}")
    return value, torch.autograd.functional.jacobian(flat, x).detach()


def _solve(H: Tensor, g: Tensor) -> Tensor:
    step, failed = torch.linalg.solve_ex(H, g)
    if bool(failed) or not bool(torch.isfinite(step).all()):
        raise SingularError(
            "the Hessian is singular here, so the Newton step does not exist; use damping='auto'"
        )
    return step


def newton(
    f: Function,
    x0: Any,
    *,
    grad: Function | None = None,
    hess: Function | None = None,
    damping: Damping = "auto",
    tol: float = 1e-8,
    max_iter: int = 100,
) -> OptimResult:
    r"""Minimise f by :math:`x \leftarrow x - \alpha(\nabla^2 f + \tau I)^{-1}\nabla f`.

    A quadratic is solved in one step, and near a minimum digits double. In one dimension it is
    gradient descent with the step size :math:`1/f''`.

    Parameters
    ----------
    f : function of a point
    x0 : start
    grad, hess : gradient and Hessian; None differentiates
    damping : "auto": :math:`\tau \ge 0` is raised until the matrix is positive definite (modified
        Cholesky), :math:`\alpha` satisfies Armijo's condition, and at a saddle or maximum the
        search goes on along the direction of most negative curvature; "none": the raw step, which
        may lead to a saddle or a maximum, and raises ``SingularError`` where it does not exist
    tol : stop when :math:`\|\nabla f\| \le` tol
    max_iter : steps at most

    Returns
    -------
    OptimResult ; ``hessian`` is the one at the end

    Examples
    --------
    >>> f = lambda x: x[0] ** 2 - x[1] ** 2
    >>> newton(f, [1.0, 1.0], damping="none").x.tolist()  # a saddle
    [0.0, 0.0]
    >>> newton(f, [0.0, 0.0]).reason
    'f falls without end'
    """
    if damping not in ("auto", "none"):
        raise ValueError(f"damping must be 'auto' or 'none', got {damping!r}")
    objective = Objective(f, x0, grad, hess)
    walk = Walk(objective, tol, max_iter)
    H = objective.hessian(walk.x)
    while True:
        flat = walk.stops()
        if flat and walk.converged and damping == "auto" and not walk.spent:
            away = _escape(objective, walk, H)
            if away is None:
                break
            walk.go_on()
            walk.move(away)
        elif flat:
            break
        elif damping == "none":
            walk.move(-_solve(H, walk.g))
        else:
            p = -torch.cholesky_solve(walk.g[:, None], _modified(H))[:, 0]
            alpha, _, _, reason, ok = search(objective, walk.x, p, "armijo")
            if not ok:
                walk.fail(reason)
                break
            walk.move(alpha * p, alpha)
        if walk.fun < FLOOR:
            walk.fail("f falls without end")
            break
        H = objective.hessian(walk.x)
    return walk.result(H)


def _modified(H: Tensor) -> Tensor:
    r"""The Cholesky factor of :math:`H + \tau I` with a small :math:`\tau \ge 0` that allows it."""
    size = float(torch.linalg.matrix_norm(H))
    least = float(H.diagonal().min())
    floor = 1e-3 * max(size, 1e-12)
    tau = 0.0 if least > 0 else floor - least
    eye = torch.eye(len(H), dtype=H.dtype, device=H.device)
    while True:
        L, failed = torch.linalg.cholesky_ex(H + tau * eye)
        if not bool(failed) and bool(torch.isfinite(L).all()):
            return L
        if not math.isfinite(size):
            raise SingularError("the Hessian holds NaN or infinity; start elsewhere")
        tau = max(2 * tau, floor)


def _escape(objective: Objective, walk: Walk, H: Tensor) -> Tensor | None:
    """A step away from a saddle or maximum along the most negative curvature, or None."""
    zero = 1e-8 * max(1.0, float(torch.linalg.matrix_norm(H, ord=1)))
    eye = torch.eye(len(H), dtype=H.dtype, device=H.device)
    if not bool(torch.linalg.cholesky_ex(H + zero * eye)[1]):
        return None  # no negative curvature: cheaper to know than the eigenvalues
    values, vectors = torch.linalg.eigh(H)
    if not float(values[0]) < -zero:
        return None
    d = vectors[:, 0] * max(1.0, float(walk.x.norm()))
    for _ in range(60):
        for step in (d, -d):
            if objective.value(walk.x + step) < walk.fun:
                return step
        d = 0.5 * d
    return None
