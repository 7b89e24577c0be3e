r"""Columns that are computed from others: :math:`x_c = x_a\,x_b,\ x_a + x_b,\ x_a - x_b,\ x_a / x_b` or
:math:`\alpha x_a + \beta` in every training row, as they are rounded.

An amount is a price times a number of months. A generator that learned all three would break the tie in nearly
every row; it learns two of them, and the third is computed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundstate.models.generative.tables.cells import numbers_of, series_of
from groundstate.models.generative.tables.columns import (
    Coded,
    LevelColumn,
    NumberColumn,
    decimals_of,
)

F64 = NDArray[np.float64]
ROWS = 30  # with all values, from which no exception is no accident
OFTEN = 0.1  # how often columns without a tie would agree
MOST = 60  # columns whose pairs are looked at
LOOK = 12  # rows by which most candidates are ruled out
EXACT = 1e-9  # relative error of a number that is not rounded
SIGNS = {"product": "×", "sum": "+", "difference": "-", "quotient": "/"}


@dataclass(frozen=True, eq=False)
class FormulaColumn:
    """A column of numbers that one or two others decide.

    Attributes
    ----------
    column : what it was learned as
    kind : "line", "product", "sum", "difference" or "quotient"
    sources : names of the columns that decide
    decimals : with how many it is written; None where it is not rounded
    slope, shift : of a line
    """

    column: Coded
    kind: str
    sources: list[str]
    decimals: int | None
    slope: float = 1.0
    shift: float = 0.0

    @property
    def name(self) -> str:
        return self.column.name

    @property
    def text(self) -> str:
        """The formula in words."""
        if self.kind != "line":
            return f" {SIGNS[self.kind]} ".join(self.sources)
        factor = "" if self.slope == 1 else "-" if self.slope == -1 else f"{self.slope:.6g} × "
        rest = f" {'+' if self.shift > 0 else '-'} {abs(self.shift):.6g}" if self.shift else ""
        return f"{factor}{self.sources[0]}{rest}"

    def of(self, given: Sequence[F64]) -> F64:
        """Values for those of the sources, NaN where there is none."""
        found = _value(self.kind, given, self.slope, self.shift)
        return found if self.decimals is None else np.round(found, self.decimals) + 0.0

    def agrees(self, given: Sequence[F64], own: F64) -> NDArray[np.bool_]:
        """Where the values are those that the sources decide, ``(n,)``."""
        return _agree(_value(self.kind, given, self.slope, self.shift), own, self.decimals)

    def solved(self, own: F64, given: Sequence[F64], place: int) -> F64:
        """Values of the source at ``place`` that give these, for those of the other."""
        other = given[1 - place] if len(given) > 1 else own
        with np.errstate(all="ignore"):
            if self.kind == "line":
                found = (own - self.shift) / self.slope
            elif self.kind == "product":
                found = own / other
            elif self.kind == "sum":
                found = own - other
            elif self.kind == "difference":
                found = own + other if place == 0 else other - own
            else:
                found = own * other if place == 0 else other / own
        return np.where(np.isfinite(found), found, np.nan)


def _value(kind: str, given: Sequence[F64], slope: float = 1.0, shift: float = 0.0) -> F64:
    a, b = given[0], given[-1]
    with np.errstate(all="ignore"):
        if kind == "line":
            found = slope * a + shift
        elif kind == "product":
            found = a * b
        elif kind == "sum":
            found = a + b
        elif kind == "difference":
            found = a - b
        else:
            found = a / b
    return np.where(np.isfinite(found), found, np.nan)


def _slack(value: F64, decimals: int | None) -> F64:
    """How far a number may be from the one it was rounded from."""
    exact = EXACT * np.abs(value)
    return exact if decimals is None else exact + 0.5 * 10.0**-decimals * (1 + 1e-6)


def _agree(value: F64, own: F64, decimals: int | None) -> NDArray[np.bool_]:
    near = np.abs(value - own) <= _slack(value, decimals)
    return np.asarray(near | (np.isnan(value) & np.isnan(own)))


def learned_formulas(
    columns: Sequence[Coded], values: Mapping[str, F64], weight: F64, kept: Collection[str] = ()
) -> dict[str, FormulaColumn]:
    """Columns that others decide, by name, each after those it is computed from.

    Parameters
    ----------
    columns : as they were learned
    values : of the columns of numbers, NaN where one is missing
    weight : of the rows
    kept : names of columns that others follow from already
    """
    numbers = [c for c in columns if is_number(c)][:MOST]
    there = weight > 0
    if len(numbers) < 2 or weight.sum() < ROWS:
        return {}
    table = np.stack([values[c.name][there] for c in numbers])  # (d, n)
    w = weight[there]
    digits = [decimals_of(row[~np.isnan(row)]) for row in table]
    few = np.unique(np.linspace(0, table.shape[1] - 1, LOOK).astype(int))
    found: dict[str, FormulaColumn] = {}
    pairs = _pairs(len(numbers))
    # first what is exact before it is rounded: an amount from a price, not the price from it
    for kind, at, slope, shift in (
        *pairs["product"], *pairs["sum"], *_lines(table, w, digits),
        *pairs["difference"], *pairs["quotient"],
    ):  # fmt: skip
        guess = _value(kind, [table[i][few] for i in at], slope, shift)
        if np.isnan(guess).all():
            continue
        for c, column in enumerate(numbers):
            names = [numbers[i].name for i in at]
            used = column.name in found or column.name in kept
            if c in at or used or _depends(names, column.name, found):
                continue
            if not _agree(guess, table[c, few], digits[c]).all():
                continue
            whole = _value(kind, [table[i] for i in at], slope, shift)
            if _agree(whole, table[c], digits[c]).all() and _tied(whole, table[c], digits[c], w):
                found[column.name] = FormulaColumn(column, kind, names, digits[c], slope, shift)
    return _in_order(found)


def is_number(column: Coded) -> bool:
    """Whether values are plain numbers."""
    return column.number if isinstance(column, LevelColumn) else not column.date


Candidate = tuple[str, list[int], float, float]


def _lines(table: F64, w: F64, digits: Sequence[int | None]) -> list[Candidate]:
    """Straight lines between columns, with short numbers before long ones."""
    found: list[tuple[int, Candidate]] = []
    step = max(1, table.shape[1] // 100)
    for a, x in enumerate(table):
        for c, y in enumerate(table):
            both = ~np.isnan(x) & ~np.isnan(y)
            if c == a or w[both].sum() < ROWS or len(np.unique(x[both][:1000])) < 3:
                continue
            u, v, mass = x[both], y[both], w[both]
            if not _straight(u[::step], v[::step], digits[c]) or not _straight(u, v, digits[c]):
                continue
            slope = np.polyfit(u, v, 1, w=np.sqrt(mass))[0]
            for places in (2, 3, 4, 6, 9):
                short = float(f"{slope:.{places}g}")
                rest = float(np.average(v - short * u, weights=mass))
                for lift in dict.fromkeys((0.0, float(f"{rest:.{places}g}"))):
                    found.append((places, ("line", [a], short, lift)))
    return [line for _, line in sorted(found, key=lambda f: f[0])]


def _straight(u: F64, v: F64, digits: int | None) -> bool:
    """Whether all lie on the line through the ends, up to three roundings."""
    lo, hi = int(u.argmin()), int(u.argmax())
    if u[hi] == u[lo] or v[hi] == v[lo]:
        return False
    off = v[lo] + (v[hi] - v[lo]) / (u[hi] - u[lo]) * (u - u[lo]) - v
    return bool((np.abs(off) <= 3 * _slack(np.abs(v) + 1, digits)).all())


def _pairs(d: int) -> dict[str, list[Candidate]]:
    every = [[a, b] for a in range(d) for b in range(d) if a != b]
    ends = {"product": True, "sum": True, "difference": False, "quotient": False}
    return {
        kind: [(kind, at, 1.0, 0.0) for at in every if at[0] < at[1] or not either]
        for kind, either in ends.items()
    }


def _depends(names: Sequence[str], on: str, found: Mapping[str, FormulaColumn]) -> bool:
    """Whether one of these is computed from a column, directly or not."""
    return any(
        name == on or (name in found and _depends(found[name].sources, on, found)) for name in names
    )


def _tied(value: F64, own: F64, decimals: int | None, w: F64) -> bool:
    """Whether rows agree that would rarely do so by accident."""
    there = ~np.isnan(value) & ~np.isnan(own)
    if w[there].sum() < ROWS:
        return False
    x, y, w = value[there], own[there], w[there]
    order = np.argsort(y)
    ends = np.concatenate([[0.0], np.cumsum(w[order])])
    y, slack = y[order], _slack(x, decimals)
    high = ends[np.searchsorted(y, x + slack, "right")]
    low = ends[np.searchsorted(y, x - slack, "left")]
    return float(w @ (high - low) / w.sum() ** 2) < OFTEN


def _in_order(found: dict[str, FormulaColumn]) -> dict[str, FormulaColumn]:
    """Each after those it is computed from."""
    out: dict[str, FormulaColumn] = {}

    def add(name: str) -> None:
        for source in found[name].sources:
            if source in found and source not in out:
                add(source)
        out[name] = found[name]

    for name in found:
        add(name)
    return out


def given_to(formula: FormulaColumn, frame: pl.DataFrame) -> list[F64]:
    """Values of the sources."""
    return [numbers_of(frame[name]) for name in formula.sources]


def computed(
    frame: pl.DataFrame,
    formulas: Mapping[str, FormulaColumn],
    where: Mapping[str, pl.Series] | None = None,
) -> pl.DataFrame:
    """A table with its columns that follow from others, in all rows or some of each column."""
    for name, formula in formulas.items():
        values = formula.of(given_to(formula, frame))
        plain = [None if np.isnan(v) else float(v) for v in values]
        made = series_of(formula.column, plain)
        if where is not None and name in frame.columns:
            kept = pl.when(where[name]).then(made.cast(frame[name].dtype)).otherwise(pl.col(name))
            frame = frame.with_columns(kept.alias(name))
        else:
            frame = frame.with_columns(made.alias(name))
    return frame


def solved(
    frame: pl.DataFrame, formulas: Mapping[str, FormulaColumn], columns: Mapping[str, Coded]
) -> pl.DataFrame:
    """A table with the sources that follow from a column and the other source, where just one is a gap."""
    for name, formula in reversed(list(formulas.items())):
        own = numbers_of(frame[name])
        given = given_to(formula, frame)
        gaps = np.stack([np.isnan(v) for v in given])
        for place, source in enumerate(formula.sources):
            open_ = gaps[place] & (gaps.sum(0) == 1) & ~np.isnan(own)
            if not open_.any():
                continue
            values = formula.solved(own, given, place)
            column = columns[source]
            known = [
                None if not o or np.isnan(v) else v
                for o, v in zip(open_, _written(column, values), strict=True)
            ]
            made = series_of(column, known).cast(frame[source].dtype)
            frame = frame.with_columns(frame[source].fill_null(made).alias(source))
    return frame


def _written(column: Coded, values: F64) -> F64:
    """Values as a column writes them; NaN where it has no such level."""
    if isinstance(column, NumberColumn):
        digits = 0 if column.integer else column.decimals
        return values if digits is None else np.round(values, digits) + 0.0
    levels = np.array([v for v in column.levels + column.rest if v is not None], np.float64)
    near = levels[np.abs(values[:, None] - levels).argmin(1)]
    fits = np.abs(near - values) <= EXACT * np.abs(near)
    return np.where(fits, near, np.nan)
