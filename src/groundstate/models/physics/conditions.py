r"""What u is, or does, on the boundary and at the beginning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from groundstate.compute.random import Key
from groundstate.energy.networks.equation import Law, law
from groundstate.energy.networks.expression import Expression
from groundstate.errors import ShapeError
from groundstate.models.physics.domain import Box, Domain, Points


@dataclass(frozen=True)
class Minus:
    """The difference of a text and a value, of named values."""

    left: str
    right: Law

    @property
    def text(self) -> str:
        return f"{self.left} - {self.right}"

    def __call__(self, values: Any) -> Any:
        found = law(self.right)(values)
        return Expression(self.left)(values) - found


@dataclass(frozen=True)
class Piece:
    """Points of a condition: values of u there, or a residual that vanishes there.

    Attributes
    ----------
    points : ``(n, d)``
    value, of : what a component of u is there, for values
    rule : residual, for other conditions
    shift : to the other point that the residual compares with
    """

    points: Points
    value: Law = 0.0  # type: ignore[assignment]
    of: str = "u"
    rule: Any = None
    shift: tuple[float, ...] | None = None


def sides_of(on: str, domain: Domain) -> list[tuple[str, float]]:
    """Sides named by a text such as "x=-1, x=1" or "boundary" (all sides besides those of t)."""
    box: Box = domain.box
    if on == "boundary":
        return [(c, v) for c, a, b in zip(box.names, box.low, box.high) if c != "t" for v in (a, b)]
    found = []
    for part in on.split(","):
        name, _, value = (p.strip() for p in part.partition("="))
        i = box.index(name)
        ends = {"low": box.low[i], "high": box.high[i]}
        try:
            at = ends[value] if value in ends else float(value)
        except ValueError:
            raise ValueError(
                f"a side is written like '{name}={box.low[i]:g}' or '{name}=low', got {part.strip()!r}"
            ) from None
        if at not in ends.values():
            raise ValueError(
                f"{part.strip()!r} is no side: {name} goes from {box.low[i]:g} to {box.high[i]:g}"
            )
        found.append((name, at))
    return found


@dataclass(frozen=True)
class Dirichlet:
    r"""Values on sides: :math:`u = g`.

    Parameters
    ----------
    on : sides such as ``"x=-1, x=1"``, ``"boundary"``, or points ``(n, d)``
    value : g, a number, a text or a function of the coordinates
    of : the component
    """

    on: Any = "boundary"
    value: Any = 0.0
    of: str = "u"

    def pieces(self, domain: Domain, n: int, key: Key) -> list[Piece]:
        if not isinstance(self.on, str):
            return [Piece(_points(self.on, domain), self.value, self.of)]
        return [
            Piece(domain.side(name, at, n, key.fold(f"{name}{at}")), self.value, self.of)
            for name, at in sides_of(self.on, domain)
        ]

    def hard(self, domain: Domain) -> list[tuple[str, float]] | None:
        """The sides where a network can have the values by construction."""
        return sides_of(self.on, domain) if isinstance(self.on, str) else None


@dataclass(frozen=True)
class Initial:
    r"""What u, or with ``order=1`` its rate :math:`u_t`, is at the first time.

    Parameters
    ----------
    value : a number, a text or a function of the coordinates
    of : the component
    order : 0 for u, 1 for :math:`u_t`
    """

    value: Any = 0.0
    of: str = "u"
    order: int = 0

    def pieces(self, domain: Domain, n: int, key: Key) -> list[Piece]:
        start = domain.low[domain.index("t")]
        X = domain.side("t", start, n, key)
        if self.order == 0:
            return [Piece(X, self.value, self.of)]
        return [Piece(X, rule=difference(f"{self.of}.{'t' * self.order}", self.value))]

    def hard(self, domain: Domain) -> list[tuple[str, float]] | None:
        return [("t", domain.low[domain.index("t")])] if self.order == 0 else None


@dataclass(frozen=True)
class Robin:
    r"""A mixture of value and outward slope on sides: :math:`au + b\,\partial u/\partial n = g`.

    Parameters
    ----------
    on : sides
    value : g
    a, b : numbers
    of : the component
    """

    on: str = "boundary"
    value: Any = 0.0
    a: float = 1.0
    b: float = 1.0
    of: str = "u"

    def pieces(self, domain: Domain, n: int, key: Key) -> list[Piece]:
        found = []
        for name, at in sides_of(self.on, domain):
            sign = 1.0 if at == domain.high[domain.index(name)] else -1.0
            left = f"{self.a!r}*{self.of} + {sign * self.b!r}*{self.of}.{name}"
            X = domain.side(name, at, n, key.fold(f"{name}{at}"))
            found.append(Piece(X, rule=difference(left, self.value)))
        return found

    def hard(self, domain: Domain) -> list[tuple[str, float]] | None:
        return None


@dataclass(frozen=True)
class Neumann:
    r"""The outward slope on sides: :math:`\partial u/\partial n = g`.

    Parameters
    ----------
    on : sides
    value : g
    of : the component
    """

    on: str = "boundary"
    value: Any = 0.0
    of: str = "u"

    def pieces(self, domain: Domain, n: int, key: Key) -> list[Piece]:
        return Robin(self.on, self.value, 0.0, 1.0, self.of).pieces(domain, n, key)

    def hard(self, domain: Domain) -> list[tuple[str, float]] | None:
        return None


@dataclass(frozen=True)
class Periodic:
    r"""u, and with ``order=1`` its slope, are the same at both ends of a coordinate.

    Parameters
    ----------
    along : the coordinate
    of : the component
    order : 0 for values alone, 1 for values and slopes
    """

    along: str = "x"
    of: str = "u"
    order: int = 1

    def pieces(self, domain: Domain, n: int, key: Key) -> list[Piece]:
        i = domain.index(self.along)
        X = domain.side(self.along, domain.low[i], n, key)
        width = domain.high[i] - domain.low[i]
        shift = tuple(width if j == i else 0.0 for j in range(len(domain.names)))
        texts = [f"{self.of} - {self.of}_other"]
        if self.order:
            texts.append(f"{self.of}.{self.along} - {self.of}_other.{self.along}")
        return [Piece(X, rule=text, shift=shift) for text in texts]

    def hard(self, domain: Domain) -> list[tuple[str, float]] | None:
        return None


Condition = Dirichlet | Initial | Robin | Neumann | Periodic
KINDS: dict[str, type] = {
    "dirichlet": Dirichlet, "initial": Initial, "robin": Robin, "neumann": Neumann,
    "periodic": Periodic,
}  # fmt: skip


def difference(left: str, right: Any) -> Any:
    """``left - right``, as a text where both are."""
    if isinstance(right, str | int | float):
        return f"{left} - ({right if isinstance(right, str) else repr(float(right))})"
    return Minus(left, right)


def values_at(value: Any, X: Points, names: Sequence[str], parameters: dict[str, Any]) -> Points:
    """A number, a text, a function of coordinates or an array, at points ``(n,)``."""
    if isinstance(value, int | float):
        return np.full(len(X), float(value))
    if isinstance(value, str) or callable(value):
        t = torch.as_tensor(X, dtype=torch.float64)
        known = {k: v for k, v in parameters.items() if v is not None}
        found = law(value)({**{c: t[:, i] for i, c in enumerate(names)}, **known})
        out = torch.as_tensor(found, dtype=torch.float64)
        return np.asarray(out.expand(len(X)).numpy(), dtype=np.float64).copy()
    given = np.asarray(value, dtype=np.float64).reshape(-1)
    if len(given) != len(X):
        raise ShapeError(f"the condition gives {len(given)} values for {len(X)} points")
    return given


def _points(on: Any, domain: Domain) -> Points:
    X = np.asarray(on, dtype=np.float64)
    if X.ndim != 2 or X.shape[1] != len(domain.names):
        raise ShapeError(
            f"points of a condition are (n, {len(domain.names)}) for {', '.join(domain.names)}, got "
            f"shape {X.shape}"
        )
    return X
