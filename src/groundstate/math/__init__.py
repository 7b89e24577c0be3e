"""Numbers and distributions: chains, kernels, distances, distributions, optimisers; nothing learns here."""

from importlib import import_module
from typing import Any

# folders that the top level offers by name: groundstate.linalg, groundstate.stats, ...
PUBLIC = (
    "diffusion", "distances", "distributions", "divergences", "graphs", "info", "kernels", "linalg",
    "manifold", "neighbors", "ode", "optim", "stats", "transport",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in PUBLIC:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
