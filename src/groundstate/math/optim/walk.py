"""The state of a descent: where it is, what it has seen, and when it ends."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from groundstate.math.optim.objective import Objective
from groundstate.math.optim.result import OptimResult

FLOOR = -1e50  # a value below this is a fall without end


class Walk:
    """A point that moves until its gradient is small.

    Parameters
    ----------
    objective : what is minimised
    tol : largest norm of the gradient at the end
    max_iter : moves at most
    keep_path : remember all points; False keeps the last alone

    Attributes
    ----------
    x, fun, g : the point, value and gradient there
    last : change of the point and of the gradient in the last move
    """

    def __init__(
        self, objective: Objective, tol: float, max_iter: int, keep_path: bool = True
    ) -> None:
        if max_iter < 0 or not tol >= 0:
            raise ValueError(f"need max_iter >= 0 and tol >= 0, got {max_iter=}, {tol=}")
        self.objective, self.tol, self.max_iter = objective, tol, max_iter
        self.x = objective.start
        self.keep_path = keep_path
        self.path, self.steps = [self.x], list[float]()
        self.reason, self.converged = "", False
        self.last = torch.zeros_like(self.x), torch.zeros_like(self.x)
        self._look()

    def _look(self) -> None:
        self.fun, self.g = self.objective.both(self.x)

    @property
    def spent(self) -> bool:
        """Whether all moves are made."""
        return len(self.steps) >= self.max_iter

    def stops(self) -> bool:
        """Whether to end here; ``reason`` says why."""
        if self.reason:
            return True
        norm = float(self.g.norm())
        if not (math.isfinite(self.fun) and math.isfinite(norm)):
            self.reason = "f or its gradient is not finite here; take smaller steps"
        elif norm <= self.tol:
            self.reason, self.converged = f"the gradient is at most tol={self.tol}", True
        elif self.fun < FLOOR:
            self.reason = "f falls without end"
        elif self.spent:
            self.reason = f"max_iter={self.max_iter} iterations were not enough"
        return bool(self.reason)

    def go_on(self) -> None:
        """Take back a stop."""
        self.reason, self.converged = "", False

    def fail(self, reason: str) -> None:
        self.reason, self.converged = reason, False

    def move(self, step: Tensor, alpha: float = 1.0) -> None:
        """Go on by a step; ``alpha`` is its length in units of the direction."""
        x, g = self.x, self.g
        self.x = x + step
        if not self.keep_path:
            self.path.clear()
        self.path.append(self.x)
        self.steps.append(alpha)
        self._look()
        self.last = self.x - x, self.g - g

    def result(self, hessian: Tensor | None = None) -> OptimResult:
        space, o = self.objective.space, self.objective
        return OptimResult(
            x=space.give(self.x),
            fun=self.fun,
            grad_norm=float(self.g.norm()),
            nit=len(self.steps),
            nfev=o.nfev,
            njev=o.njev,
            path=space.give(torch.stack(self.path)),
            reason=self.reason,
            converged=self.converged,
            steps=tuple(self.steps),
            hessian=space.matrix(hessian),
        )
