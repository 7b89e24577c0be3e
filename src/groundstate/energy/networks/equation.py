r"""An equation, its coefficients and its conditions, as residuals at points."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.energy.networks.expression import Expression
from groundstate.energy.networks.residual import Residual
from groundstate.errors import ShapeError
from groundstate.nn.coordinate.derivatives import derivatives
from groundstate.nn.coordinate.fields import Field, given
from groundstate.nn.coordinate.jets import Index

Law = str | Expression | Callable[..., Any]


def law(what: Law) -> Callable[[Mapping[str, Any]], Any]:
    """An equation or a value as a function of named values; its arguments are found by name."""
    if isinstance(what, str):
        return Expression(what)
    if isinstance(what, Expression):
        return what
    return Called(what)


class Called:
    """A function of some of the named values, by the names of its arguments."""

    def __init__(self, f: Callable[..., Any]) -> None:
        self.f = f
        self.names = tuple(inspect.signature(f).parameters)
        self.text = getattr(f, "__name__", type(f).__name__)

    def __call__(self, values: Mapping[str, Any]) -> Any:
        missing = [n for n in self.names if n not in values]
        if missing:
            raise ValueError(
                f"the function {self.text} has the arguments {', '.join(missing)}, which are neither "
                f"unknowns, coordinates nor parameters: {', '.join(sorted(values))}"
            )
        return self.f(**{n: values[n] for n in self.names})


class EquationResidual(Residual):
    r"""Residuals r(u, x) of equations and of conditions that are more than values of u.

    Parameters
    ----------
    equations : texts, or functions of unknowns, coordinates and parameters by the names of their
        arguments; each gives residuals ``(N,)``
    coordinates : names of the columns of x, one letter each
    unknowns : names of the components of u
    parameters : numbers by name; None is an unknown coefficient, learned with u
    positive : names of unknown coefficients that are positive, learned as logarithms
    start : first values of unknown coefficients, 1 for positive ones and 0 for the others
    conditions : residuals of rows of kind 1, 2, …; as equations
    shifts : of each condition, where it compares with another point: how far away, ``(d,)``; its values
        are named ``u_other``

    Attributes
    ----------
    wanted : derivatives that the equations ask for

    Examples
    --------
    >>> r = EquationResidual(["u.x - k*u"], "x", parameters={"k": 2.0})
    >>> class Exp(nn.Module):
    ...     def forward(self, x):
    ...         return torch.exp(2 * x)
    >>> r(Exp(), torch.linspace(0, 1, 3, dtype=torch.float64)[:, None]).abs().max().item() < 1e-12
    True
    """

    def __init__(
        self,
        equations: Sequence[Law],
        coordinates: Sequence[str],
        unknowns: Sequence[str] = ("u",),
        parameters: Mapping[str, float | None] | None = None,
        positive: Sequence[str] = (),
        start: Mapping[str, float] | None = None,
        conditions: Sequence[Law] = (),
        shifts: Sequence[Sequence[float] | None] | None = None,
    ) -> None:
        super().__init__()
        self.equations, self.conditions = list(equations), list(conditions)
        self.coordinates, self.unknowns = tuple(coordinates), tuple(unknowns)
        self.parameters_given = dict(parameters or {})
        self.positive, self.start = tuple(positive), dict(start or {})
        self.shifts = list(shifts or [None] * len(self.conditions))
        self._check_names()
        self._laws = [law(e) for e in self.equations]
        self._rules = [law(c) for c in self.conditions]
        self.learned = nn.ParameterDict({
            name: nn.Parameter(torch.tensor(self._first(name), dtype=torch.float64))
            for name, value in self.parameters_given.items() if value is None
        })  # fmt: skip
        self.wanted = self._wanted([*self._laws, *self._rules])

    def _check_names(self) -> None:
        names = [*self.coordinates, *self.unknowns, *self.parameters_given]
        twice = sorted({n for n in names if names.count(n) > 1})
        if twice:
            raise ValueError(
                f"{', '.join(twice)} is used twice among coordinates, unknowns and parameters"
            )
        if any(len(c) != 1 for c in self.coordinates):
            raise ValueError(
                f"coordinates have names of one letter, got {', '.join(self.coordinates)}"
            )

    def _first(self, name: str) -> float:
        if name not in self.positive:
            return float(self.start.get(name, 0.0))
        value = float(self.start.get(name, 1.0))
        if not value > 0:
            raise ValueError(f"the coefficient {name} is positive and cannot start at {value}")
        return float(torch.tensor(value, dtype=torch.float64).log())

    def config(self) -> dict[str, Any]:
        plain = [e.text if isinstance(e, Expression) else e for e in self.equations]
        others = [c.text if isinstance(c, Expression) else c for c in self.conditions]
        return {
            "equations": plain, "coordinates": list(self.coordinates),
            "unknowns": list(self.unknowns), "parameters": self.parameters_given,
            "positive": list(self.positive), "start": self.start, "conditions": others,
            "shifts": self.shifts,
        }  # fmt: skip

    @property
    def coefficients(self) -> dict[str, Any]:
        """All coefficients by name, numbers or tensors with a gradient."""
        return {
            name: value if value is not None
            else self.learned[name].exp() if name in self.positive else self.learned[name]
            for name, value in self.parameters_given.items()
        }  # fmt: skip

    def numbers(self) -> dict[str, float]:
        """All coefficients by name, as numbers."""
        with torch.no_grad():
            return {k: float(torch.as_tensor(v).detach()) for k, v in self.coefficients.items()}

    def _wanted(self, laws: Sequence[Any]) -> tuple[Index, ...]:
        """What must be known of u, found by asking every law once at two points."""
        seen: set[Index] = set()
        size = 2
        zeros = torch.full((size,), 0.5, dtype=torch.float64)

        def find(index: Index) -> Tensor:
            seen.add(index)
            return zeros

        handles = {n: Field(find, self.coordinates, n) for n in self.unknowns}
        others = {f"{n}_other": handles[n] for n in self.unknowns}
        points = dict.fromkeys(self.coordinates, zeros)
        values = {**handles, **others, **points, **self._numbers()}
        for one in laws:
            found = one(values)
            for r in found if isinstance(found, list | tuple) else [found]:
                if not isinstance(r, Tensor | Field) or len(r) != size:
                    shape = tuple(r.shape) if isinstance(r, Tensor) else type(r).__name__
                    raise ShapeError(
                        f"{one.text!r} gives {shape} for {size} points; one residual per point is needed"
                    )
        return tuple(sorted(seen - {()}, key=lambda i: (len(i), i)))

    def _numbers(self) -> dict[str, Any]:
        return {n: 0.5 if v is None else v for n, v in self.parameters_given.items()}

    def joint(
        self, net: Callable[[Tensor], Tensor], x: Tensor, kind: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        found = derivatives(net, x, self.wanted)
        u = found[()]
        if u.shape[1] != len(self.unknowns):
            raise ShapeError(
                f"the function has {u.shape[1]} components, the unknowns are {', '.join(self.unknowns)}"
            )
        values = self._values(found, x)
        r = self._residuals(self._laws, values)
        if kind is not None:
            for at, rule in enumerate(self._rules, 1):
                r = self._at_kind(net, x, kind == at, rule, self.shifts[at - 1], values, r)
        return u, r

    def _values(self, found: Mapping[Index, Tensor], x: Tensor, suffix: str = "") -> dict[str, Any]:
        tables = {
            f"{name}{suffix}": {index: v[:, c] for index, v in found.items()}
            for c, name in enumerate(self.unknowns)
        }
        handles = given(tables, self.coordinates)
        if suffix:
            return dict(handles)
        points = {c: x[:, i] for i, c in enumerate(self.coordinates)}
        return {**handles, **points, **self.coefficients}

    def _at_kind(
        self, net: Any, x: Tensor, rows: Tensor, rule: Any, shift: Sequence[float] | None,
        values: dict[str, Any], r: Tensor,
    ) -> Tensor:  # fmt: skip
        """Residuals with those of one condition at its rows."""
        if shift is None:
            own = self._residuals([rule], values)
            padded = nn.functional.pad(own, (0, r.shape[1] - own.shape[1]))
            return torch.where(rows[:, None], padded, r)
        at = rows.nonzero()[:, 0]  # another point costs another pass: of these rows alone
        if not len(at):
            return r
        here = x[at]
        there = here + torch.as_tensor(shift).to(here)
        near, far = (derivatives(net, p, self.wanted) for p in (here, there))
        own = self._residuals(
            [rule], {**self._values(near, here), **self._values(far, there, "_other")}
        )
        return r.index_copy(0, at, nn.functional.pad(own, (0, r.shape[1] - own.shape[1])))

    def _residuals(self, laws: Sequence[Any], values: Mapping[str, Any]) -> Tensor:
        columns: list[Tensor] = []
        for one in laws:
            found = one(values)
            columns += [
                r.value if isinstance(r, Field) else r
                for r in (found if isinstance(found, list | tuple) else [found])
            ]
        return torch.stack(columns, 1)
