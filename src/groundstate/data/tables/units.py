"""Numbers with a unit, a currency or a magnitude behind or before them, in one unit per column."""

from __future__ import annotations

import polars as pl

_NUMBER = r"[+-]?(?:\d[\d,']*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_PAIR = rf"({_NUMBER})\s?(\p{{L}}[\p{{L}}./]*\d?[²³]?(?:/[\p{{L}}\d]+)?|°\p{{L}}?|['\"′″])"
_WITH_UNIT = rf"^{_PAIR}$"
_SEVERAL = rf"^{_PAIR}(?:\s*{_PAIR})+$"
_CODE = r"^[+-]?0\d"  # digits that only name something
_GROUPED = r"^[+-]?\d{1,3}([,']\d{3})+(\.\d+)?$"

_LENGTH = {
    **{"mm": 1e-3, "cm": 1e-2, "dm": 0.1, "m": 1.0, "km": 1e3, "µm": 1e-6, "um": 1e-6},
    **dict.fromkeys(("in", "inch", "inches", '"', "″"), 0.0254),
    **dict.fromkeys(("ft", "foot", "feet", "'", "′"), 0.3048),
    **dict.fromkeys(("yd", "yard", "yards"), 0.9144),
    **dict.fromkeys(("mi", "mile", "miles"), 1609.344),
    **dict.fromkeys(("metre", "metres", "meter", "meters"), 1.0),
}
_TIME = {
    **{"ms": 1e-3, "s": 1.0, "h": 3600.0, "d": 86_400.0},
    **dict.fromkeys(("sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("hr", "hrs", "hour", "hours"), 3600.0),
    **dict.fromkeys(("day", "days"), 86_400.0),
    **dict.fromkeys(("wk", "week", "weeks"), 604_800.0),
    **dict.fromkeys(("month", "months"), 2_629_746.0),
    **dict.fromkeys(("yr", "yrs", "year", "years"), 31_556_952.0),
}
UNITS: dict[str, dict[str, float]] = {
    "weight": {
        **{"mg": 1e-6, "g": 1e-3, "kg": 1.0, "t": 1e3, "µg": 1e-9, "st": 6.35029318},
        **dict.fromkeys(("gram", "grams"), 1e-3),
        **dict.fromkeys(("kgs", "kilo", "kilos"), 1.0),
        **dict.fromkeys(("lb", "lbs", "pound", "pounds"), 0.45359237),
        **dict.fromkeys(("oz", "ounce", "ounces"), 0.028349523125),
    },
    "length": _LENGTH,
    "time": _TIME,
    "volume": {
        **{"ml": 1e-3, "cl": 1e-2, "dl": 0.1, "l": 1.0, "m3": 1e3, "m³": 1e3},
        **{"cc": 1e-3, "ccm": 1e-3, "cm3": 1e-3, "cm³": 1e-3, "gal": 3.785411784},
        **dict.fromkeys(("litre", "litres", "liter", "liters"), 1.0),
    },
    "area": {
        **{"m2": 1.0, "m²": 1.0, "sqm": 1.0, "km2": 1e6, "km²": 1e6, "ha": 1e4, "cm²": 1e-4},
        **dict.fromkeys(("sqft", "ft2", "ft²"), 0.09290304),
        **dict.fromkeys(("acre", "acres"), 4046.8564224),
    },
    "speed": {"m/s": 1.0, "km/h": 1 / 3.6, "kmh": 1 / 3.6, "kph": 1 / 3.6, "mph": 0.44704},
    "power": {"W": 1.0, "kW": 1e3, "MW": 1e6, "hp": 745.6998715822702, "bhp": 745.6998715822702},
    "energy": {"J": 1.0, "kJ": 1e3, "cal": 4.184, "kcal": 4184.0, "Wh": 3600.0, "kWh": 3.6e6},
    "data": {
        **{"B": 1.0, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12},
        **{"KiB": 1024.0, "MiB": 1024.0**2, "GiB": 1024.0**3},
    },
    "frequency": {"Hz": 1.0, "kHz": 1e3, "MHz": 1e6, "GHz": 1e9},
    "pressure": {"Pa": 1.0, "hPa": 100.0, "kPa": 1e3, "bar": 1e5, "psi": 6894.757293168361},
}
"""Units that are converted into each other, by what they measure."""

CURRENCY = (
    r"(?:US\$|A\$|C\$|R\$|[$€£¥₹₽₩₺₿]|USD|EUR|GBP|CHF|JPY|CNY|INR|AUD|CAD|SEK|NOK|DKK|PLN|BRL"
    r"|Fr\.|kr\.?|zł)"
)
_BIG = {
    **dict.fromkeys(("k", "K", "thousand"), 1e3),
    **dict.fromkeys(("m", "M", "mn", "mio", "million"), 1e6),
    **dict.fromkeys(("b", "B", "bn", "billion"), 1e9),
    **dict.fromkeys(("tn", "trillion"), 1e12),
}
_BIG_WORD = "(" + "|".join(sorted(_BIG, key=len, reverse=True)) + ")"
_AMOUNT = rf"[+-]?\(?{CURRENCY}?\s?[+-]?\d[\d.,']*\s?{_BIG_WORD}?\s?{CURRENCY}?\)?"
_MAGNITUDE = rf"^{_NUMBER}\s?{_BIG_WORD}$"


def dimension(unit: str) -> str:
    """What a unit measures, empty where it is not known.

    >>> dimension("lbs"), dimension("stars")
    ('weight', '')
    """
    return next((name for name, units in UNITS.items() if unit in units), "")


def currency_form(sample: pl.Series) -> str | None:
    """``"currency"``, or ``"currency:comma"`` for a decimal comma, when a sample has amounts.

    Amounts in several currencies have no common unit and are none.

    >>> currency_form(pl.Series(["$3.50", "$1.2M"])), currency_form(pl.Series(["1.200,50 €"]))
    ('currency', 'currency:comma')
    """
    sign = sample.str.extract(f"({CURRENCY})")
    amounts = sample.filter(sample.str.contains(f"^{_AMOUNT}$") & sign.is_not_null())
    if not len(amounts) or sign.drop_nulls().n_unique() > 1:
        return None
    bare = amounts.str.extract(r"(\d[\d.,']*)")
    comma = bare.str.contains(r"^\d{1,3}(\.\d{3})*,\d{1,2}$|^\d+,\d{1,2}$").any()
    return "currency:comma" if comma else "currency"


def parse_currency(text: pl.Series, form: str) -> pl.Series:
    """Amounts of money without their sign, null where a value is none.

    >>> parse_currency(pl.Series(["$1,200", "-$3.50", "($2)", "$1.2M", "n"]), "currency").to_list()
    [1200.0, -3.5, -2.0, 1200000.0, None]
    """
    bare = text.str.replace_all(CURRENCY, "").str.replace_all(r"\s", "")
    minus = text.str.contains(r"^\(.*\)$|^[^\d]*-").fill_null(False)
    parts = bare.str.replace_all(r"[()+-]", "").str.extract_groups(rf"^([\d.,']+){_BIG_WORD}?$")
    number, big = parts.struct[0], parts.struct[1]
    if form.endswith("comma"):
        number = number.str.replace_all(r"[.']", "").str.replace(",", ".", literal=True)
    else:
        number = number.str.replace_all(r"[,']", "")
    values = number.cast(pl.Float64, strict=False) * _factor(big)
    return values.zip_with(~minus, -values).rename(text.name)


def magnitude_form(sample: pl.Series) -> str | None:
    """``"magnitude"`` when numbers are shortened as 1.2k or 3M."""
    words = sample.str.extract(_MAGNITUDE, 1).drop_nulls()
    kinds = set(words.unique().to_list())
    mixed = len(kinds) > 1 or len(words) < len(sample)
    return "magnitude" if kinds and (kinds & {"k", "K"} or (mixed and "m" not in kinds)) else None


def parse_magnitudes(text: pl.Series) -> pl.Series:
    """Shortened numbers, null where a value is none.

    >>> parse_magnitudes(pl.Series(["1.2k", "900", "3M", "x"])).to_list()
    [1200.0, 900.0, 3000000.0, None]
    """
    parts = text.str.extract_groups(rf"^({_NUMBER})\s?{_BIG_WORD}?$")
    values = _plain(parts.struct[0]) * _factor(parts.struct[1])
    return values.rename(text.name)


def unit_form(sample: pl.Series) -> str | None:
    """``"unit:kg"`` when a sample has numbers with units of one kind; the unit most values have.

    A unit that is not known is one when all values have it, in the singular or the plural.

    >>> unit_form(pl.Series(["1,200 kg", "950 g", "1 kg"])), unit_form(pl.Series(["5 kg", "3 m"]))
    ('unit:kg', None)
    """
    found = _found_units(sample)
    if not found:
        return None
    kinds = {dimension(unit) for unit in found}
    most = max(found, key=lambda unit: (found[unit], unit))
    if kinds == {""}:
        single = {unit.lower().removesuffix("s") for unit in found}
        return f"unit:{most}" if len(single) == 1 else None
    return f"unit:{most}" if len(kinds) == 1 else None


def mixed_units(sample: pl.Series) -> list[str]:
    """Kinds of units and currencies that a column of numbers mixes; empty when it does not."""
    signs = sample.filter(sample.str.contains(f"^{_AMOUNT}$")).str.extract(f"({CURRENCY})")
    if len(signs) >= 0.9 * len(sample) and signs.drop_nulls().n_unique() > 1:
        return sorted(signs.drop_nulls().unique().to_list())
    found = _found_units(sample)
    kinds = {dimension(unit) for unit in found}
    known = sum(found.values()) >= 0.9 * len(sample) and "" not in kinds and len(kinds) > 1
    return sorted(found) if known else []


def parse_units(text: pl.Series, form: str) -> pl.Series:
    """Numbers in the unit that `form` names, null where a value has another or none.

    >>> parse_units(pl.Series(["1,200 kg", "500 g", "3 m"]), "unit:kg").to_list()
    [1200.0, 0.5, None]
    >>> parse_units(pl.Series(["3 ft 4 in", "2 ft"]), "unit:ft").round(3).to_list()
    [3.333, 2.0]
    """
    wanted = form.partition(":")[2]
    units = UNITS.get(dimension(wanted), {})
    known = {unit: size / units[wanted] for unit, size in units.items()}
    if not known:
        stem = wanted.lower().removesuffix("s")
        known = dict.fromkeys((wanted, wanted.lower(), stem, stem + "s", stem.title()), 1.0)
    several = text.str.contains(_SEVERAL).fill_null(False) & ~text.str.contains(_CODE)
    parts = text.str.extract_groups(_WITH_UNIT)
    values = _plain(parts.struct[0]) * _look_up(parts.struct[1], known)
    codes = text.str.contains(_CODE).fill_null(False)
    values = pl.select(pl.when(~codes).then(values)).to_series()
    if several.any() and units:
        pieces = pl.DataFrame({"row": range(len(text)), "text": text}).filter(several)
        pieces = pieces.with_columns(pl.col("text").str.extract_all(_PAIR)).explode("text")
        pair = pieces["text"].str.extract_groups(_WITH_UNIT)
        size = _plain(pair.struct[0]) * _look_up(pair.struct[1], known)
        total = pieces.with_columns(size.alias("size")).group_by("row", maintain_order=True)
        sums = total.agg(pl.col("size").sum(), lost=pl.col("size").is_null().any())
        sums = sums.with_columns(pl.when(~pl.col("lost")).then(pl.col("size")))
        values = values.scatter(sums["row"].to_list(), sums["size"].to_list())
    return values.rename(text.name)


def _found_units(sample: pl.Series) -> dict[str, int]:
    """Units behind the numbers of a sample, with how many have them."""
    codes = sample.str.contains(_CODE)
    first = sample.filter(
        ~codes & (sample.str.contains(_WITH_UNIT) | sample.str.contains(_SEVERAL))
    )
    if len(first) < 0.9 * len(sample):
        return {}
    words = first.str.extract(rf"^{_PAIR}", 2).drop_nulls()
    counts = words.value_counts()
    return {str(word): int(times) for word, times in counts.iter_rows()}


def _plain(number: pl.Series) -> pl.Series:
    """Numbers with marks between thousands, or else a decimal comma."""
    grouped = number.str.contains(_GROUPED).fill_null(False)
    bare = number.str.replace_all(r"[,']", "")
    pointed = number.str.replace(",", ".", literal=True)
    return bare.zip_with(grouped, pointed).cast(pl.Float64, strict=False)


def _factor(words: pl.Series) -> pl.Series:
    return _look_up(words.fill_null(""), {"": 1.0, **_BIG})


def _look_up(words: pl.Series, sizes: dict[str, float]) -> pl.Series:
    return words.replace_strict(sizes, default=None, return_dtype=pl.Float64)
