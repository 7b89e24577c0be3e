"""What a setting may be: a range of numbers, or one of several values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_PLAIN = (str, int, float, bool, type(None))


@dataclass(frozen=True)
class Real:
    """A real setting between ``low`` and ``high``, on a logarithmic scale or in steps if asked."""

    low: float
    high: float
    log: bool = False
    step: float | None = None
    prior: Any = None  # a frozen scipy distribution, uniform unless given


@dataclass(frozen=True)
class Whole:
    """A whole-number setting between ``low`` and ``high``, both included."""

    low: int
    high: int
    log: bool = False
    step: int = 1
    prior: Any = None


@dataclass(frozen=True)
class Choice:
    """One of several values, of any kind."""

    choices: tuple[Any, ...]

    def __init__(self, *choices: Any) -> None:
        object.__setattr__(self, "choices", choices)

    @property
    def labels(self) -> tuple[Any, ...]:
        """What a study stores: the values themselves, or their texts where they are objects."""
        if all(isinstance(choice, _PLAIN) for choice in self.choices):
            return self.choices
        texts = [" ".join(repr(choice).split()) for choice in self.choices]
        many = len(set(texts)) < len(texts)
        return tuple(f"{i}: {text}" for i, text in enumerate(texts)) if many else tuple(texts)


Setting = Real | Whole | Choice
