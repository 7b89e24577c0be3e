"""Networks of one kind, trained as one program."""

from __future__ import annotations

from typing import Any

from groundstate.errors import NotApplicable
from groundstate.models.networks.population_members import fit_members
from groundstate.models.population.members import F64, Settings


def network_members(
    estimator: Any, X: Any, y: Any, weights: F64 | None, settings: Settings
) -> list[Any]:
    """What as many clones would give with ``fit``, trained as one program."""
    rows = [None] * len(settings) if weights is None else list(weights)
    try:
        return fit_members(estimator, X, y, rows, settings)
    except FloatingPointError as error:
        raise NotApplicable(f"a member diverged, and its own fit says so: {error}") from error
