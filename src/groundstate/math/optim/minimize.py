r"""One door to all minimisers: ``minimize(f, x0, method=...)``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.optimize import differential_evolution

from groundstate.math.optim.conjugate import nonlinear_cg
from groundstate.math.optim.descent import gradient_descent, newton_cg
from groundstate.math.optim.newton import newton
from groundstate.math.optim.objective import Function, Objective
from groundstate.math.optim.quasi_newton import bfgs, lbfgs
from groundstate.math.optim.result import OptimResult


@dataclass(frozen=True)
class MethodRow:
    """One minimiser: the function behind it, what a step needs and costs with d parameters."""

    name: str
    run: Callable[..., OptimResult]
    needs: str  # "values", "gradient" or "hessian"
    cost: str
    max_iter: int


def genetic(
    f: Function,
    x0: Any,
    *,
    bounds: Sequence[tuple[float, float]] | None = None,
    seed: int = 0,
    tol: float = 1e-8,
    max_iter: int = 1000,
    **options: Any,
) -> OptimResult:
    r"""Minimise f without gradients: a population of points that mutates, recombines and is selected
    (differential evolution).

    Parameters
    ----------
    f : function of a point
    x0 : start, one member of the population; its shape is that of a point
    bounds : (low, high) of every number; None is ten times :math:`\max(1, |x_0|)` to both sides
    seed : of the search
    tol : relative spread of the population's values at which it stops
    max_iter : generations at most
    options : for ``scipy.optimize.differential_evolution``

    Examples
    --------
    >>> found = genetic(lambda x: ((x - 1) ** 2).sum(), [3.0, -2.0])
    >>> [round(v, 3) for v in found.x.tolist()], found.njev
    ([1.0, 1.0], 0)
    """
    objective = Objective(f, x0)
    start = objective.start
    reach = 10 * start.abs().clamp_min(1.0)
    box = bounds or [(float(a - r), float(a + r)) for a, r in zip(start, reach)]
    path = [start]

    def value(x: Any) -> float:
        return objective.value(torch.as_tensor(x).to(start))

    def keep(xk: Any, convergence: float = 0.0) -> None:
        path.append(torch.as_tensor(np.array(xk)).to(start))

    found = differential_evolution(
        value, box, x0=start.double().cpu().numpy(), rng=seed, maxiter=max_iter, tol=tol,
        atol=tol, callback=keep, polish=False, **options,
    )  # fmt: skip
    best = torch.as_tensor(found.x).to(start)
    if not torch.equal(path[-1], best):
        path.append(best)
    return OptimResult(
        x=objective.space.give(best),
        fun=float(found.fun),
        grad_norm=float("nan"),
        nit=int(found.nit),
        nfev=objective.nfev,
        njev=0,
        path=objective.space.give(torch.stack(path)),
        reason="the population agrees" if found.success else "max_iter generations were not enough",
        converged=bool(found.success),
    )


METHODS: dict[str, MethodRow] = {
    row.name: row
    for row in (
        MethodRow("gd", gradient_descent, "gradient", "O(d) per step", 10_000),
        MethodRow("cg", nonlinear_cg, "gradient", "O(d) per step", 2000),
        MethodRow("bfgs", bfgs, "gradient", "O(d²) per step", 500),
        MethodRow("lbfgs", lbfgs, "gradient", "O(d · memory) per step", 1000),
        MethodRow("newton", newton, "hessian", "O(d³) per step", 100),
        MethodRow("newton-cg", newton_cg, "gradient", "O(d) per product with the Hessian", 200),
        MethodRow("genetic", genetic, "values", "15 d values per generation", 1000),
    )
}


def minimize(
    f: Function,
    x0: Any,
    method: str = "gd",
    *,
    tol: float = 1e-4,
    max_iter: int | None = None,
    **options: Any,
) -> OptimResult:
    r"""Minimise f from ``x0`` by a named method.

    ============  ==========  =====================================  ==========================
    method        needs       step                                   cost with d parameters
    ============  ==========  =====================================  ==========================
    "gd"          gradient    :math:`-\alpha g`                      O(d)
    "cg"          gradient    conjugate directions                   O(d)
    "bfgs"        gradient    :math:`-Bg`, B learned                 O(d²)
    "lbfgs"       gradient    the same from a few pairs              O(d · memory)
    "newton"      Hessian     :math:`-H^{-1}g`                       O(d³)
    "newton-cg"   H products  the same, solved as far as it pays     O(d) per product
    "genetic"     values      mutate, recombine, select              15 d values
    ============  ==========  =====================================  ==========================

    Parameters
    ----------
    f : function of a point, written in torch; or in NumPy, with ``grad``
    x0 : start
    method : a row of the table
    tol : stop when :math:`\|\nabla f\| \le` tol
    max_iter : steps at most; None is the method's own
    options : of the method: ``step`` (a number or "bracket", "armijo", "wolfe", "exact") and
        ``normalized`` of "gd", ``line_search`` of the others, ``damping`` of "newton", ``bounds``
        of "genetic", ``grad``, ``hess``

    Returns
    -------
    OptimResult : x, fun, nit, reason, path, and how often f and its gradient were evaluated

    Examples
    --------
    >>> minimize(lambda x: 0.5 * x**2, 1.0, step=0.1, max_iter=3).path.round(3).tolist()
    [1.0, 0.9, 0.81, 0.729]
    >>> minimize(lambda x: (x**2).sum(), [3.0, 4.0], "newton").nit
    1
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    row = METHODS[method]
    if method == "gd" and "line_search" in options:
        options["step"] = options.pop("line_search")
    return row.run(
        f, x0, tol=tol, max_iter=row.max_iter if max_iter is None else max_iter, **options
    )
