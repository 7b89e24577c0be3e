"""MODELS: the presets people import; each is an energy, a rule and a solver behind one contract."""

from importlib import import_module
from typing import Any

# folders that the top level offers by name: groundstate.physics
PUBLIC = ("physics", "text", "vision")


def __getattr__(name: str) -> Any:
    if name in PUBLIC:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
