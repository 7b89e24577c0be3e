"""One encoder per kind of column: what it learns from training rows, and what it gives."""

from __future__ import annotations

import zlib
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundstate.data.weighted import mean_and_scale, median, tally

Floats = NDArray[np.float64]


class Encoder(Protocol):
    """Turns one column into numbers (n, k) with the names of the k columns."""

    kind: ClassVar[str]

    def transform(self, values: pl.Series) -> Floats: ...

    def names(self, column: str) -> list[str]: ...

    def to_state(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Numeric:
    r"""Numbers: :math:`(v - \bar v) / s`, the median where missing, and where it was missing.

    Attributes
    ----------
    median, mean, scale
        Weighted statistics of the training rows, after imputation.
    indicator
        Whether missing values were seen in training; only then a column says where they are.
    """

    kind: ClassVar[str] = "numeric"
    median: float
    mean: float
    scale: float
    indicator: bool

    @classmethod
    def fit(cls, values: pl.Series, weights: Floats | None) -> Numeric:
        return cls.of(_floats(values), weights)

    @classmethod
    def of(cls, values: Floats, weights: Floats | None) -> Numeric:
        """Learn from plain numbers, NaN where missing."""
        distinct, totals = tally(values, weights)
        counts = np.ones(len(values)) if weights is None else weights
        gap = float(counts[np.isnan(values)].sum())
        if not len(distinct):
            return cls(0.0, 0.0, 1.0, False)
        middle = median(distinct, totals)
        if gap:
            distinct, totals = tally(np.append(distinct, middle), np.append(totals, gap))
        mean, scale = mean_and_scale(distinct, totals)
        return cls(middle, mean, scale, gap > 0)

    def transform(self, values: pl.Series) -> Floats:
        return self.apply(_floats(values))

    def apply(self, numbers: Floats) -> Floats:
        """Encode plain numbers (n,) as (n, 1) or, with the indicator, (n, 2)."""
        absent = np.isnan(numbers)
        filled = np.where(absent, self.median, numbers) if absent.any() else numbers
        # values far outside the training range may overflow a tiny scale: they stay finite
        with np.errstate(over="ignore"):
            scaled = np.clip((filled - self.mean) / self.scale, -1e150, 1e150)
        parts = [scaled, absent.astype(np.float64)] if self.indicator else [scaled]
        return np.stack(parts, axis=1)

    def names(self, column: str) -> list[str]:
        return [column, f"{column} missing"] if self.indicator else [column]

    def to_state(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Category:
    """Labels: one column per level seen in training; an unseen level is all zeros.

    With more than `max_categories` levels the heaviest are kept and one column stands for
    every other label, seen or not. A missing label has its own column if training had one.
    """

    kind: ClassVar[str] = "category"
    levels: tuple[str, ...]
    other: bool
    missing: bool

    @classmethod
    def fit(cls, values: pl.Series, weights: Floats | None, max_categories: int) -> Category:
        words = values.cast(pl.String)
        counts = np.ones(len(words)) if weights is None else weights
        absent = words.is_null().to_numpy()
        # ranks number the levels in alphabetical order, so equal totals rank by name
        codes = words.drop_nulls().rank("dense").to_numpy().astype(np.int64) - 1
        names = words.drop_nulls().unique().sort().to_list()
        totals = np.bincount(codes, weights=counts[~absent], minlength=len(names))
        ranked = [names[i] for i in np.argsort(-totals, kind="stable") if totals[i] > 0]
        missing = bool(counts[absent].sum() > 0)
        other = len(ranked) > max_categories
        return cls(tuple(sorted(ranked[: max_categories - other])), other, missing)

    def transform(self, values: pl.Series) -> Floats:
        k = len(self.levels)
        words = values.cast(pl.String)
        codes = {level: i for i, level in enumerate(self.levels)}
        found = words.replace_strict(codes, default=None, return_dtype=pl.Int64)
        column = found.fill_null(k).to_numpy()
        absent = words.is_null().to_numpy()
        out = np.zeros((len(words), k + 2))  # (n, levels, other, missing)
        out[np.arange(len(words)), column] = 1.0
        out[absent, k] = 0.0
        out[absent, k + 1] = 1.0
        return out[:, [*range(k), *([k] if self.other else []), *([k + 1] if self.missing else [])]]

    def names(self, column: str) -> list[str]:
        names = [f"{column}={level}" for level in self.levels]
        names += [f"{column} other"] if self.other else []
        return names + ([f"{column} missing"] if self.missing else [])

    def to_state(self) -> dict[str, Any]:
        return {**asdict(self), "levels": list(self.levels)}


_PARTS = ("elapsed", "year", "month", "weekday", "hour")


@dataclass(frozen=True)
class Date:
    """Dates: days elapsed, year, month, weekday and, where there is a time of day, the hour.

    Each part is standardised like a number; parts that do not vary in training are left out.
    """

    kind: ClassVar[str] = "date"
    parts: tuple[str, ...]
    numbers: tuple[Numeric, ...]

    @classmethod
    def fit(cls, values: pl.Series, weights: Floats | None) -> Date:
        table = _date_parts(values)
        learned = {part: Numeric.of(numbers, weights) for part, numbers in table.items()}
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


def _date_parts(values: pl.Series) -> dict[str, Floats]:
    stamps = values.cast(pl.Datetime("us"))
    parts = {
        "elapsed": stamps.to_physical().cast(pl.Float64) / 86_400e6,
        "year": stamps.dt.year(),
        "month": stamps.dt.month(),
        "weekday": stamps.dt.weekday(),
        "hour": stamps.dt.hour(),
    }
    return {part: _floats(numbers) for part, numbers in parts.items()}


@dataclass(frozen=True)
class Text:
    r"""Free text: :math:`\log(1 + \text{count})` of words hashed into `size` bins, unit length.

    The hash (CRC-32, its top bit as sign) needs no vocabulary, so unseen words are no trouble.
    """

    kind: ClassVar[str] = "text"
    size: int

    def transform(self, values: pl.Series) -> Floats:
        words = values.fill_null("").str.to_lowercase().str.extract_all(r"[\p{L}\p{N}]+")
        table = pl.DataFrame({"row": np.arange(len(values)), "word": words})
        counts = table.explode("word").drop_nulls().group_by(["row", "word"]).len()
        vocabulary = counts["word"].unique()
        hashes = np.array([zlib.crc32(w.encode()) for w in vocabulary.to_list()], dtype=np.int64)
        lookup = pl.DataFrame({"word": vocabulary, "hash": hashes})
        found = counts.join(lookup, on="word").sort(["row", "word"])
        code = found["hash"].to_numpy()
        tf = np.log1p(found["len"].to_numpy().astype(np.float64))
        out = np.zeros((len(values), self.size))
        sign = 1.0 - 2.0 * (code >> 31)
        np.add.at(out, (found["row"].to_numpy(), (code & 0x7FFFFFFF) % self.size), sign * tf)
        norm = np.sqrt((out**2).sum(axis=1, keepdims=True))
        return np.divide(out, norm, out=out, where=norm > 0)

    def names(self, column: str) -> list[str]:
        return [f"{column} word bin {i}" for i in range(self.size)]

    def to_state(self) -> dict[str, Any]:
        return asdict(self)


def encoder_from_state(state: dict[str, Any]) -> Encoder:
    """The encoder written by `to_state` together with its kind."""
    kind = state["kind"]
    values = {k: v for k, v in state.items() if k != "kind"}
    if kind == "numeric":
        return Numeric(**values)
    if kind == "category":
        return Category(tuple(values["levels"]), values["other"], values["missing"])
    if kind == "date":
        return Date(tuple(values["parts"]), tuple(Numeric(**n) for n in values["numbers"]))
    return Text(int(values["size"]))


def _floats(values: pl.Series) -> Floats:
    return np.asarray(values.cast(pl.Float64).fill_null(float("nan")).to_numpy(), dtype=np.float64)
