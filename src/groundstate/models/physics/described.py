r"""A problem from plain values, as a TOML file has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from groundstate.compute.random import Key
from groundstate.errors import DataError
from groundstate.models.physics.conditions import KINDS, values_at
from groundstate.models.physics.domain import Box, Domain, Mask
from groundstate.models.physics.library import PROBLEMS
from groundstate.models.physics.problem import Problem

KEYS = ("problem", "domain", "inside", "equation", "conditions", "parameters", "unknowns", "positive",
        "start", "unknown")  # fmt: skip


def problem_of(given: Mapping[str, Any]) -> Problem:
    """The problem that a table describes.

    ``problem = "burgers"`` takes one of the library, with ``[parameters]`` of its own; else ``equation``,
    ``[domain]`` with a pair for each coordinate, ``[[conditions]]`` with a ``kind`` each, ``[parameters]``.
    ``unknown = ["nu"]`` names parameters to be found from data. Equations are text, parsed and never run.

    Examples
    --------
    >>> found = problem_of({"equation": "u.t + u", "domain": {"t": [0, 1]},
    ...                     "conditions": [{"kind": "initial", "value": 1.0}]})
    >>> found.classify(), found.conditions
    ('ODE', (Initial(value=1.0, of='u', order=0),))
    """
    strange = [key for key in given if key not in KEYS]
    if strange:
        raise DataError(f"{', '.join(strange)} is not known; a problem has {', '.join(KEYS)}")
    parameters = {**given.get("parameters", {}), **dict.fromkeys(given.get("unknown", []))}
    if "problem" in given:
        name = given["problem"]
        if name not in PROBLEMS:
            raise DataError(f"there is no problem {name!r}; the library has {', '.join(PROBLEMS)}")
        try:
            made = PROBLEMS[name](**parameters)
        except TypeError as error:
            raise DataError(f"the problem {name}: {error}") from None
        return replace(made, start={**made.start, **given.get("start", {})})
    missing = [key for key in ("equation", "domain") if key not in given]
    if missing:
        raise DataError(
            f"the file needs {' and '.join(missing)}, or problem = one of {', '.join(PROBLEMS)}"
        )
    try:
        box = Box(**{name: tuple(side) for name, side in given["domain"].items()})
        domain: Domain = Mask(box, given["inside"]) if "inside" in given else box
        conditions = [_condition(dict(one)) for one in given.get("conditions", [])]
        found = Problem(
            domain, given["equation"], conditions, parameters, tuple(given.get("unknowns", ("u",))),
            tuple(given.get("positive", ())), dict(given.get("start", {})),
        )  # fmt: skip
        _check_conditions(found)
        return found
    except (TypeError, AttributeError, ValueError) as error:
        raise DataError(f"the problem cannot be read: {error}") from None


def _condition(given: dict[str, Any]) -> Any:
    kind = given.pop("kind", None)
    if kind not in KINDS:
        raise DataError(f"a condition has a kind, one of {', '.join(KINDS)}; got {kind!r}")
    return KINDS[kind](**given)


def _check_conditions(problem: Problem) -> None:
    """Ask every condition for one point, which says what is wrong with it before any work."""
    for one in problem.conditions:
        if one.of not in problem.unknowns:
            raise ValueError(
                f"a condition is about {one.of!r}; the unknown functions are {', '.join(problem.unknowns)}"
            )
        pieces = one.pieces(problem.domain, 1, Key.of(0))
        problem.residual(pieces)
        for piece in pieces:
            if piece.rule is None:
                values_at(piece.value, piece.points, problem.domain.names, problem.parameters)
