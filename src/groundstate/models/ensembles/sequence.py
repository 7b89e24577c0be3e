"""Ensembles as sequences of their fitted members: ``model[0]`` and ``for member in model``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def member_at(model: Any, index: Any) -> Any:
    """The method ``__getitem__`` of an ensemble."""
    return model.estimators_[index]


def each_member(model: Any) -> Iterator[Any]:
    """The method ``__iter__`` of an ensemble."""
    return iter(model.estimators_)
