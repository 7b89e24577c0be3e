r"""How far to go along a direction: :math:`\alpha` that lowers :math:`\varphi(\alpha) = f(x + \alpha p)`.

Strong Wolfe conditions, with :math:`0 < c_1 < c_2 < 1`:

.. math::
    \varphi(\alpha) \le \varphi(0) + c_1\alpha\varphi'(0), \qquad
    |\varphi'(\alpha)| \le c_2|\varphi'(0)| .
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from scipy.optimize import brentq
from torch import Tensor

from groundstate.math.optim.objective import Function, Objective

Search = Literal["exact", "armijo", "wolfe", "grid", "bracket"]
SEARCHES: tuple[Search, ...] = ("bracket", "exact", "armijo", "wolfe", "grid")
GOLDEN = (math.sqrt(5) - 1) / 2
MOST = 60  # evaluations of one search
ROUNDING = 64 * 2.0**-52  # of f, below which two values of it are the same


@dataclass(frozen=True)
class Step:
    """A step along a direction.

    Attributes
    ----------
    alpha : step length; 0 when none was found
    x : the new point
    fun : value there
    slope : derivative along p there; NaN where the search did not need it
    nfev, njev : evaluations of value and gradient
    reason : what holds at the new point, or why there is none
    ok : whether the conditions of the search hold
    """

    alpha: float
    x: Any
    fun: float
    slope: float
    nfev: int
    njev: int
    reason: str
    ok: bool


def line_search(
    f: Function,
    x: Any,
    p: Any,
    method: Search = "wolfe",
    *,
    grad: Function | None = None,
    A: Any = None,
    steps: Sequence[float] | None = None,
    alpha0: float = 1.0,
    c1: float = 1e-4,
    c2: float = 0.9,
) -> Step:
    r"""Choose :math:`\alpha` so that :math:`\varphi(\alpha) = f(x + \alpha p)` is low enough.

    Parameters
    ----------
    f : function of a point
    x, p : where to start, and a direction of descent, :math:`\nabla f(x)^\top p < 0`
    method : "exact": :math:`\varphi'(\alpha) = 0`, by :math:`-g^\top p/p^\top Ap` if ``A`` is given,
        else by a bracket and Brent's method; "armijo": halve from ``alpha0`` until the first Wolfe
        condition holds; "wolfe": both, by bracketing and cubic interpolation; "grid": the best of
        ``steps``; "bracket": double from ``alpha0`` until f gets worse (or halve until it gets
        better), then golden sections until the bracket is a thousandth of its end; values alone
    grad : gradient of f; None differentiates
    A : Hessian of a quadratic f
    steps : for "grid"
    alpha0 : first step tried
    c1, c2 : constants of the conditions

    Returns
    -------
    Step

    Examples
    --------
    >>> step = line_search(lambda x: (x**2).sum(), [2.0, 0.0], [-1.0, 0.0], "exact")
    >>> round(step.alpha, 12), step.x.tolist()
    (2.0, [0.0, 0.0])
    """
    objective = Objective(f, x, grad)
    at = objective.start
    direction = torch.as_tensor(p).to(at).reshape(-1)
    if direction.shape != at.shape:
        raise ValueError(f"p has {direction.numel()} numbers, but x has {at.numel()}")
    matrix = None if A is None else torch.as_tensor(A).to(at)
    alpha, fun, slope, reason, ok = search(
        objective, at, direction, method, A=matrix, steps=steps, alpha0=alpha0, c1=c1, c2=c2
    )
    new = objective.space.give(at + alpha * direction)
    return Step(alpha, new, fun, slope, objective.nfev, objective.njev, reason, ok)


Found = tuple[float, float, float, str, bool]  # alpha, value, slope, reason, ok


def search(
    objective: Objective,
    x: Tensor,
    p: Tensor,
    method: Search,
    *,
    A: Tensor | None = None,
    steps: Sequence[float] | None = None,
    alpha0: float = 1.0,
    c1: float = 1e-4,
    c2: float = 0.9,
) -> Found:
    """The searches on flat vectors, for optimisers."""
    if method not in SEARCHES:
        raise ValueError(f"method must be one of {', '.join(SEARCHES)}, got {method!r}")
    if not (0 < c1 < c2 < 1 and alpha0 > 0):
        raise ValueError(f"need 0 < c1 < c2 < 1 and alpha0 > 0, got {c1=}, {c2=}, {alpha0=}")
    line = Line(objective, x, p)
    if not line.slope0 < 0:
        raise ValueError(
            f"p is no direction of descent: the derivative along it is {line.slope0:.6g}, which "
            "must be negative; take -gradient, or turn p round"
        )
    if method == "grid":
        if not steps:
            raise ValueError("method='grid' needs steps, the step lengths to try")
        return line.grid(steps)
    if method == "armijo":
        return line.armijo(alpha0, c1)
    if method == "bracket":
        return line.bracket(alpha0)
    if method == "wolfe":
        return line.wolfe(alpha0, c1, c2)
    if A is not None:
        return line.end(-line.slope0 / _curvature(A, p), "exact for a quadratic")
    return line.exact(alpha0)


def _curvature(A: Tensor, p: Tensor) -> float:
    curvature = float(p @ (A @ p))
    if not curvature > 0:
        raise ValueError(
            f"f has no minimum along p: its curvature there is {curvature:.6g}; use method='wolfe'"
        )
    return curvature


class Line:
    r""":math:`\varphi(\alpha) = f(x + \alpha p)` and its derivative."""

    def __init__(self, objective: Objective, x: Tensor, p: Tensor) -> None:
        self.objective, self.x, self.p = objective, x, p
        self.value0, g = objective.both(x)
        self.slope0 = float(g @ p)
        self.rounding = ROUNDING * abs(self.value0) if math.isfinite(self.value0) else 0.0

    def value(self, alpha: float) -> float:
        return self.objective.value(self.x + alpha * self.p)

    def both(self, alpha: float) -> tuple[float, float]:
        value, g = self.objective.both(self.x + alpha * self.p)
        return value, float(g @ self.p)

    def end(self, alpha: float, reason: str, ok: bool = True) -> Found:
        value, slope = self.both(alpha)
        return alpha, value, slope, reason, ok

    def grid(self, steps: Sequence[float]) -> Found:
        values = [self.value(float(a)) for a in steps]
        best = min(range(len(values)), key=lambda i: (not math.isfinite(values[i]), values[i]))
        if values[best] < self.value0:
            return float(steps[best]), values[best], math.nan, "best of the grid", True
        return 0.0, self.value0, self.slope0, "no step of the grid lowers f", False

    def armijo(self, alpha: float, c1: float) -> Found:
        for _ in range(MOST):
            value = self.value(alpha)
            if value <= self.value0 + c1 * alpha * self.slope0:
                return alpha, value, math.nan, "sufficient decrease", True
            alpha *= 0.5
        return 0.0, self.value0, self.slope0, "no step lowers f enough", False

    def bracket(self, alpha: float) -> Found:
        value, best = self.value(alpha), self.value0
        for _ in range(MOST):
            if value < best:
                break
            alpha, value = 0.5 * alpha, self.value(0.5 * alpha)
        else:
            return 0.0, self.value0, self.slope0, "no step lowers f", False
        low, middle = 0.0, alpha
        for _ in range(MOST):
            best, high = value, 2 * middle
            value = self.value(high)
            if not value < best:
                break
            low, middle = middle, high
        else:
            return 0.0, self.value0, self.slope0, "f falls without end along p", False
        found, lowest = middle, best  # the best point seen is never lost
        a, b = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        at_a, at_b = self.value(a), self.value(b)
        while high - low > 1e-3 * high:
            if at_a < at_b or not math.isfinite(at_b):
                high, b, at_b = b, a, at_a
                a = high - GOLDEN * (high - low)
                at_a = self.value(a)
            else:
                low, a, at_a = a, b, at_b
                b = low + GOLDEN * (high - low)
                at_b = self.value(b)
        for alpha, value in ((a, at_a), (b, at_b)):
            if value < lowest:
                found, lowest = alpha, value
        return found, lowest, math.nan, "golden section of a bracket", True

    def exact(self, alpha: float) -> Found:
        low = 0.0
        for _ in range(MOST):
            value, slope = self.both(alpha)
            if slope >= 0 or not math.isfinite(value):
                break
            low, alpha = alpha, 2 * alpha
        else:
            return 0.0, self.value0, self.slope0, "f falls without end along p", False
        for _ in range(MOST):
            if slope >= 0 and math.isfinite(value):
                break
            # a bracket must lie where f is a number
            if math.isfinite(value) and slope < 0:
                low, alpha = alpha, alpha + 0.5 * (alpha - low)
            else:
                alpha = 0.5 * (low + alpha)
            value, slope = self.both(alpha)
        else:
            return 0.0, self.value0, self.slope0, "f has no minimum along p", False
        if slope != 0:
            alpha = float(brentq(lambda a: self.both(a)[1], low, alpha, xtol=1e-15, rtol=1e-14))
        return self.end(alpha, "derivative along p is zero")

    def wolfe(self, alpha: float, c1: float, c2: float) -> Found:
        last, last_value, last_slope = 0.0, self.value0, self.slope0
        for i in range(MOST):
            value, slope = self.both(alpha)
            enough = self._enough(alpha, value, slope, c1)
            if not enough or (i > 0 and value >= last_value + self.rounding):
                low = (last, last_value, last_slope)
                return self._zoom(low, (alpha, value, slope), c1, c2)
            if abs(slope) <= -c2 * self.slope0:
                return alpha, value, slope, "strong Wolfe conditions", True
            if slope >= 0:
                high = (last, last_value, last_slope)
                return self._zoom((alpha, value, slope), high, c1, c2)
            last, last_value, last_slope = alpha, value, slope
            alpha *= 2
        return last, last_value, last_slope, "f falls without end along p", False

    def _enough(self, alpha: float, value: float, slope: float, c1: float) -> bool:
        """The first condition; by slopes where f has no digits left to show it (Hager & Zhang 2005)."""
        if value <= self.value0 + c1 * alpha * self.slope0:
            return True
        return value <= self.value0 + self.rounding and slope <= (2 * c1 - 1) * self.slope0

    def _zoom(
        self,
        low: tuple[float, float, float],
        high: tuple[float, float, float],
        c1: float,
        c2: float,
    ) -> Found:
        for _ in range(MOST):
            alpha = _cubic(low, high)
            value, slope = self.both(alpha)
            enough = self._enough(alpha, value, slope, c1)
            if not enough or value >= low[1] + self.rounding:
                high = (alpha, value, slope)
            else:
                if abs(slope) <= -c2 * self.slope0:
                    return alpha, value, slope, "strong Wolfe conditions", True
                if slope * (high[0] - low[0]) >= 0:
                    high = low
                low = (alpha, value, slope)
            if abs(high[0] - low[0]) <= 1e-16 * max(1.0, low[0]):
                break
        return *low, "the digits of f end before the conditions hold", low[1] < self.value0


def _cubic(a: tuple[float, float, float], b: tuple[float, float, float]) -> float:
    """Minimiser of the cubic through two values and slopes, kept inside the interval."""
    (t, f, d), (u, g, e) = a, b
    middle, width = 0.5 * (t + u), abs(u - t)
    if not (math.isfinite(g) and math.isfinite(e)):
        return middle
    z = d + e - 3 * (f - g) / (t - u)
    root = z * z - d * e
    if root < 0:
        return middle
    w = math.copysign(math.sqrt(root), u - t)
    bottom = e - d + 2 * w
    best = u - (u - t) * (e + w - z) / bottom if bottom != 0 else middle
    inside = min(t, u) + 0.1 * width <= best <= max(t, u) - 0.1 * width
    return best if inside else middle
