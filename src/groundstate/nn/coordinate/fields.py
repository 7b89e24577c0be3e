r"""Handles of unknown functions at points: ``u`` is a value, ``u.x`` and ``u.xx`` its derivatives."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from groundstate.nn.coordinate.derivatives import derivatives
from groundstate.nn.coordinate.jets import Index


class Field:
    r"""An unknown function at points: itself ``(N,)`` in arithmetic, and its derivatives by name.

    Parameters
    ----------
    find : from an index such as ``(0, 0)`` to that derivative, ``(N,)``
    coordinates : their names, one letter each
    name : of the function

    Examples
    --------
    >>> x = torch.tensor([[0.5], [1.0]], dtype=torch.float64)
    >>> (u,) = fields(lambda x: x**3, x, "x")
    >>> u.x.tolist(), u.xx.tolist(), (u - 1).tolist()
    ([0.75, 3.0], [3.0, 6.0], [-0.875, 0.0])
    """

    __array_ufunc__ = None  # NumPy's operators leave the work to these

    def __init__(
        self, find: Callable[[Index], Tensor], coordinates: Sequence[str], name: str = "u"
    ) -> None:
        self._find, self._coordinates, self._name = find, tuple(coordinates), name

    @property
    def value(self) -> Tensor:
        return self._find(())

    def __getattr__(self, name: str) -> Tensor:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._find(index_of(name, self._coordinates, self._name))

    def __repr__(self) -> str:
        return f"Field({self._name} of {', '.join(self._coordinates)})"

    def __neg__(self) -> Tensor:
        return -self.value

    def __pos__(self) -> Tensor:
        return self.value

    def __abs__(self) -> Tensor:
        return self.value.abs()

    def __len__(self) -> int:
        return len(self.value)

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return function(*map(_plain, args), **{k: _plain(v) for k, v in (kwargs or {}).items()})


def _plain(value: Any) -> Any:
    if isinstance(value, Field):
        return value.value
    return type(value)(map(_plain, value)) if isinstance(value, list | tuple) else value


def _operators() -> None:
    for name in ("add", "sub", "mul", "truediv", "pow"):
        f = getattr(operator, name)
        setattr(Field, f"__{name}__", lambda a, b, f=f: f(a.value, _plain(b)))
        setattr(Field, f"__r{name}__", lambda a, b, f=f: f(_plain(b), a.value))


_operators()


def index_of(name: str, coordinates: Sequence[str], function: str = "u") -> Index:
    """The coordinates that a name such as "xt" differentiates in, as numbers."""
    unknown = [letter for letter in name if letter not in coordinates]
    if unknown or not name:
        raise AttributeError(
            f"{function}.{name}: a derivative is named by the coordinates {', '.join(coordinates)}, "
            f"such as {function}.{coordinates[0]} or {function}.{coordinates[0] * 2}"
        )
    return tuple(sorted(coordinates.index(letter) for letter in name))


def fields(
    u: Callable[[Tensor], Tensor],
    x: Tensor,
    coordinates: Sequence[str],
    names: Sequence[str] = ("u",),
    wanted: Sequence[Index] = (),
    method: str = "auto",
) -> list[Field]:
    """Handles of the components of u at points x ``(N, d)``.

    Parameters
    ----------
    u : from points to ``(N, m)``
    x : points
    coordinates : names of the columns of x, one letter each, such as "tx"
    names : of the m components
    wanted : derivatives that will be asked for, computed in one pass; others are found when asked
    method : as in ``derivatives``
    """
    known: dict[Index, Tensor] = dict(derivatives(u, x, wanted, method)) if wanted else {}

    def find(index: Index) -> Tensor:
        if index not in known:
            known.update(derivatives(u, x, [index], method))
        return known[index]

    return [
        Field(lambda index, c=c: find(index)[:, c], coordinates, name)  # type: ignore[misc]
        for c, name in enumerate(names)
    ]


def given(
    values: Mapping[str, Mapping[Index, Tensor]], coordinates: Sequence[str]
) -> dict[str, Field]:
    """Handles whose derivatives are given, by name of the function."""
    return {name: Field(table.__getitem__, coordinates, name) for name, table in values.items()}


def D(u: Field, by: str) -> Tensor:
    r"""The derivative of a field, ``D(u, "xx")`` is :math:`u_{xx}`, ``(N,)``.

    >>> x = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
    >>> (u,) = fields(torch.sin, x, "x")
    >>> torch.allclose(D(u, "xx"), -torch.sin(x[:, 0]))
    True
    """
    return u._find(index_of(by, u._coordinates, u._name))


def _space(u: Field) -> list[str]:
    """Coordinates besides time."""
    return [c for c in u._coordinates if c != "t"]


def grad(u: Field) -> Tensor:
    r""":math:`\nabla u` in the coordinates besides t, ``(N, d)``."""
    return torch.stack([D(u, c) for c in _space(u)], 1)


def div(us: Sequence[Field]) -> Tensor:
    r""":math:`\sum_i\partial u_i/\partial x_i` in the coordinates besides t, ``(N,)``."""
    if not us or len(us) != len(_space(us[0])):
        raise ValueError(f"div takes one field for each coordinate besides t, got {len(us)}")
    return torch.stack([D(u, c) for u, c in zip(us, _space(us[0]))]).sum(0)


def laplacian(u: Field) -> Tensor:
    r""":math:`\Delta u = \sum_i u_{x_ix_i}` in the coordinates besides t, ``(N,)``."""
    return torch.stack([D(u, 2 * c) for c in _space(u)]).sum(0)
