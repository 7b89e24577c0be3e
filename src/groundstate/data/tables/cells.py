"""Cells that hold more than one thing: lists of labels, and addresses."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

_SEPARATORS = (";", "|", ",")
_BRACKETS = r"^\s*[\[({].*[\])}]\s*$"
_QUOTES = "\"' "
_LONGEST = 40  # characters of an item
_SAMPLE = 1000

ADDRESSES = {
    "email": (r"^[^@\s,;]+@([^@\s,;]+\.[A-Za-z]{2,})$", "e-mail addresses", "their domain"),
    "url": (r"^(?i:[a-z][a-z0-9+.-]*://|www\.)[^\s]+$", "web addresses", "their host"),
    "ip": (r"^\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}$", "IP addresses", "their first two numbers"),
}
"""Form, pattern and words of the addresses that are read by the part that rows share."""


def listed(values: pl.Series, form: str) -> tuple[NDArray[np.int64], pl.Series]:
    """Row and text of every item of the lists in a column.

    >>> row, item = listed(pl.Series(["red;green", None, "red"]), ";")
    >>> row.tolist(), item.to_list()
    ([0, 0, 2], ['red', 'green', 'red'])
    """
    words = values.cast(pl.String).fill_null("")
    if form == "[]":
        words = words.str.strip_chars().str.strip_chars("[](){}")
    parts = words.str.split("," if form == "[]" else form)
    table = pl.DataFrame({"row": np.arange(len(values)), "item": parts}).explode("item")
    marks = _QUOTES if form == "[]" else " "
    table = table.with_columns(pl.col("item").str.strip_chars().str.strip_chars(marks))
    table = table.filter(pl.col("item").is_not_null() & (pl.col("item") != ""))
    table = table.unique(["row", "item"], maintain_order=True)
    return table["row"].to_numpy().astype(np.int64), table["item"]


def written_lists(frame: pl.DataFrame) -> pl.DataFrame:
    """Columns of lists of plain values as text, ``[red, green]``; deeper ones stay as they are.

    >>> written_lists(pl.DataFrame({"v": [["red", "green"], None]}))["v"].to_list()
    ['[red, green]', None]
    """
    flat = [
        s.name
        for s in frame.iter_columns()
        if isinstance(s.dtype, pl.List) and not s.dtype.inner.is_nested()
    ]
    lists = [pl.col(name).cast(pl.List(pl.String)).list.join(", ") for name in flat]
    return frame.with_columns(pl.format("[{}]", one) for one in lists) if flat else frame


def list_form(text: pl.Series) -> str | None:
    """How a column writes its lists: ``"[]"`` or the separator; None when it holds none.

    Items come again in other cells, are short, and lists are of several lengths.

    >>> list_form(pl.Series(["a;b", "b", "a;c", "c;a;b"] * 5))
    ';'
    """
    sample = text.drop_nulls().head(_SAMPLE)
    if len(sample) and sample.str.contains(_BRACKETS).all():
        return "[]" if sample.str.contains(",", literal=True).any() else None
    if len(sample) < 10:
        return None
    for separator in _SEPARATORS:
        share = float(sample.str.contains(separator, literal=True).mean())  # type: ignore[arg-type]
        if share < 0.2:
            continue
        row, item = listed(sample, separator)
        lengths = np.bincount(row, minlength=len(sample))
        again = item.n_unique() <= 0.5 * len(item) and item.n_unique() < 2 * sample.n_unique()
        short = int(item.str.len_chars().max() or 0) <= _LONGEST  # type: ignore[arg-type]
        several = len(np.unique(lengths)) > 1 and sample.n_unique() > 3
        if len(item) and again and short and several:
            return separator
    return None


def address_form(text: pl.Series) -> str | None:
    """``"email"``, ``"url"`` or ``"ip"`` when (nearly) all values are such addresses.

    >>> address_form(pl.Series([f"user{i}@example.org" for i in range(10)]))
    'email'
    """
    sample = text.drop_nulls().head(_SAMPLE)
    if len(sample) < 10:
        return None
    for form, (pattern, _, _) in ADDRESSES.items():
        if float(sample.head(20).str.contains(pattern).mean()) < 0.8:  # type: ignore[arg-type]
            continue
        if float(text.drop_nulls().str.contains(pattern).mean()) >= 0.95:  # type: ignore[arg-type]
            return form
    return None


def shared_part(text: pl.Series, form: str) -> pl.Series:
    """The domain, host or network of addresses; what is none stays as it is.

    >>> shared_part(pl.Series(["https://www.Example.org:80/a?b"]), "url").to_list()
    ['example.org']
    """
    if form == "email":
        part = text.str.extract(ADDRESSES["email"][0], 1)
    elif form == "url":
        part = text.str.extract(
            r"^(?i:[a-z][a-z0-9+.-]*://)?(?:[^/@\s]*@)?(?i:www\.)?([^/:?#\s]+)", 1
        )
        part = part.zip_with(text.str.contains(ADDRESSES["url"][0]).fill_null(False), text)
    else:
        part = text.str.extract(r"^(\d{1,3}\.\d{1,3})\.\d{1,3}\.\d{1,3}$", 1)
    return part.fill_null(text).str.to_lowercase().rename(text.name)
