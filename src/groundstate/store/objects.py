"""Which classes may be stored, and how their objects are taken apart and built again.

A file names classes by words such as ``models.LogisticRegression``. The word is looked up in what
*this program* offers: groundstate's own rooms, a short list of scikit-learn and torch classes, and
what the user registered. No module is ever imported because a file names it.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import importlib
import importlib.util
import re
import sys
from pathlib import Path
from typing import Any, Protocol

from groundstate.errors import StoreError
from groundstate.store.migrations import RENAMED

ROOMS = ("compute", "math", "nn", "energy", "infer", "learn", "data", "models", "evaluate", "tune")
_PACKAGE = __name__.partition(".")[0]
_SKLEARN = {
    "Pipeline": "pipeline",
    "DummyClassifier": "dummy",
    "DummyRegressor": "dummy",
    "StandardScaler": "preprocessing",
    "MinMaxScaler": "preprocessing",
    "MaxAbsScaler": "preprocessing",
    "RobustScaler": "preprocessing",
    "OneHotEncoder": "preprocessing",
    "OrdinalEncoder": "preprocessing",
    "LabelEncoder": "preprocessing",
    "SimpleImputer": "impute",
}
_registered: dict[str, type] = {}
_found: dict[str, type] = {}


class Hook(Protocol):
    """How objects of a class are taken apart and built again."""

    def parts(self, value: Any, where: str) -> dict[str, dict[str, Any]]:
        """Named dicts of storable values."""
        ...

    def build(self, cls: type, parts: dict[str, dict[str, Any]], device: str) -> Any:
        """The object again; ``device`` is where its tensors went, or ``"stored"``."""
        ...


def register(cls: type) -> type:
    r"""Let objects of your own class be stored and loaded; usable as a decorator.

    The class needs one of: ``to_state() -> dict`` with a classmethod ``from_state(dict)``;
    scikit-learn's ``get_params``; being a dataclass, an enum, or a torch module. groundstate's own
    classes need no registration.

    Parameters
    ----------
    cls
        A class defined at the top of a module. Files name it ``module.Class``; a program that
        loads such a file must register it first.

    Examples
    --------
    >>> import dataclasses
    >>> from groundstate.store import dumps, loads, register
    >>> @register
    ... @dataclasses.dataclass
    ... class Point:
    ...     x: float
    >>> loads(dumps(Point(2.0)))
    Point(x=2.0)
    """
    if hook_of(cls) is None:
        raise StoreError(
            f"{cls.__qualname__} cannot be registered: give it to_state() and a classmethod "
            "from_state(dict), or make it a dataclass"
        )
    _registered[f"{cls.__module__}.{cls.__qualname__}"] = cls
    return cls


def class_id(cls: type) -> str | None:
    """The word for a class in files, None when the class may not be stored."""
    name = f"{cls.__module__}.{cls.__qualname__}"
    if _registered.get(name) is cls:
        return name
    root, _, rest = cls.__module__.partition(".")
    names = []
    if root == _PACKAGE:
        room, *folders = rest.split(".")
        # a word that another class has already is made longer by folders
        names = [".".join([room, *folders[:n], cls.__qualname__]) for n in range(len(folders) + 1)]
    elif root == "sklearn" and cls.__name__ in _SKLEARN:
        names = [f"sklearn.{cls.__name__}"]
    elif root == "torch":
        names = [f"torch.{cls.__name__}"]
    return next((name for name in names if _known(name) is cls), None)


def class_of(name: Any) -> type:
    """The class that a file's word stands for; ``StoreError`` when it is not on the list."""
    if not isinstance(name, str):
        raise StoreError(f"a class cannot be named {name!r:.40}")
    cls = _registered.get(name) or _known(name)
    if cls is None:
        raise StoreError(
            f"the file holds an object of class {name!r:.80}, which this groundstate does not "
            "know; if it is your own class, call groundstate.store.register on it before load"
        )
    return cls


def _known(name: str) -> type | None:
    """A class of groundstate or of the listed ones of scikit-learn and torch."""
    if name not in _found:
        room, _, qualname = RENAMED.get(name, name).partition(".")
        if room in ROOMS:
            cls = _in_folder(f"{_PACKAGE}.{room}", qualname)
        elif room == "sklearn" and qualname in _SKLEARN:
            cls = getattr(importlib.import_module(f"sklearn.{_SKLEARN[qualname]}"), qualname)
        elif room == "torch":
            from groundstate.store.modules import torch_layer

            cls = torch_layer(qualname)
        else:
            cls = None
        if cls is None:
            return None
        _found[name] = cls
    return _found[name]


def _in_folder(package: str, qualname: str) -> type | None:
    """A class of one of our folders: what the folder exports, else what a module of it defines, first
    those whose name resembles the class. Which modules happen to be loaded does not matter.

    Modules that do not write ``class NAME`` come last, since importing a whole room takes seconds.
    """
    first, _, rest = qualname.partition(".")
    modules = _modules(package)
    if rest and f"{package}.{first}" in modules:
        return _in_folder(f"{package}.{first}", rest)
    wanted = qualname.lower()
    near = sorted(modules, key=lambda name: name.rpartition(".")[2].replace("_", "") != wanted)
    written = re.compile(rf"^class {re.escape(first)}\b", re.M)
    near.sort(key=lambda name: not written.search(_source(name)))
    for name in (package, *near):
        module = _imported(name)
        candidate: Any = getattr(module, first, None) if _offers(module, first) else None
        for part in rest.split(".") if rest else ():
            candidate = getattr(candidate, "__dict__", {}).get(part)
        if isinstance(candidate, type) and f"{candidate.__module__}.".startswith(f"{package}."):
            return candidate
    return None


def _offers(module: Any, name: str) -> bool:
    """Whether a folder exports the name, or a module has it without having imported it."""
    if name in getattr(module, "__all__", ()):
        return True
    value = getattr(module, "__dict__", {}).get(name)
    return isinstance(value, type) and value.__module__ == module.__name__


@functools.cache
def _imported(name: str) -> Any:
    """One of our modules; None when it needs an optional package that is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def _path(name: str) -> Path | None:
    """Where one of our modules or folders is, without its suffix and without importing anything."""
    root, *below = name.split(".")
    spec = importlib.util.find_spec(root)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0]).joinpath(*below)


@functools.cache
def _source(name: str) -> str:
    """The text of one of our modules, empty where there is none to read."""
    path = _path(name)
    if path is None:
        return ""
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return file.read_text(encoding="utf-8") if file.is_file() else ""


@functools.cache
def _modules(package: str) -> tuple[str, ...]:
    """The package and all modules below it, found on disk and not yet imported."""
    root = _path(package)
    if root is None or not root.is_dir():
        return ()
    below: list[str] = []
    for path in sorted(root.iterdir(), key=lambda path: path.stem):
        name = f"{package}.{path.stem}"
        if (path / "__init__.py").is_file():
            below += _modules(name)
        elif path.suffix == ".py" and path.stem != "__init__":
            below.append(name)
    return (package, *below)


def hook_of(cls: type) -> Hook | None:
    """How objects of ``cls`` are stored; decided by the class, never by the file."""
    if callable(getattr(cls, "to_state", None)) and callable(getattr(cls, "from_state", None)):
        return _States()
    if issubclass(cls, enum.Enum):
        return _Enums()
    torch = sys.modules.get("torch")
    if torch is not None and issubclass(cls, torch.nn.Module):
        from groundstate.store.modules import Modules

        return Modules()
    if callable(getattr(cls, "get_params", None)):
        from groundstate.store.estimators import Estimators

        return Estimators()
    return _Dataclasses() if dataclasses.is_dataclass(cls) else None


class _States:
    def parts(self, value: Any, where: str) -> dict[str, dict[str, Any]]:
        return {"state": value.to_state()}

    def build(self, cls: Any, parts: dict[str, dict[str, Any]], device: str) -> Any:
        return cls.from_state(parts["state"])


class _Enums:
    def parts(self, value: Any, where: str) -> dict[str, dict[str, Any]]:
        return {"state": {"name": value.name}}

    def build(self, cls: Any, parts: dict[str, dict[str, Any]], device: str) -> Any:
        return cls[parts["state"]["name"]]


class _Dataclasses:
    def parts(self, value: Any, where: str) -> dict[str, dict[str, Any]]:
        fields = dataclasses.fields(value)
        return {"fields": {field.name: getattr(value, field.name) for field in fields}}

    def build(self, cls: Any, parts: dict[str, dict[str, Any]], device: str) -> Any:
        values = parts["fields"]
        fields = dataclasses.fields(cls)
        unknown = set(values) - {field.name for field in fields}
        if unknown:
            raise StoreError(f"{cls.__name__} has no field {sorted(unknown)[0]!r:.40}")
        if cls.__dataclass_params__.init:
            built = cls(**{f.name: values[f.name] for f in fields if f.init and f.name in values})
            later = [field for field in fields if not field.init]
        else:  # its own constructor takes something else than the fields
            built, later = cls.__new__(cls), list(fields)
        for field in later:
            object.__setattr__(built, field.name, values[field.name])
        return built
