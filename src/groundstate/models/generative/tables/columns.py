r"""Columns of a table as what a generator learns best: normal scores and levels, and back.

A number becomes the normal score of its rank, :math:`z = \Phi^{-1}(F(x))`, with F the distribution of the
training rows, linear between quantiles: whatever the column's form, :math:`z \sim N(0, 1)`. A value that
many rows share is a jump of F and is spread over it. Few distinct values are levels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

F64 = NDArray[np.float64]
KNOTS = 400  # quantiles at most that stand for a distribution
JUMP = 0.01  # share of the rows from which a value is a jump
SEEN = 6  # rows that have to have it: fewer repeat a rounded number by chance
FEW = 20  # distinct numbers that are levels
LEVELS = 40  # levels of a category; the rest shares one
TINY = 1e-12  # slope of a distribution between two knots
OTHER = "(other)"
DIGITS = 6  # decimals at most that a column is written with
DAY = 86_400_000_000  # µs
UNITS = (DAY, 3_600_000_000, 60_000_000, 1_000_000, 1_000, 1)  # µs of a day, an hour, a minute, ...


@dataclass(frozen=True, eq=False)
class NumberColumn:
    """A column of numbers or dates as normal scores.

    Attributes
    ----------
    name : of the column
    x, p : (k,) arrays, increasing; p is F(x), with two entries for a jump
    integer : whether values are whole
    date : whether values are microseconds since 1970
    missing : whether some were missing, which is a column of its own
    decimals : with how many all training values are written; None where it takes more than a few
    unit : the largest of ``UNITS`` of which all training dates are multiples
    """

    name: str
    x: F64
    p: F64
    integer: bool = False
    date: bool = False
    missing: bool = False
    decimals: int | None = None
    unit: int = 1

    @classmethod
    def learned(
        cls, name: str, values: F64, weight: F64, *, integer: bool, date: bool
    ) -> NumberColumn:
        """From the values of training rows, NaN where one is missing."""
        there = ~np.isnan(values) & (weight > 0)
        x, at = np.unique(values[there], return_inverse=True)
        share = np.bincount(at, weight[there]) / weight[there].sum()
        upper = np.cumsum(share)
        lower = upper - share
        rows = max(float(weight[there].sum()), 1.0)
        jump = share > max(JUMP, SEEN / rows)
        keep = jump | _spaced(upper, int(2 * np.sqrt(rows)))
        xs: list[float] = []
        ps: list[float] = []
        for v, lo, hi, own in zip(x[keep], lower[keep], upper[keep], jump[keep], strict=True):
            xs += [v, v] if own else [v]
            ps += [lo, hi] if own else [(lo + hi) / 2]
        edge = 0.5 / rows
        if len(xs) > 1 and xs[-1] > xs[0]:  # a row's share for what lies between the values seen
            even = (np.array(xs) - xs[0]) / (xs[-1] - xs[0])
            ps = ((rows * np.array(ps) + even) / (rows + 1)).tolist()
        p = np.clip(ps, edge, 1 - edge)
        decimals = 0 if integer else None if date else decimals_of(x)
        unit = next(u for u in UNITS if not np.any(x % u)) if date else 1
        return cls(name, np.array(xs), p, integer, date, bool((~there).any()), decimals, unit)

    def scores(self, values: F64, u: F64 | float = 0.5) -> F64:
        """Normal scores; u in (0, 1) says where in its jump a value lies, NaN stays NaN."""
        low, high = self._ends(values)
        return np.asarray(norm.ppf(low + (high - low) * u))

    def _ends(self, values: F64) -> tuple[F64, F64]:
        """The probabilities below and up to each value, which differ for a jump."""
        first = np.searchsorted(self.x, values, "left")
        last = np.searchsorted(self.x, values, "right") - 1
        inside = np.interp(values, self.x, self.p)
        hit = last > first
        return (
            np.where(hit, self.p[np.minimum(first, len(self.p) - 1)], inside),
            np.where(hit, self.p[np.maximum(last, 0)], inside),
        )

    def log_slope(self, values: F64, u: F64 | float = 0.5) -> F64:
        """log dz/dx between knots; for a jump what makes a density of z its probability."""
        low, high = self._ends(values)
        at = np.clip(np.searchsorted(self.x, values, "right"), 1, max(len(self.x) - 1, 1))
        dx, dp = (np.diff(v)[at - 1] if len(v) > 1 else np.ones(len(at)) for v in (self.x, self.p))
        steep = np.where(dx > 0, dp / np.where(dx > 0, dx, 1.0), 1.0)
        slope = np.where(high > low, high - low, np.maximum(steep, TINY))
        return np.asarray(np.log(slope) - norm.logpdf(self.scores(values, u)))

    def values(self, scores: F64) -> F64:
        """Values of scores, within those of the training rows and with as many decimals."""
        x = np.interp(norm.cdf(scores), self.p, self.x)
        if self.date:
            return np.asarray(np.round(x / self.unit) * self.unit)
        decimals = 0 if self.integer else self.decimals
        return np.asarray(x if decimals is None else np.round(x, decimals))


def decimals_of(values: F64) -> int | None:
    """With how many decimals all values are written, where that is at most ``DIGITS``."""
    for k in range(DIGITS + 1):
        if np.array_equal(np.round(values, k), values):
            return k
    return None


def _spaced(upper: F64, n: int) -> NDArray[np.bool_]:
    """The first and last value, and some between them at equal distances in probability."""
    keep = np.zeros(len(upper), bool)
    at = np.searchsorted(upper, np.linspace(0, upper[-1], min(max(n, 8), KNOTS, len(upper))))
    keep[np.minimum(at, len(upper) - 1)] = True
    keep[[0, -1]] = True
    return keep


@dataclass(frozen=True, eq=False)
class LevelColumn:
    """A column of few values.

    Attributes
    ----------
    name : of the column
    levels : values, the most frequent first; None stands for missing
    rest, shares : rare values and their probabilities, which share the level ``OTHER``
    number : whether the values are numbers
    """

    name: str
    levels: list[Any]
    rest: list[Any]
    shares: F64
    number: bool = False
    integer: bool = False

    @classmethod
    def learned(
        cls, name: str, values: list[Any], weight: F64, *, number: bool, integer: bool
    ) -> LevelColumn:
        """From the values of training rows, None where one is missing."""
        total: dict[Any, float] = {}
        for v, w in zip(values, weight.tolist(), strict=True):
            total[v] = total.get(v, 0.0) + w
        order = sorted(total, key=lambda v: (-total[v], str(v)))
        kept, rest = order[:LEVELS], order[LEVELS:]
        shares = np.array([total[v] for v in rest])
        return cls(name, kept, rest, shares / shares.sum() if rest else shares, number, integer)

    @property
    def usual(self) -> str:
        """The word of the most frequent level."""
        return "L0"

    def words(self, values: list[Any]) -> list[str | None]:
        """Words of the levels; of a value that was not seen, None."""
        place = {v: f"L{i}" for i, v in enumerate(self.levels)}
        place |= dict.fromkeys(self.rest, OTHER)
        return [place.get(v) for v in values]

    def values(self, words: list[str], rng: Any) -> list[Any]:
        """Values of words."""
        found: list[Any] = []
        for word in words:
            if word == OTHER:
                found.append(self.rest[int(rng.choice(len(self.rest), p=self.shares))])
            else:
                found.append(self.levels[int(word[1:])])
        return found


Coded = NumberColumn | LevelColumn


def fixed_columns(kinds: Mapping[str, str]) -> tuple[list[str], list[str], list[str]]:
    """Names of columns that are counted anew (ids), kept as they are (constants), and left out (texts)."""
    return (
        [name for name, kind in kinds.items() if kind == "id"],
        [name for name, kind in kinds.items() if kind == "constant"],
        [name for name, kind in kinds.items() if kind == "text"],
    )
