"""Packages that load what they export when it is first asked for.

A package writes its exports once, where type checkers read them::

    if TYPE_CHECKING:
        from groundstate.learn.fit import fit as fit

    lazy(__name__)

and a name imports its module on first use, so that a program loads the modules it runs and no others.
"""

from __future__ import annotations

import ast
import sys
from difflib import get_close_matches
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any


def declared(file: str) -> dict[str, str]:
    """Exported name to the module it comes from, as the ``if TYPE_CHECKING:`` block of a file says."""
    with open(file, encoding="utf-8") as source:
        body = ast.parse(source.read()).body
    blocks = (
        node.body
        for node in body
        if isinstance(node, ast.If)
        and isinstance(node.test, ast.Name)
        and node.test.id == "TYPE_CHECKING"
    )
    return {
        alias.name: line.module
        for block in blocks
        for line in block
        if isinstance(line, ast.ImportFrom) and line.module
        for alias in line.names
        if alias.asname == alias.name  # the form that exports
    }


def _imported(home: str, name: str) -> Any:
    """What ``from home import name`` gives: an attribute, or a module of that folder."""
    package = import_module(home)
    there = package._homes if isinstance(package, LazyPackage) else vars(package)
    if name in there and there[name] != home:
        return getattr(package, name)
    return import_module(f"{home}.{name}")


class LazyPackage(ModuleType):
    """A package whose exports are imported when they are read, and its modules likewise."""

    _homes: dict[str, str]
    __all__: list[str]

    def __getattr__(self, name: str) -> Any:
        home = self._homes.get(name)
        module = f"{self.__name__}.{name}"
        if home is not None:
            value = _imported(home, name)
        elif not name.startswith("_") and find_spec(module) is not None:
            value = import_module(module)
        else:
            near = get_close_matches(name, self.__all__, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}{hint}")
        self.__dict__[name] = value  # later reads do not come through here
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        # importing a module writes it here, and must not hide an export of the same name
        if not (isinstance(value, ModuleType) and name in self._homes):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted(self.__all__)


def lazy(package: str) -> None:
    """Make a package give its declared exports on first use, and list them in ``__all__``."""
    module = sys.modules[package]
    homes = declared(str(module.__file__))
    names = [*module.__dict__.get("__all__", ()), *homes]
    module.__dict__.update(_homes=homes, __all__=list(dict.fromkeys(names)))
    module.__class__ = LazyPackage
