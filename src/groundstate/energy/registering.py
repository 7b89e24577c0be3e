"""Entry of an energy in the registry, with an example of it for contract tests and docs tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor

from groundstate.energy.base import Energy
from groundstate.registry import energies

E = TypeVar("E", bound=type)


def example_rows(
    energy: Energy, n: int, generator: torch.Generator | None = None
) -> dict[str, Tensor]:
    """``n`` rows of values for every variable, drawn from their spaces."""
    device, dtype = energy.placement()
    return {
        name: space.draw(n, generator=generator, device=device, dtype=dtype)
        for name, space in energy.spaces.items()
    }


def registered(formula: str, make: Callable[[], Energy]) -> Callable[[E], E]:
    """Register an energy class; ``make`` builds a small instance with some structure."""

    def batch(n: int, generator: torch.Generator | None = None) -> dict[str, Any]:
        return dict(example_rows(make(), n, generator))

    return energies.register(formula=formula, make=make, batch=batch)
