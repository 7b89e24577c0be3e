"""What members of a population have of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from groundstate.compute.random import Key


@dataclass
class Each:
    """What members have of their own, P values each."""

    keys: list[Key]
    lr: list[float]
    strength: list[float]
    l1: list[float]
    clip: list[float] | None
    schedule: list[Any]
    settings: dict[str, list[float]] = field(default_factory=dict)

    def part(self, members: Sequence[int]) -> Each:
        """The values of some members."""

        def pick(values: Any) -> Any:
            return None if values is None else [values[i] for i in members]

        own = {name: pick(v) for name, v in self.settings.items()}
        given = {f.name: pick(getattr(self, f.name)) for f in fields(self) if f.name != "settings"}
        return Each(**given, settings=own)
