"""Dates as people write them, found by trying a short list of forms."""

from __future__ import annotations

from datetime import date

import polars as pl

from groundstate.data.tables.numbers import offenders

FORMS: tuple[str, ...] = (
    "%Y-%m-%d",
    "%Y/%m/%d",
    "%Y.%m.%d",
    "%d.%m.%Y",
    "%d.%m.%y",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d-%m-%Y",
    "%m-%d-%Y",
    "%d/%m/%y",
    "%m/%d/%y",
    "%d %b %Y",
    "%d-%b-%Y",
    "%d-%b-%y",
    "%d %B %Y",
    "%b %d, %Y",
    "%B %d, %Y",
    "%b %d %Y",
    "%B %d %Y",
)
SWAPPED = {
    "%d/%m/%Y": "%m/%d/%Y",
    "%d-%m-%Y": "%m-%d-%Y",
    "%d/%m/%y": "%m/%d/%y",
}
"""Day-first forms and the month-first form they may be confused with."""

_DATE_LIKE = (
    r"^(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2})"
    r"|\d{1,2}[- ]\p{L}{3,9}[- ]\d{2,4}"
    r"|\p{L}{3,9} \d{1,2},? \d{4})([T ,]|$)"
)
_TIME = (
    r"^(?P<day>.*?\d)(?:[T ]|, )\s*(?P<h>\d{1,2}):(?P<m>\d{2})(?::(?P<s>\d{2}(?:[.,]\d+)?))?"
    r"\s?(?P<half>[AaPp][Mm])?\s?(?P<zone>Z|UTC|[+-]\d{2}:?\d{2})?$"
)
_FIRST = date(1000, 1, 1)
_MICROS = 1_000_000
COMPACT = "%Y%m%d"
BETWEEN = "|"  # of forms that one column mixes
EPOCHS = {"epoch": _MICROS, "epoch:ms": 1_000, "epoch:us": 1}  # counted from 1970; by declaration
_MOST_FORMS, _RAREST = 4, 0.02  # forms of one column, and the share of rows each is used in
_FEWEST = 20  # different whole numbers that are all dates are no accident


def date_form(text: pl.Series) -> tuple[str, pl.Series, bool] | None:
    """The form in which (nearly) all values are dates, the dates, and whether it is ambiguous.

    Day first is preferred where both orders fit; the caller reports the ambiguity.

    >>> form, days, ambiguous = date_form(pl.Series(["03/04/2021", "25/12/2021"]))
    >>> form, str(days[0]), ambiguous
    ('%d/%m/%Y', '2021-04-03 00:00:00', False)
    """
    sample = text.drop_nulls().head(50)
    if not len(sample) or sample.str.contains(_DATE_LIKE).mean() < 0.9:  # type: ignore[operator]
        return None
    day, clock = _split_clock(text)
    head = day.drop_nulls().head(50)
    for form in FORMS:
        if _parse_day(head, form).null_count() > 0.1 * len(head):
            continue
        days = _parse_day(day, form)
        if offenders(text, days) is None:
            continue
        ambiguous = False
        if form in SWAPPED:
            other = _parse_day(day, SWAPPED[form])
            if other.null_count() < days.null_count():
                form, days = SWAPPED[form], other
            else:
                ambiguous = other.null_count() == days.null_count()
        return form, _join(days, clock), ambiguous
    mixed = _mixed_form(text, day)
    if mixed is None:
        return None
    days = _parse_day(day, mixed)
    turned = month_first(mixed)
    ambiguous = turned != mixed and _parse_day(day, turned).null_count() == days.null_count()
    return mixed, _join(days, clock), ambiguous


def month_first(form: str) -> str:
    """A form, or several, with the month before the day wherever the two may be confused.

    >>> month_first("%Y-%m-%d|%d/%m/%Y")
    '%Y-%m-%d|%m/%d/%Y'
    """
    return BETWEEN.join(SWAPPED.get(part, part) for part in form.split(BETWEEN))


def _mixed_form(text: pl.Series, day: pl.Series) -> str | None:
    """Forms that (nearly) all values are dates in, the most frequent first; None without them.

    A column that is day first in some rows and month first in others cannot be read: which of the
    two 03/04/2021 is, nobody knows.
    """
    forms: list[str] = []
    rest, present = day.drop_nulls(), day.len() - day.null_count()
    while len(forms) < _MOST_FORMS and len(rest):
        fits = [_parse_day(rest, form).is_not_null() for form in FORMS]
        best = max(range(len(FORMS)), key=lambda i: (int(fits[i].sum()), -i))
        if fits[best].sum() < max(2, _RAREST * present):
            break
        forms.append(FORMS[best])
        rest = rest.filter(~fits[best])
    swapped = any(form in forms and other in forms for form, other in SWAPPED.items())
    mixed = BETWEEN.join(forms)
    if len(forms) < 2 or swapped or offenders(text, _parse_day(day, mixed)) is None:
        return None
    return mixed


def parse_dates(text: pl.Series, form: str) -> pl.Series:
    """Dates (with an optional time of day) in a known form, null where a value does not parse.

    >>> parse_dates(pl.Series(["2021-05-01T06:30:00+02:00"]), "%Y-%m-%d").dt.hour().to_list()
    [4]
    >>> parse_dates(pl.Series(["1614729600"]), "epoch").dt.year().to_list()
    [2021]
    """
    if form in EPOCHS:
        counted = text.cast(pl.Float64, strict=False) * EPOCHS[form]
        return counted.round().cast(pl.Int64, strict=False).cast(pl.Datetime("us"))
    if "%H" in form or "%I" in form or "%T" in form:
        return text.str.to_datetime(form, strict=False, time_unit="us")
    day, clock = _split_clock(text)
    return _join(_parse_day(day, form), clock)


def compact_days(whole: pl.Series) -> pl.Series | None:
    """Whole numbers such as 20210303 as days, where every one of many is a date; else None.

    >>> compact_days(pl.Series([20210303, 20211301])) is None  # few, and there is no month 13
    True
    """
    kept = whole.drop_nulls()
    inside = kept.is_between(19_000_101, 20_991_231).all()
    if not len(kept) or not inside or kept.n_unique() < _FEWEST:
        return None
    days = parse_dates(whole.cast(pl.String), COMPACT)
    return days if days.null_count() == whole.null_count() else None


def _parse_day(text: pl.Series, form: str) -> pl.Series:
    first, *others = form.split(BETWEEN)
    days = text.str.to_date(first, strict=False)
    for other in others:
        days = days.zip_with(days.is_not_null(), text.str.to_date(other, strict=False))
    # "1.2.3" is a version, not the third of February in the year 1
    late = (days >= _FIRST).fill_null(True)
    return days if late.all() else days.set(~late, None)


def _split_clock(text: pl.Series) -> tuple[pl.Series, pl.Series | None]:
    """Values without their time of day, and that time in microseconds after UTC midnight."""
    if not text.head(1000).str.contains(":", literal=True).any():
        return text, None
    parts = text.str.extract_groups(_TIME).struct.unnest()
    has = parts["day"].is_not_null()
    hour = parts["h"].cast(pl.Int64, strict=False).fill_null(0)
    half = parts["half"].str.to_lowercase()
    hour = hour.zip_with((half.is_null() | (hour != 12)).fill_null(True), hour * 0)
    hour = hour + (half == "pm").fill_null(False).cast(pl.Int64) * 12
    minute = parts["m"].cast(pl.Int64, strict=False).fill_null(0)
    second = parts["s"].str.replace(",", ".").cast(pl.Float64, strict=False).fill_null(0.0)
    digits = parts["zone"].str.replace_all(r"[^+\-\d]", "")
    hours = digits.str.slice(1, 2).cast(pl.Int64, strict=False)
    minutes = digits.str.slice(3, 2).cast(pl.Int64, strict=False)
    offset = (hours.fill_null(0) * 60 + minutes.fill_null(0)) * 60
    offset = offset * (1 - 2 * (digits.str.slice(0, 1) == "-").fill_null(False).cast(pl.Int64))
    micros = (second * _MICROS).round().cast(pl.Int64)
    clock = (hour * 3600 + minute * 60 - offset) * _MICROS + micros
    return parts["day"].zip_with(has, text), clock


def _join(days: pl.Series, clock: pl.Series | None) -> pl.Series:
    stamps = days.cast(pl.Datetime("us"))
    return stamps if clock is None else stamps + clock.cast(pl.Duration("us"))
