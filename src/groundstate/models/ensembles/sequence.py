"""Ensembles as sequences of their fitted members."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


class MemberSequence:
    """``model[0]`` and ``for member in model``."""

    estimators_: Any

    def __getitem__(self, index: Any) -> Any:
        return self.estimators_[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.estimators_)


__all__ = ["MemberSequence"]
