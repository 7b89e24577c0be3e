"""What a family of estimators shares is described and constrained once, on the class they share.

A class describes and constrains the parameters of its own. Those of its ``__init__`` that it says
nothing about take what the nearest of its bases says, with the default of its own signature.
"""

from __future__ import annotations

import re
from functools import cache
from inspect import Parameter, cleandoc, signature
from typing import Any

from groundstate.models.validation import COMMON

_declared: dict[type, dict[str, Any]] = {}
_HEADING = re.compile(r"^(\w+)\n-{3,}\n", re.M)


def inherit(cls: Any) -> None:
    """Complete ``_parameter_constraints`` and the docstring of a class from its bases."""
    _declared[cls] = vars(cls).get("_parameter_constraints", {})
    if cls.__init__ is object.__init__:
        return  # what it says is for others
    given = dict([*signature(cls.__init__).parameters.items()][1:])
    rules = dict(COMMON)
    for base in reversed(cls.__mro__):
        rules |= _declared.get(base, {})
    cls._parameter_constraints = {name: rules[name] for name in given if name in rules}
    if vars(cls).get("__doc__") is None:  # as under python -OO
        return
    documented = [_documented(base) for base in cls.__mro__]
    parameters = dict(documented[0]["Parameters"])
    for name in given.keys() - parameters:
        found = next(
            (base["Parameters"][name] for base in documented if name in base["Parameters"]), None
        )
        if found is not None:
            parameters[name] = _with_default(found, given[name].default)
    learned = {
        name: text for base in reversed(documented) for name, text in base["Attributes"].items()
    }
    in_order = [*(name for name in given if name in parameters), *parameters]
    own_first = [*documented[0]["Attributes"], *learned]
    cls.__doc__ = _written(
        cleandoc(cls.__doc__),
        Parameters=[parameters[name] for name in in_order],
        Attributes=[learned[name] for name in own_first],
    )


def keep(estimator: Any, given: dict[str, Any]) -> None:
    """What an ``__init__`` does, and all it does: keep its parameters, which are its ``locals()``."""
    for name, value in given.items():
        if name != "self":
            setattr(estimator, name, value)


@cache
def _documented(cls: Any) -> dict[str, dict[str, str]]:
    """What the docstring of a class itself says of parameters and attributes, by name."""
    parts = _HEADING.split(cleandoc(vars(cls).get("__doc__") or ""))
    documented: dict[str, dict[str, str]] = {"Parameters": {}, "Attributes": {}}
    for heading, body in zip(parts[1::2], parts[2::2]):
        for text in re.split(r"\n(?=\S)", body.strip()):
            for name in text.partition("\n")[0].partition(" : ")[0].split(","):
                documented.setdefault(heading, {})[name.strip()] = text
    return documented


def _with_default(text: str, value: Any) -> str:
    head, line, rest = text.partition("\n")
    alone = "," not in head.partition(" : ")[0]
    if value is not Parameter.empty and alone and "default" not in head:
        head += f', default="{value}"' if isinstance(value, str) else f", default={value!r}"
    return head + line + rest


def _written(doc: str, **documented: list[str]) -> str:
    """The docstring with these sections, which stand before all others."""
    first, *parts = _HEADING.split(doc)
    made = {
        heading: "\n".join(dict.fromkeys(rows)) + "\n\n" for heading, rows in documented.items()
    }
    kept = {heading: body for heading, body in zip(parts[::2], parts[1::2]) if heading not in made}
    sections = ((h, body) for h, body in (made | kept).items() if body.strip())
    text = "".join(f"{heading}\n{'-' * len(heading)}\n{body}" for heading, body in sections)
    return f"{first.rstrip()}\n\n{text}".rstrip() + "\n"
