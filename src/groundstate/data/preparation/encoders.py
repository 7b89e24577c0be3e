"""Numbers and dates as numbers: what an encoder learns from training rows, and what it gives."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundstate.data.preparation.weighted import mean_and_scale, median, tally

Floats = NDArray[np.float64]
_LARGEST = 1e38  # what is larger is no number in float32


class Encoder(Protocol):
    """Turns one column into numbers (n, k) with the names of the k columns."""

    kind: ClassVar[str]

    def transform(self, values: pl.Series) -> Floats: ...

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
        numbers as they are.
    indicator
        Whether missing values were seen in training; only then a column says where they are.
    """

    kind: ClassVar[str] = "numeric"
    median: float
    mean: float
    scale: float
    indicator: bool

    @classmethod
    def fit(cls, values: pl.Series, weights: Floats | None, scaled: bool = True) -> Numeric:
        return cls.of(as_floats(values), weights, scaled)

    @classmethod
    def of(cls, values: Floats, weights: Floats | None, scaled: bool = True) -> Numeric:
        """Learn from plain numbers, NaN where missing."""
        distinct, totals = tally(values, weights)
        counts = np.ones(len(values)) if weights is None else weights
        gap = float(counts[np.isnan(values)].sum())
        if not len(distinct):
            return cls(0.0, 0.0, 1.0, False)
        middle = median(distinct, totals)
        if not scaled:
            return cls(middle, 0.0, 1.0, gap > 0)
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
            scaled = np.clip((filled - self.mean) / self.scale, -_LARGEST, _LARGEST)
        parts = [scaled, absent.astype(np.float64)] if self.indicator else [scaled]
        return np.stack(parts, axis=1)

    def names(self, column: str) -> list[str]:
        return [column, f"{column} missing"] if self.indicator else [column]

    def to_state(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Numeric:
        return cls(**state)


_PARTS = ("elapsed", "year", "month", "weekday", "hour")


@dataclass(frozen=True)
class Date:
    """Dates: days elapsed, year, month, weekday and, where there is a time of day, the hour.

    Each part is prepared like a number; parts that do not vary in training are left out.
    """

    kind: ClassVar[str] = "date"
    parts: tuple[str, ...]
    numbers: tuple[Numeric, ...]

    @classmethod
    def fit(cls, values: pl.Series, weights: Floats | None, scaled: bool = True) -> Date:
        table = _date_parts(values)
        learned = {part: Numeric.of(numbers, weights, scaled) for part, numbers in table.items()}
        kept = []
        for part in _PARTS:
            distinct, _ = tally(table[part], weights)
            if len(distinct) > 1 or part == "elapsed":
                kept.append(part)
        # one indicator is enough: the parts are missing together
        numbers = []
        for part in kept:
            n = learned[part]
            flag = n.indicator and part == "elapsed"
            numbers.append(Numeric(n.median, n.mean, n.scale, flag))
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
        "weekday": stamps.dt.weekday(),
        "hour": stamps.dt.hour(),
    }
    return {part: as_floats(numbers) for part, numbers in parts.items()}


def as_floats(values: pl.Series) -> Floats:
    """Numbers as float64, NaN where missing.  # (n,)"""
    if values.dtype.is_numeric() and not values.null_count():  # most columns: no copy of a copy
        return np.asarray(values.to_numpy(), dtype=np.float64)
    return np.asarray(values.cast(pl.Float64).fill_null(float("nan")).to_numpy(), dtype=np.float64)
