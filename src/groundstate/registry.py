"""Registries: what exists, as rows of data that lists, docs tables, checks and tests are made from.

A part registers itself with a decorator in its own file; nobody keeps a central list. A registry
imports the modules of its package when it is first read: a new file is found by being there.
"""

from __future__ import annotations

import pkgutil
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from groundstate.errors import Unsupported

T = TypeVar("T")
_FINDING = threading.RLock()


@dataclass(frozen=True, kw_only=True)
class Row:
    """One registered object: its name, where it lives, the object, and one line about it."""

    name: str
    path: str  # "module:qualified name"
    obj: Any = field(repr=False, compare=False)
    summary: str = ""


R = TypeVar("R", bound=Row)


@dataclass(frozen=True, kw_only=True)
class ModelRow(Row):
    """A public estimator: its family, what it is for, and its scikit-learn role."""

    family: str
    task: Literal[
        "classification",
        "regression",
        "clustering",
        "representation",
        "density",
        "generation",
        "outliers",
        "forecasting",
        "detection",
        "tagging",
        "translation",
        "segmentation",
    ]
    role: str  # classifier, regressor, clusterer, transformer, density, embedding, forecaster, ...
    max_rows: int | None = None  # larger tables leave it out unless it is asked for by name
    auto: bool = (
        True  # whether `fit` considers it unasked: needs no settings, and no twin is better
    )
    shortlist: int | None = (
        None  # place among the few that `fit` tries by default, one of each kind
    )
    shortlist_rows: int | None = None  # larger tables leave it out of these
    shortlist_text: int | None = None  # place among those that `fit` tries where a column is text

    @property
    def rows(self) -> str:
        """The kind of rows it takes, as its class declares."""
        found: str = getattr(self.obj, "rows", "table")
        return found


@dataclass(frozen=True, kw_only=True)
class PartRow(Row):
    """An energy, rule, penalty, solver or inference method.

    ``make`` builds an instance for contract tests and docs tables: of an energy ``make()``, of the
    other parts ``make(energy)``. ``batch(n, generator)`` gives an energy's example rows.
    """

    formula: str = ""
    make: Callable[..., Any] | None = field(default=None, repr=False, compare=False)
    batch: Callable[..., Mapping[str, Any]] | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, kw_only=True)
class ExperimentRow(Row):
    """A seeded run that ends in a verdict and a picture; ``name`` is its id."""

    theme: str
    title: str


class Registry(Generic[R]):
    """Rows of one kind by name, filled by decorator and discovered on first read.

    Parameters
    ----------
    kind : what one row is, in words; used in error messages
    row : dataclass of the rows
    package : package whose modules are imported on first read

    Examples
    --------
    >>> tools = Registry("tool", Row, package=None)
    >>> @tools.register(summary="adds one")
    ... def increment(x):
    ...     return x + 1
    >>> tools["increment"].obj(1), [row.summary for row in tools]
    (2, ['adds one'])
    """

    def __init__(self, kind: str, row: type[R], package: str | None) -> None:
        self.kind = kind
        self.row = row
        self.package = package
        self._rows: dict[str, R] = {}
        self._discovered = package is None
        self._finding = False
        self._declared: set[tuple[str, ...]] = set()

    def register(self, name: str | None = None, /, **meta: Any) -> Callable[[T], T]:
        """Return a decorator that adds the object under ``name`` (its own name unless given)."""

        def add(obj: T) -> T:
            target: Any = obj
            key = name or target.__name__
            path = path_of(target)
            if key in self._rows and self._rows[key].path != path:
                raise ValueError(
                    f"the {self.kind} name {key!r} of {path} is taken by {self._rows[key].path};"
                    " names are unique, choose another"
                )
            fields = {"summary": first_line(target), **meta}
            self._rows[key] = self.row(name=key, path=path, obj=obj, **fields)
            return obj

        return add

    def __getitem__(self, name: str) -> R:
        if name not in self:
            near = get_close_matches(name, self._rows, n=1, cutoff=0.5)
            known = ", ".join(self.names()) or "none yet"
            hint = f"did you mean {near[0]!r}?" if near else f"there are: {known}."
            raise Unsupported(f"there is no {self.kind} named {name!r}; {hint}")
        return self._rows[name]

    def __contains__(self, name: object) -> bool:
        if name not in self._rows and not self._discovered:
            self._find(str(name))
        if name not in self._rows:
            self._discover()
        return name in self._rows

    def _find(self, name: str) -> None:
        """Import the modules that define a class of that name, where most rows are found."""
        for module in modules_writing(self.package or "", f"class {name}("):
            import_module(module)

    def __iter__(self) -> Iterator[R]:
        self._discover()
        return iter(sorted(self._rows.values(), key=lambda row: row.name))

    def __len__(self) -> int:
        self._discover()
        return len(self._rows)

    def declaring(self, *words: str) -> list[R]:
        """Rows whose modules write all these words, and others that are known, sorted by name.

        Only modules that write them are imported: a field's name, or a field with its value.
        """
        if not self._discovered and words not in self._declared:
            for name in modules_writing(self.package or "", *words):
                import_module(name)
            self._declared.add(words)
        return sorted(self._rows.values(), key=lambda row: row.name)

    def row_of(self, obj: object) -> R | None:
        """The row of an object, None where it has none; what exists was registered as it was made."""
        return next((row for row in self._rows.values() if row.obj is obj), None)

    def names(self) -> list[str]:
        """Return the sorted names."""
        return [row.name for row in self]

    def _discover(self) -> None:
        if self._discovered:
            return
        with _FINDING:  # other threads wait until all is there
            if self._discovered or self._finding:
                return  # a module being found may read the registry
            self._finding = True
            try:
                import_all(self.package or "")
                self._discovered = True
            finally:
                self._finding = False


def import_all(package: str) -> None:
    """Import every module under ``package``, in name order."""
    root = import_module(package)
    for found in sorted(pkgutil.iter_modules(root.__path__), key=lambda m: m.name):
        if found.name == "__main__":
            continue
        name = f"{package}.{found.name}"
        if found.ispkg:
            import_all(name)
        else:
            import_module(name)


def modules_writing(package: str, *words: str) -> list[str]:
    """Names of the modules under ``package`` whose source holds all words, in name order."""
    root = import_module(package)
    found = []
    for place in map(Path, root.__path__):
        for file in place.rglob("*.py"):
            text = file.read_text(encoding="utf-8")
            if all(word in text for word in words):
                parts = file.relative_to(place).with_suffix("").parts
                found.append(".".join((package, *(p for p in parts if p != "__init__"))))
    return sorted(found)


def path_of(obj: Any) -> str:
    """Where a class or function lives, "module:qualified name"."""
    return f"{obj.__module__}:{obj.__qualname__}"


def resolve(path: str) -> Any:
    """What stands at "module:name", imported now."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


def first_line(obj: object) -> str:
    """Return the first line of an object's docstring, without its full stop."""
    doc = (obj.__doc__ or "").strip()
    return doc.splitlines()[0].rstrip(".") if doc else ""


models = Registry("model", ModelRow, "groundstate.models")
energies = Registry("energy", PartRow, "groundstate.energy")
rules = Registry("learning rule", PartRow, "groundstate.learn")
penalties = Registry("penalty", PartRow, "groundstate.learn")
solvers = Registry("solver", PartRow, "groundstate.learn")
methods = Registry("inference method", PartRow, "groundstate.infer")
experiments = Registry("experiment", ExperimentRow, "groundstate.experiments")
