r"""Gradient descent with a fixed or searched step, and Newton's method by conjugate gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from groundstate.math.optim.conjugate import conjugate
from groundstate.math.optim.line_search import Search, search
from groundstate.math.optim.objective import Function, Objective
from groundstate.math.optim.result import OptimResult
from groundstate.math.optim.walk import Walk


def gradient_descent(
    f: Function,
    x0: Any,
    step: float | Search = "exact",
    *,
    grad: Function | None = None,
    steps: Sequence[float] | None = None,
    tol: float = 1e-8,
    max_iter: int = 10_000,
    keep_path: bool = True,
    normalized: bool = False,
) -> OptimResult:
    r"""Minimise f by :math:`x \leftarrow x - \alpha\nabla f`.

    With a number :math:`\alpha` is fixed: on a quadratic it converges for
    :math:`\alpha < 2/\lambda_{max}`, at a speed set by the condition of the Hessian. With the name
    of a line search every step is chosen, which costs values and saves gradients; with "exact"
    successive steps are orthogonal.

    Parameters
    ----------
    f : function of a point
    x0 : start
    step : a number, or "exact", "armijo", "wolfe", "bracket" or "grid"
    grad : gradient of f; None differentiates
    steps : step lengths to try, for "grid"
    tol : stop when :math:`\|\nabla f\| \le` tol
    max_iter : steps at most
    keep_path : remember all points
    normalized : steps along :math:`\nabla f/\|\nabla f\|`, so that a fixed α is their length

    Examples
    --------
    >>> gradient_descent(lambda x: x**2, 4.0, 0.25).path[:4].tolist()
    [4.0, 2.0, 1.0, 0.5]
    """
    walk = Walk(Objective(f, x0, grad), tol, max_iter, keep_path)
    if not isinstance(step, str) and not step > 0:
        raise ValueError(f"step must be a positive number or the name of a search, got {step}")
    while not walk.stops():
        p = -walk.g / walk.g.norm() if normalized else -walk.g
        if not isinstance(step, str):
            walk.move(step * p, float(step))
            continue
        alpha, _, _, reason, ok = search(walk.objective, walk.x, p, step, steps=steps)
        if not ok:
            walk.fail(reason)
            break
        walk.move(alpha * p, alpha)
    return walk.result()


def newton_cg(
    f: Function,
    x0: Any,
    *,
    grad: Function | None = None,
    hess: Function | None = None,
    tol: float = 1e-8,
    max_iter: int = 200,
    keep_path: bool = True,
) -> OptimResult:
    r"""Minimise f by Newton steps that conjugate gradients solve only as far as they pay.

    The inner iteration needs products :math:`\nabla^2f\,d` alone, stops at
    :math:`\|r\| \le \min(\tfrac12, \sqrt{\|g\|})\,\|g\|`, and at the first direction without
    positive curvature, so every step descends. For many parameters.

    Parameters
    ----------
    f : function of a point
    x0 : start
    grad, hess : gradient and Hessian; None differentiates, and no Hessian is formed
    tol : stop when :math:`\|\nabla f\| \le` tol
    max_iter : outer steps at most
    keep_path : remember all points

    Examples
    --------
    >>> rosenbrock = lambda x: (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
    >>> newton_cg(rosenbrock, [-1.2, 1.0]).x.round(6).tolist()
    [1.0, 1.0]
    """
    objective = Objective(f, x0, grad, hess)
    walk = Walk(objective, tol, max_iter, keep_path)
    while not walk.stops():
        g, zero = walk.g, torch.zeros_like(walk.g)
        norm = float(g.norm())
        times = objective.product(walk.x)
        done = conjugate(
            times, -g, zero, None, min(0.5, norm**0.5) * norm, 2 * len(g) + 10, keep_path=False
        )
        p = done.path[-1]
        if done.bad is not None and not done.steps:
            p = -g
        alpha, _, _, reason, ok = search(objective, walk.x, p, "wolfe")
        if alpha == 0 or not ok:
            walk.fail(reason)
            break
        walk.move(alpha * p, alpha)
    return walk.result()
