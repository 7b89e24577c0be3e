"""Numbers and dates as numbers: what an encoder learns from training rows, and what it gives."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Literal, Protocol, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundstate.data.preparation.weighted import mean_and_scale, median, tally

Floats = NDArray[np.float64]
Scaling = Literal["standard", "none", "positive"]
_LARGEST = 1e38  # what is larger is no number in float32


class Encoder(Protocol):
    """Turns one column into numbers (n, k), dense or sparse, with the names of the k columns."""

    kind: ClassVar[str]

    def transform(self, values: pl.Series) -> Any: ...

    def names(self, column: str) -> list[str]: ...

    def to_state(self) -> dict[str, Any]: ...

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self: ...


@dataclass(frozen=True)
class Numeric:
    r"""Numbers: :math:`(v - \bar v) / s`, the median where missing, and where it was missing.

    Attributes
    ----------
    median, mean, scale
        Weighted statistics of the training rows, after imputation; mean 0 and scale 1 leave
        numbers as they are. For models of positive numbers smallest value and range, so that
        training rows lie between 0 and 1.
    indicator
        Whether missing values were seen in training; only then a column says where they are.
    positive
        Whether what is below the smallest value of the training rows is that value.
    """

    kind: ClassVar[str] = "numeric"
    median: float
    mean: float
    scale: float
    indicator: bool
    positive: bool = False

    @classmethod
    def fit(
        cls, values: pl.Series, weights: Floats | None, scaling: Scaling = "standard"
    ) -> Numeric:
        return cls.of(as_floats(values), weights, scaling)

    @classmethod
    def of(cls, values: Floats, weights: Floats | None, scaling: Scaling = "standard") -> Numeric:
        """Learn from plain numbers, NaN where missing."""
        distinct, totals = tally(values, weights)
        counts = np.ones(len(values)) if weights is None else weights
        gap = float(counts[np.isnan(values)].sum())
        if not len(distinct):
            return cls(0.0, 0.0, 1.0, False)
        middle = median(distinct, totals)
        if scaling == "none":
            return cls(middle, 0.0, 1.0, gap > 0)
        if scaling == "positive":
            low, high = float(distinct[0]), float(distinct[-1])
            width = high - low if 0 < high - low < _LARGEST else 1.0
            return cls(middle, low, width, gap > 0, True)
        if gap:
            distinct, totals = tally(np.append(distinct, middle), np.append(totals, gap))
        mean, scale = mean_and_scale(distinct, totals)
        return cls(middle, mean, scale, gap > 0)

    def transform(self, values: pl.Series) -> Floats:
        return self.apply(as_floats(values))

    def apply(self, numbers: Floats) -> Floats:
        """Encode plain numbers (n,) as (n, 1) or, with the indicator, (n, 2)."""
        absent = np.isnan(numbers)
        filled = np.where(absent, self.median, numbers) if absent.any() else numbers
        # values far outside the training range may overflow a tiny scale: they stay finite
        with np.errstate(over="ignore"):
            low = 0.0 if self.positive else -_LARGEST
            scaled = np.clip((filled - self.mean) / self.scale, low, _LARGEST)
        parts = [scaled, absent.astype(np.float64)] if self.indicator else [scaled]
        return np.stack(parts, axis=1)

    def names(self, column: str) -> list[str]:
        return [column, f"{column} missing"] if self.indicator else [column]

    def to_state(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Numeric:
        return cls(**state)


@dataclass(frozen=True)
class Clock:
    r"""Hours of the day: :math:`(v - \bar v)/s`, and :math:`\sin 2\pi v/24` and :math:`\cos 2\pi v/24`.

    By the two the last minute is next to the first. Each is prepared like a number.
    """

    kind: ClassVar[str] = "clock"
    hours: Numeric
    waves: tuple[Numeric, Numeric]

    @classmethod
    def fit(cls, values: pl.Series, weights: Floats | None) -> Clock:
        hours = as_floats(values)
        sine, cosine = (replace(Numeric.of(w, weights), indicator=False) for w in _waves(hours))
        return cls(Numeric.of(hours, weights), (sine, cosine))

    def transform(self, values: pl.Series) -> Floats:
        hours = as_floats(values)
        turns = [n.apply(wave) for n, wave in zip(self.waves, _waves(hours), strict=True)]
        return np.concatenate([self.hours.apply(hours), *turns], axis=1)

    def names(self, column: str) -> list[str]:
        return [*self.hours.names(column), f"{column} sin", f"{column} cos"]

    def to_state(self) -> dict[str, Any]:
        return {"hours": self.hours.to_state(), "waves": [n.to_state() for n in self.waves]}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Clock:
        sine, cosine = (Numeric(**n) for n in state["waves"])
        return cls(Numeric(**state["hours"]), (sine, cosine))


def _waves(hours: Floats) -> tuple[Floats, Floats]:
    return np.sin(2 * np.pi * hours / 24), np.cos(2 * np.pi * hours / 24)


_PLAIN = ("elapsed", "year", "month", "day", "weekday", "hour")
_CYCLES = {"month": "season", "weekday": "weekday", "hour": "hour"}  # what turns with which part


@dataclass(frozen=True)
class Date:
    r"""Dates: days elapsed, year, month, day, weekday and, where there is a time of day, the hour.

    For models that ask for sums of columns also :math:`\sin 2\pi t` and :math:`\cos 2\pi t` of the
    time t of the year, week and day, of which the last moment is next to the first. Each part is
    prepared like a number; parts that do not vary in training are left out.
    """

    kind: ClassVar[str] = "date"
    parts: tuple[str, ...]
    numbers: tuple[Numeric, ...]

    @classmethod
    def fit(cls, values: pl.Series, weights: Floats | None, scaling: Scaling = "standard") -> Date:
        table = _date_parts(values)
        kept = []
        for part in _PLAIN:
            distinct, _ = tally(table[part], weights)
            if len(distinct) > 1 or part == "elapsed":
                kept.append(part)
        if scaling == "standard":
            turning = [_CYCLES[part] for part in kept if part in _CYCLES]
            kept += [f"{name} {wave}" for name in turning for wave in ("sin", "cos")]
        # one indicator is enough: the parts are missing together
        numbers = []
        for part in kept:
            n = Numeric.of(table[part], weights, scaling)
            numbers.append(replace(n, indicator=n.indicator and part == "elapsed"))
        return cls(tuple(kept), tuple(numbers))

    def transform(self, values: pl.Series) -> Floats:
        table = _date_parts(values)
        pairs = zip(self.parts, self.numbers, strict=True)
        return np.concatenate([number.apply(table[part]) for part, number in pairs], axis=1)

    def names(self, column: str) -> list[str]:
        pairs = zip(self.parts, self.numbers, strict=True)
        flat = [number.names(f"{column} {part}") for part, number in pairs]
        return [name for names in flat for name in names]

    def to_state(self) -> dict[str, Any]:
        return {"parts": list(self.parts), "numbers": [n.to_state() for n in self.numbers]}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Date:
        return cls(tuple(state["parts"]), tuple(Numeric(**n) for n in state["numbers"]))


def _date_parts(values: pl.Series) -> dict[str, Floats]:
    stamps = values.cast(pl.Datetime("us"))
    parts = {
        "elapsed": stamps.to_physical().cast(pl.Float64) / 86_400e6,
        "year": stamps.dt.year(),
        "month": stamps.dt.month(),
        "day": stamps.dt.day(),
        "weekday": stamps.dt.weekday(),
        "hour": stamps.dt.hour(),
    }
    table = {part: as_floats(numbers) for part, numbers in parts.items()}
    clock = np.mod(table["elapsed"], 1.0)
    turns = {
        "season": (as_floats(stamps.dt.ordinal_day()) - 1 + clock) / 365.25,
        "weekday": (table["weekday"] - 1 + clock) / 7,
        "hour": clock,
    }
    for name, share in turns.items():
        table[f"{name} sin"] = np.sin(2 * np.pi * share)
        table[f"{name} cos"] = np.cos(2 * np.pi * share)
    return table


def days_between(later: pl.Series, earlier: pl.Series) -> Floats:
    """Days from one date to the other, NaN where either is missing.  # (n,)"""
    micros = later.cast(pl.Datetime("us")).to_physical().cast(pl.Float64) - earlier.cast(
        pl.Datetime("us")
    ).to_physical().cast(pl.Float64)
    return as_floats(micros / 86_400e6)


def as_floats(values: pl.Series) -> Floats:
    """Numbers as float64, NaN where missing.  # (n,)"""
    if values.dtype.is_numeric() and not values.null_count():  # most columns: no copy of a copy
        return np.asarray(values.to_numpy(), dtype=np.float64)
    return np.asarray(values.cast(pl.Float64).fill_null(float("nan")).to_numpy(), dtype=np.float64)
