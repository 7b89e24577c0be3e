"""Numbers as people write them: plain, decimal comma, thousands, percent, clock, currency, units."""

from __future__ import annotations

import polars as pl

from groundstate.data.tables import units

MAX_OFFENDERS = 5
"""A numeric (or date) column may hold this many distinct other words, read as missing."""

MIN_SHARE = 0.95
"""... as long as at least this share of its values parse."""

DECIMAL_COMMA = ("comma", "points", "currency:comma")
"""Forms whose decimal mark is a comma."""

_THOUSANDS = r"^[+-]?\d{1,3}(,\d{3})+(\.\d+)?$"
_COMMA = r"^[+-]?(\d+|\d{1,3}(\.\d{3})+)?,\d+([eE][+-]?\d+)?$"
_POINTS = r"^[+-]?[1-9]\d{0,2}(\.\d{3})+$"
_CLOCK = r"^(\d{1,3}):([0-5]\d)(?::([0-5]\d(?:[.,]\d+)?))?\s?(?:([AaPp])\.?[Mm]\.?)?$"
_PERCENT = r"^[+-]?\d*[.,]?\d+\s?%$"


def parse_numbers(text: pl.Series, form: str) -> pl.Series:
    """Numbers written in `form`, null where a value does not parse.

    >>> parse_numbers(pl.Series(["1.234,5", "7"]), "comma").to_list()
    [1234.5, 7.0]
    """
    if form == "points":
        grouped = text.str.contains(r"^[+-]?\d{1,3}(\.\d{3})*(,\d+)?$|^[+-]?\d+(,\d+)?$")
        bare = text.str.replace_all(".", "", literal=True).str.replace(",", ".", literal=True)
        text = bare.set(~grouped.fill_null(True), None)
    elif form == "comma":
        # a dot is a thousands mark only where a decimal comma follows
        dotted = text.str.contains(_COMMA)
        bare = text.str.replace_all(".", "", literal=True).str.replace(",", ".", literal=True)
        text = bare.zip_with(dotted.fill_null(False), text)
    elif form == "thousands":
        text = text.str.replace_all(",", "", literal=True)
    elif form == "clock":
        return _hours(text)
    elif form == "percent":
        text = text.str.replace(r"\s?%$", "").str.replace(",", ".", literal=True)
    elif form.startswith("currency"):
        return units.parse_currency(text, form)
    elif form == "magnitude":
        return units.parse_magnitudes(text)
    elif form.startswith("unit:"):
        return units.parse_units(text, form)
    return text.cast(pl.Float64, strict=False)


def _hours(text: pl.Series) -> pl.Series:
    """Hours of clock times and of times that something takes, null where a value is none.

    >>> _hours(pl.Series(["08:30", "8:15 pm", "12:00 AM", "75:20", "8:75", "13:00 pm"])).to_list()
    [8.5, 20.25, 0.0, 75.33333333333333, None, None]
    """
    parts = text.str.extract_groups(_CLOCK).struct.unnest()
    hour, minute = (parts[name].cast(pl.Float64) for name in ("1", "2"))
    second = parts["3"].str.replace(",", ".").cast(pl.Float64).fill_null(0.0)
    half = parts["4"].str.to_lowercase()
    odd = half.is_not_null() & ~hour.is_between(1, 12)
    hour = hour.zip_with((half.is_null() | (hour != 12)).fill_null(True), hour * 0.0)
    hour = hour + (half == "p").fill_null(False).cast(pl.Float64) * 12
    found = (hour * 3600 + minute * 60 + second) / 3600
    return found.set(odd.fill_null(False), None).rename(text.name)


def _clock(hours: float) -> str:
    """Hours as a clock shows them."""
    seconds = round(hours * 3600)
    minutes, rest = divmod(seconds, 60)
    return f"{minutes // 60:02d}:{minutes % 60:02d}" + (f":{rest:02d}" if rest else "")


def write_numbers(values: pl.Series, form: str) -> pl.Series:
    """Numbers in a form that `parse_numbers` reads back, whole ones without a point.

    >>> write_numbers(pl.Series([2.0, 1.5]), "comma").to_list()
    ['2', '1,5']
    >>> write_numbers(pl.Series([0.5]), "unit:kg").to_list()
    ['0.5 kg']
    >>> write_numbers(pl.Series([8.5, 23.999999]), "clock").to_list()
    ['08:30', '24:00']
    """
    if form == "clock":
        hours = values.cast(pl.Float64).fill_nan(None).clip(0.0)
        return hours.map_elements(_clock, return_dtype=pl.String)
    text = values.cast(pl.String)
    if values.dtype.is_float():
        text = text.str.replace(r"\.0$", "")
    if form in DECIMAL_COMMA:
        text = text.str.replace(".", ",", literal=True)
    return text + {"percent": "%"}.get(form, f" {form[5:]}" if form.startswith("unit:") else "")


def number_form(text: pl.Series, separator: str) -> tuple[str, pl.Series] | None:
    """The first form in which (nearly) all values parse, with the parsed values.

    `separator` is the file's field separator: in a semicolon file ``1,234`` is a decimal
    comma, in a comma file it can only be a thousands mark.
    """
    plain = text.cast(pl.Float64, strict=False)
    if offenders(text, plain) is not None:
        return "", plain
    filled = text.drop_nulls()
    if not len(filled) or not filled.head(50).str.contains(r"\d").any():
        return None
    for form in _candidates(filled, separator):
        values = parse_numbers(text, form)
        if offenders(text, values) is not None:
            return form, values
    return None


def _candidates(filled: pl.Series, separator: str) -> list[str]:
    sample = filled.head(1000)
    forms = ["clock"] if sample.str.contains(_CLOCK).any() else []
    comma = bool(sample.str.contains(_COMMA).any())
    points = comma and points_between(sample)
    grouped = sample.filter(sample.str.contains(",", literal=True))
    thousands = len(grouped) > 0 and bool(grouped.str.contains(_THOUSANDS).all())
    if separator == ";":
        forms += ["points"] if points else []
        forms += ["comma"] if comma else []
        forms += ["thousands"] if thousands else []
    else:
        forms += ["thousands"] if thousands else []
        forms += ["points"] if points and separator != "," else []
        forms += ["comma"] if comma and separator != "," else []
    forms += ["percent"] if sample.str.contains(_PERCENT).any() else []
    further = (units.currency_form, units.magnitude_form, units.unit_form)
    return forms + [form for find in further if (form := find(sample)) is not None]


def points_between(text: pl.Series) -> bool:
    """Whether points can only stand between thousands, where a comma is the decimal mark.

    >>> points_between(pl.Series(["1.200", "950"])), points_between(pl.Series(["1.200", "9.5"]))
    (True, False)
    """
    whole = text.str.replace(r",\d+$", "")
    dotted = whole.filter(whole.str.contains(".", literal=True))
    return len(dotted) > 0 and bool(dotted.str.contains(_POINTS).all())


def offenders(text: pl.Series, parsed: pl.Series) -> list[str] | None:
    """Distinct words that did not parse when they are few enough to be markers, else None.

    >>> words = pl.Series(["1"] * 98 + ["2", "oops"])
    >>> offenders(words, words.cast(pl.Float64, strict=False))
    ['oops']
    """
    present = len(text) - text.null_count()
    good = len(parsed) - parsed.null_count()
    if good == 0:
        return None
    if good >= present:
        return []
    if good < MIN_SHARE * present:
        return None
    bad = text.filter(parsed.is_null() & text.is_not_null()).unique()
    return sorted(bad.to_list()) if len(bad) <= MAX_OFFENDERS else None
