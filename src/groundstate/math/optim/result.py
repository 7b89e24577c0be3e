"""What an optimiser gives back: where it ended, what it cost, and why it stopped."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from groundstate.compute.display import Displayed
from groundstate.errors import GroundstateError


class IndefiniteError(GroundstateError, ValueError):
    """A matrix that must be positive definite is not; ``direction`` has no positive curvature.

    Attributes
    ----------
    direction : d with :math:`d^\\top A d \\le 0`
    curvature : that number
    x : the iterate at which the direction was met
    """

    def __init__(self, message: str, direction: Any, curvature: float, x: Any = None) -> None:
        super().__init__(message)
        self.direction, self.curvature, self.x = direction, curvature, x


class SingularError(GroundstateError, ValueError):
    """A Newton step that does not exist, because the matrix of the step has no inverse."""


@dataclass(frozen=True)
class OptimResult(Displayed):
    """The end of a minimisation or root search.

    Attributes
    ----------
    x : the last point, in the shape and kind (NumPy, torch, float) of the start
    fun : value there
    grad_norm : Euclidean norm of the gradient there (of the residual, for linear systems; of the
        value, for roots)
    nit : iterations
    nfev, njev : evaluations of the value and of the gradient (or derivative, or matrix product)
    path : all iterates, first the start, ``(nit + 1, *shape)``
    reason : why it stopped, one sentence
    converged : whether the tolerance was reached
    steps : step length of every iteration, where there is one
    hessian : last Hessian, or the approximation of it that was learned, ``(n, n)`` or None
    """

    x: Any
    fun: float
    grad_norm: float
    nit: int
    nfev: int
    njev: int
    path: Any
    reason: str
    converged: bool
    steps: tuple[float, ...] = ()
    hessian: Any = field(default=None, repr=False)
