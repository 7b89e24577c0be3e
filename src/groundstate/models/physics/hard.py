r"""Values on sides of a box that hold by construction, :math:`u = g + \ell N_\theta`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.energy.networks.equation import law
from groundstate.models.physics.problem import Problem
from groundstate.nn.coordinate import Constrained

Side = tuple[int, float, int, Any]  # coordinate, place, component, value


class Sides(nn.Module):
    """What is known on the sides of a box; base of the values g and of the distance ℓ.

    Parameters
    ----------
    sides : coordinate, place, component and value of each
    low, high : corners of the box
    coordinates : their names
    m : number of components of u
    parameters : numbers that values may name
    """

    def __init__(
        self, sides: Sequence[Sequence[Any]], low: Sequence[float], high: Sequence[float],
        coordinates: Sequence[str], m: int, parameters: dict[str, float],
    ) -> None:  # fmt: skip
        super().__init__()
        self.sides: list[Side] = [(int(i), float(at), int(c), v) for i, at, c, v in sides]
        self.low, self.high, self.coordinates = list(low), list(high), list(coordinates)
        self.m, self.parameters_given = m, dict(parameters)

    def config(self) -> dict[str, Any]:
        return {
            "sides": [list(s) for s in self.sides], "low": self.low, "high": self.high,
            "coordinates": self.coordinates, "m": self.m, "parameters": self.parameters_given,
        }  # fmt: skip

    def of(self, component: int) -> dict[int, list[tuple[float, Any]]]:
        """Places and values by coordinate."""
        found: dict[int, list[tuple[float, Any]]] = {}
        for i, at, c, value in self.sides:
            if c == component:
                found.setdefault(i, []).append((at, value))
        return found


class SideDistance(Sides):
    r""":math:`\ell`, a product over sides of the distance to each in units of the box, ``(N, m)``."""

    def forward(self, x: Tensor) -> Tensor:
        columns = []
        for c in range(self.m):
            ell = torch.ones_like(x[:, 0])
            for i, places in self.of(c).items():
                for at, _ in places:
                    ell = ell * (x[:, i] - at) / (self.high[i] - self.low[i])
            columns.append(ell)
        return torch.stack(columns, 1)


class SideValues(Sides):
    r"""g, transfinite interpolation of the values on sides, ``(N, m)``.

    One coordinate after the other, g is corrected by what is missing on its sides, linearly between
    two of them; where sides meet, their values should agree.
    """

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack([self._corrected(list(self.of(c).items()), x) for c in range(self.m)], 1)

    def _corrected(self, todo: list[tuple[int, list[tuple[float, Any]]]], x: Tensor) -> Tensor:
        if not todo:
            return torch.zeros_like(x[:, 0])
        *before, (i, places) = todo
        g = self._corrected(before, x)
        for at, value in places:
            on = torch.cat([x[:, :i], torch.full_like(x[:, i : i + 1], at), x[:, i + 1 :]], 1)
            missing = self._value(value, on) - self._corrected(before, on)
            if len(places) == 1:
                return g + missing
            other = next(p for p, _ in places if p != at)
            g = g + missing * (x[:, i] - other) / (at - other)
        return g

    def _value(self, value: Any, x: Tensor) -> Tensor:
        if isinstance(value, int | float):
            return torch.full_like(x[:, 0], value)
        points = {c: x[:, i] for i, c in enumerate(self.coordinates)}
        found = torch.as_tensor(law(value)({**points, **self.parameters_given}))
        return found.to(x).expand(len(x))


def constrained(net: nn.Module, problem: Problem) -> tuple[nn.Module, list[Any]]:
    """The network with the values it can have by construction, and the conditions left over."""
    domain, left, sides = problem.domain, [], []
    for condition in problem.conditions:
        hard = condition.hard(domain)
        if hard is None:
            left.append(condition)
            continue
        c = problem.unknowns.index(condition.of)
        sides += [(domain.index(name), at, c, condition.value) for name, at in hard]  # type: ignore[union-attr]
    if not sides:
        raise ValueError(
            "hard_bc=True needs values on sides of the domain (Dirichlet or Initial), and the problem "
            "has none; use hard_bc=False"
        )
    known = {k: v for k, v in problem.parameters.items() if v is not None}
    about = (sides, domain.low, domain.high, domain.names, len(problem.unknowns), known)
    return Constrained(net, SideDistance(*about), SideValues(*about)), left
