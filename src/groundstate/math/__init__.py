"""Numbers and distributions: chains, kernels, distances, distributions, optimisers; nothing learns here."""

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    if name in ("optim", "stats"):  # rooms of this floor that the top level offers by name
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
