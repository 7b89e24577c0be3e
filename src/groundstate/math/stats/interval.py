"""An estimate with the range that holds the truth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import scipy.stats

from groundstate.errors import DataError


@dataclass(frozen=True)
class Interval:
    """An estimate and a range that holds the truth with the given confidence.

    Attributes
    ----------
    estimate, low, high : float
    level : float
        Share of repetitions in which such a range holds the truth.
    method : str

    Examples
    --------
    >>> low, high = Interval(0.9, 0.88, 0.92)
    >>> print(Interval(0.9, 0.88, 0.92))
    0.9 (0.88 to 0.92)
    """

    estimate: float
    low: float
    high: float
    level: float = 0.95
    method: str = "wilson"

    def __str__(self) -> str:
        return f"{self.estimate:.4g} ({self.low:.4g} to {self.high:.4g})"

    def __iter__(self) -> Iterator[float]:
        yield self.low
        yield self.high

    def __contains__(self, value: object) -> bool:
        return isinstance(value, (int, float)) and self.low <= value <= self.high

    @property
    def width(self) -> float:
        """Length of the range."""
        return self.high - self.low

    def within(self, bounds: tuple[float, float]) -> Interval:
        """The part of the range that the quantity can take.

        >>> print(Interval(0.93, 0.84, 1.02).within((0.0, 1.0)))
        0.93 (0.84 to 1)
        """
        low, high = bounds
        ends = min(max(self.low, low), high), max(min(self.high, high), low)
        return replace(self, low=ends[0], high=ends[1])

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)


def z_of(level: float) -> float:
    """The normal quantile of a two-sided level, 1.96 for 95 %."""
    return float(scipy.stats.norm.ppf((1 + checked_level(level)) / 2))


def checked_level(level: float) -> float:
    """The level itself, or an error that says what it is."""
    if not 0 < level < 1:
        raise DataError(f"level is a confidence between 0 and 1 such as 0.95, got {level}")
    return float(level)
