r"""What several looks at the same test rows do to a score."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from groundstate.compute.display import Displayed
from groundstate.errors import DataError
from groundstate.evaluate.theory.selection_optimism import expected_maximum, expected_winner
from groundstate.math.stats.interval import Interval, checked_level, z_of
from groundstate.math.stats.proportions import proportion_interval

BLIND = "Looks made elsewhere, without this file, are not counted."


@dataclass(frozen=True)
class Adjusted(Displayed):
    """A score after M looks at the same test rows.

    Attributes
    ----------
    plain, simultaneous : Interval
        At level 1 - δ, and at level 1 - δ/M.
    looks : int
    optimism : float
        How much the best of M equally good models would be expected to gain by luck.
    clean : bool
        This was the first look.
    """

    plain: Interval
    simultaneous: Interval
    looks: int
    optimism: float
    clean: bool

    def __str__(self) -> str:
        if self.clean:
            return f"{self.plain}, clean: the first look at these test rows. {BLIND}"
        low, high = self.simultaneous
        return (
            f"{self.plain}, after {self.looks} looks {low:.4g} to {high:.4g} at once; the best of "
            f"{self.looks} equal models gains {self.optimism:.2g} by luck. {BLIND}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "plain": self.plain.to_dict(),
            "simultaneous": self.simultaneous.to_dict(),
            "looks": self.looks,
            "optimism": self.optimism,
            "clean": self.clean,
            "note": BLIND,
        }


def adjust_share(k: float, n: float, looks: int, level: float = 0.95) -> Adjusted:
    r"""Wilson's interval of k hits in n rows, at level 1 - δ and, for M looks, at 1 - δ/M.

    >>> found = adjust_share(900, 1000, looks=10)
    >>> print(found.simultaneous)
    0.9 (0.8702 to 0.9236)
    """
    _checked(looks)
    plain = proportion_interval(k, n, level)
    wide = proportion_interval(k, n, 1 - (1 - level) / looks)
    p = 1 - k / n
    return Adjusted(plain, wide, looks, p - expected_winner(p, round(n), looks), looks == 1)


def adjust(
    interval: Interval,
    looks: int,
    level: float = 0.95,
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> Adjusted:
    r"""An interval widened for M looks, each side by :math:`z_{1-\delta/2M}/z_{1-\delta/2}`.

    ``bounds`` are the least and the largest value of the score.
    """
    _checked(looks)
    given = z_of(interval.level)

    def scaled(level: float) -> Interval:
        ratio, mid = z_of(level) / given, interval.estimate
        low, high = mid - (mid - interval.low) * ratio, mid + (interval.high - mid) * ratio
        return Interval(mid, low, high, level, interval.method).within(bounds)

    error = (interval.high - interval.low) / (2 * given)
    wide = scaled(1 - (1 - checked_level(level)) / looks)
    return Adjusted(scaled(level), wide, looks, error * expected_maximum(looks), looks == 1)


def _checked(looks: int) -> None:
    if looks < 1:
        raise DataError(f"looks counts the looks at the test rows, this one included, got {looks}")
