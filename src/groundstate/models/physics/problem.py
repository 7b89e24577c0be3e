r"""A differential equation with everything that makes its solution one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from groundstate.compute.random import Key
from groundstate.energy.networks.equation import EquationResidual
from groundstate.errors import Unsupported
from groundstate.models.physics.conditions import Condition, Piece
from groundstate.models.physics.conditions import Dirichlet as Dirichlet
from groundstate.models.physics.conditions import Initial as Initial
from groundstate.models.physics.domain import Box as Box
from groundstate.models.physics.domain import Domain, Points
from groundstate.nn.coordinate.fields import Field
from groundstate.nn.coordinate.jets import Index


@dataclass(frozen=True)
class Problem:
    r"""An equation :math:`r(u, x) = 0` on a domain, with conditions.

    Parameters
    ----------
    domain : ``Box(t=(0, 1), x=(-1, 1))`` or ``Mask(box, inside)``
    equation : text such as ``"u.t + u*u.x - nu*u.xx"`` (``a = b`` is allowed too), a function of unknowns,
        coordinates and parameters by the names of its arguments, or a list of them for a system
    conditions : ``Dirichlet``, ``Neumann``, ``Robin``, ``Periodic``, ``Initial``
    parameters : numbers of the equation by name; None is unknown, and found from data
    unknowns : names of the components of u
    positive : unknown parameters that are positive, learned on a log scale
    start : first values of unknown parameters
    reference : a solution to compare with: a function from points ``(n, d)`` to values, or the name of
        one in the library
    name : of the problem

    Examples
    --------
    >>> problem = Problem(Box(t=(0, 1), x=(0, 1)), "u.t = a*u.xx",
    ...                   [Initial("sin(pi*x)"), Dirichlet("boundary", 0.0)], {"a": 0.1})
    >>> problem.classify()
    'parabolic'
    """

    domain: Domain
    equation: Any
    conditions: Sequence[Condition] = ()
    parameters: dict[str, float | None] = field(default_factory=dict)
    unknowns: tuple[str, ...] = ("u",)
    positive: tuple[str, ...] = ()
    start: dict[str, float] = field(default_factory=dict)
    reference: str | Callable[[Points], Points] | None = None
    name: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "unknowns", tuple(self.unknowns))
        object.__setattr__(self, "conditions", tuple(self.conditions))
        object.__setattr__(self, "positive", tuple(self.positive))
        self.residual()  # says what is wrong with the equation

    @property
    def equations(self) -> list[Any]:
        many = isinstance(self.equation, list | tuple)
        return list(self.equation) if many else [self.equation]

    def text(self) -> str:
        """The equation in words, for messages and reports."""
        return "; ".join(e if isinstance(e, str) else getattr(e, "text", getattr(e, "__name__", "r(u)"))
                         for e in self.equations)  # fmt: skip

    def with_parameters(self, **parameters: float | None) -> Problem:
        """The same problem with other parameters."""
        unknown = [p for p in parameters if p not in self.parameters]
        if unknown:
            raise ValueError(
                f"{', '.join(unknown)} is no parameter; they are {', '.join(self.parameters) or 'none'}"
            )
        return replace(self, parameters={**self.parameters, **parameters})

    def pieces(self, n: int, key: Key) -> list[Piece]:
        """Points of all conditions, about n in all."""
        sizes = [len(c.pieces(self.domain, 1, key)) for c in self.conditions]
        each = max(1, n // max(1, sum(sizes)))
        return [
            piece
            for at, c in enumerate(self.conditions)
            for piece in c.pieces(self.domain, each, key.fold("condition", at))
        ]

    def residual(self, pieces: Sequence[Piece] = ()) -> EquationResidual:
        """The equation as residuals at points, with the conditions that are no values."""
        ruled = [p for p in pieces if p.rule is not None]
        return EquationResidual(
            self.equations, self.domain.names, self.unknowns, self.parameters, self.positive,
            self.start, [p.rule for p in ruled], [p.shift for p in ruled],
        )  # fmt: skip

    def residual_of(self, u: Callable[[torch.Tensor], torch.Tensor], X: Any) -> NDArray[np.float64]:
        """r of a given function u of points, such as a known solution, ``(n, q)``."""
        x = torch.as_tensor(np.asarray(X), dtype=torch.float64)
        return np.asarray(self.residual()(u, x).detach().numpy())

    def solution(self, X: Any) -> Points:
        """The reference solution at points ``(n, d)``."""
        X = np.asarray(X, dtype=np.float64)
        if self.reference is None:
            raise Unsupported(
                f"the problem {self.name or self.text()!r} carries no reference solution"
            )
        if callable(self.reference):
            return np.asarray(self.reference(X))
        from groundstate.models.physics.library import REFERENCES

        return REFERENCES[self.reference](self, X)

    def classify(self, at: Sequence[float] | None = None) -> str:
        r"""The kind of the equation by its second derivatives :math:`\sum_{ij}A_{ij}u_{ij}`.

        All eigenvalues of A of one sign: "elliptic"; one that vanishes: "parabolic"; one of the other
        sign: "hyperbolic". For two coordinates this is the sign of :math:`B^2 - AC`. One coordinate is
        an "ODE", no second derivative "first order".

        Parameters
        ----------
        at : the point, where coefficients vary; the middle of the domain by default
        """
        if len(self.domain.names) == 1:
            return "ODE"
        if len(self.unknowns) > 1:
            return "system"
        middle = [(a + b) / 2 for a, b in zip(self.domain.low, self.domain.high)]
        A = self._second(torch.tensor(middle if at is None else list(at), dtype=torch.float64))
        values = np.linalg.eigvalsh(A)
        scale = np.abs(values).max()
        if scale == 0:
            return "first order"
        signs = np.where(np.abs(values) < 1e-12 * scale, 0, np.sign(values))
        up, down, flat = ((signs == s).sum() for s in (1, -1, 0))
        if flat:
            return "parabolic"
        if min(up, down) == 0:
            return "elliptic"
        return "hyperbolic" if min(up, down) == 1 else "ultrahyperbolic"

    def _second(self, point: torch.Tensor) -> NDArray[np.float64]:
        """Coefficients A of the second derivatives at a point."""
        names = self.domain.names
        residual = self.residual()
        table: dict[Index, torch.Tensor] = {}

        def find(index: Index) -> torch.Tensor:
            if index not in table:
                table[index] = torch.full((1,), 0.5, dtype=torch.float64, requires_grad=True)
            return table[index]

        values: dict[str, Any] = {c: point[i].reshape(1) for i, c in enumerate(names)}
        values |= {self.unknowns[0]: Field(find, names)}
        values |= {k: 0.5 if v is None else v for k, v in self.parameters.items()}
        r = residual._residuals(residual._laws, values).sum()
        A = np.zeros((len(names), len(names)))
        for index, leaf in table.items():
            if len(index) != 2 or not r.requires_grad:
                continue
            (slope,) = torch.autograd.grad(r, leaf, retain_graph=True, allow_unused=True)
            i, j = index
            share = 0.0 if slope is None else float(slope) / (1 if i == j else 2)
            A[i, j] = A[j, i] = share
        return A
