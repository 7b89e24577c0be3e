"""Generators whose rows have no density that they know."""

from __future__ import annotations

from typing import Any

from groundstate.errors import Unsupported


class NoDensity(Unsupported, AttributeError):
    """A question about a density, to a model without one: it has no such method."""


class Absent:
    """In place of a method that needs a density: ``hasattr`` says no, and asking says why."""

    def __get__(self, model: Any, owner: type) -> Any:
        if model is None:
            return self
        raise NoDensity(
            f"{owner.__name__} generates without a density (log_prob_kind_ is 'none'), so it has no "
            "score_samples, score or log_prob; judge its samples with "
            "groundstate.evaluate.assess_generator, or rank rows by their energy"
        )
