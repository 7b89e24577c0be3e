r"""Equations as text, ``"u.t + u*u.x - nu*u.xx"``: parsed and checked, never evaluated as code."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    name: getattr(torch, name)
    for name in ("sin", "cos", "tan", "exp", "log", "sqrt", "tanh", "sinh", "cosh", "abs", "sign", "atan")
}  # fmt: skip
CONSTANTS = {"pi": math.pi}
_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv, ast.Pow: operator.pow,
}  # fmt: skip
_UNARY: dict[type, Callable[[Any], Any]] = {ast.USub: operator.neg, ast.UAdd: operator.pos}
LONGEST = 2000


@dataclass(frozen=True)
class Expression:
    r"""Arithmetic on named values and their derivatives, read from text.

    Numbers, names, derivatives such as ``u.xx``, ``+ - * / **``, brackets, ``pi`` and the functions
    sin, cos, tan, exp, log, sqrt, tanh, sinh, cosh, abs, sign, atan. ``a = b`` means ``a - (b)``.
    Anything else in the text is an error that says where.

    Parameters
    ----------
    text : such as ``"u.t + u*u.x - nu*u.xx"``

    Attributes
    ----------
    names : names that need a value
    derivatives : pairs of a name and what it is differentiated in, such as ``("u", "xx")``

    Examples
    --------
    >>> f = Expression("a * sin(pi * x) + 1")
    >>> sorted(f.names), float(f({"a": 2.0, "x": torch.tensor(0.5)}))
    (['a', 'x'], 3.0)
    >>> Expression("u.t = 3*u.xx").derivatives
    (('u', 't'), ('u', 'xx'))
    """

    text: str

    def __post_init__(self) -> None:
        _ = self._tree

    @cached_property
    def _tree(self) -> ast.expr:
        text = self.text
        if not isinstance(text, str) or not text.strip() or len(text) > LONGEST:
            raise ValueError(
                f"an equation is a text of up to {LONGEST} characters, got {text!r:.60}"
            )
        sides = text.split("=")
        if len(sides) > 2:
            raise ValueError(f"{text!r} has more than one equals sign")
        source = text if len(sides) == 1 else f"({sides[0]}) - ({sides[1]})"
        try:
            tree = ast.parse(source.strip(), mode="eval").body
        except (SyntaxError, RecursionError, MemoryError, ValueError) as error:
            raise ValueError(f"{text!r} is not an equation: {error}") from None
        try:
            self._check(tree)
        except RecursionError:
            raise ValueError(f"{text[:60]!r}... is nested too deeply") from None
        return tree

    def _check(self, node: ast.expr) -> None:
        match node:
            case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
                return
            case ast.Name():
                return
            case ast.Attribute(value=ast.Name(id=name)) if name not in FUNCTIONS:
                return
            case ast.BinOp(left=a, op=op, right=b) if type(op) in _BINARY:
                self._check(a)
                self._check(b)
            case ast.UnaryOp(op=op, operand=a) if type(op) in _UNARY:
                self._check(a)
            case ast.Call(func=ast.Name(id=name), args=[a], keywords=[]) if name in FUNCTIONS:
                self._check(a)
            case ast.Call(func=ast.Name(id=name)):
                raise ValueError(
                    f"{name}(...) in {self.text!r}: the functions are {', '.join(FUNCTIONS)}, of one "
                    "argument"
                )
            case _:
                raise ValueError(
                    f"{ast.unparse(node)!r} in {self.text!r}: an equation has numbers, names, "
                    "derivatives such as u.xx, + - * / **, brackets and functions"
                )

    @cached_property
    def names(self) -> frozenset[str]:
        found = {n.id for n in ast.walk(self._tree) if isinstance(n, ast.Name)}
        return frozenset(found - FUNCTIONS.keys() - CONSTANTS.keys())

    @cached_property
    def derivatives(self) -> tuple[tuple[str, str], ...]:
        found = {
            (n.value.id, n.attr)
            for n in ast.walk(self._tree)
            if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name)
        }
        return tuple(sorted(found))

    def __call__(self, values: Mapping[str, Any]) -> Any:
        """The value, of the values of its names."""
        missing = sorted(self.names - values.keys())
        if missing:
            raise ValueError(
                f"{self.text!r} needs {', '.join(missing)}; there are {', '.join(sorted(values))}"
            )
        return self._value(self._tree, values)

    def _value(self, node: ast.expr, values: Mapping[str, Any]) -> Any:
        match node:
            case ast.Constant(value=number):
                return float(number)  # type: ignore[arg-type]
            case ast.Name(id=name):
                return values[name] if name in values else CONSTANTS[name]
            case ast.Attribute(value=ast.Name(id=name), attr=attr):
                found = values[name]
                if isinstance(found, Tensor | float | int):
                    raise ValueError(
                        f"{name}.{attr} in {self.text!r}: {name} is no unknown function"
                    )
                return getattr(found, attr)
            case ast.BinOp(left=a, op=op, right=b):
                return _BINARY[type(op)](self._value(a, values), self._value(b, values))
            case ast.UnaryOp(op=op, operand=a):
                return _UNARY[type(op)](self._value(a, values))
            case ast.Call(func=ast.Name(id=name), args=[a]):
                inner = self._value(a, values)
                if isinstance(inner, float):
                    inner = torch.tensor(inner, dtype=torch.float64)
                return FUNCTIONS[name](inner)
        raise AssertionError(ast.dump(node))  # _check let nothing else through
