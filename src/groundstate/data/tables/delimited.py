"""Delimited text into columns of strings: a short reference and a fast path that must agree."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from groundstate.data.messages import count
from groundstate.data.tables.guard import guarded
from groundstate.data.tables.sniff import find_separator, has_header, sample_rows
from groundstate.errors import DataError

FAST_FROM = 1 << 20
"""Files from this many bytes on are parsed by polars, smaller ones by the csv module."""

MAX_COLUMNS = 50_000
_BLOCK = 1 << 24


@dataclass(frozen=True)
class Layout:
    """How the fields of a text lie: separator, header, column names."""

    separator: str
    header: bool
    names: tuple[str, ...]
    notes: tuple[str, ...] = ()


def tidy(raw: bytes, separator: str) -> tuple[bytes, str]:
    """One newline convention, no leading or trailing blank lines, and the separator found.

    >>> tidy(b"sep=;\\r\\na;b\\r\\n1;2\\r\\n\\r\\n", "auto")
    (b'a;b\\r\\n1;2', ';')
    """
    if b"\n" not in raw and b"\r" in raw:
        raw = raw.replace(b"\r", b"\n")
    raw = raw.lstrip(b"\r\n").rstrip(b"\r\n\x1a ")
    excel = re.match(rb"sep=([^\r\n])\r?\n", raw)
    if excel is not None:
        raw = raw[excel.end() :]
        separator = excel.group(1).decode("ascii", errors="replace")
    if separator == "auto":
        separator = find_separator(raw[_comments(raw) :])
    if separator == " ":
        lines = (b"\t".join(line.split()) for line in raw.splitlines())
        raw, separator = b"\n".join(line for line in lines if line), "\t"
    return raw, separator


def without_comments(raw: bytes, separator: str, header: bool | str) -> tuple[bytes, int]:
    """A text without the lines of ``#`` before its rows, and how many were left out.

    The last of them is the header where the rows below have none and as many fields
    (``# a,b``, as NumPy writes it), or where it has no blank behind the mark (``#a,b``).

    >>> without_comments(b"# from the lab\\n# 2024\\na,b\\n1,2", ",", "auto")
    (b'a,b\\n1,2', 2)
    >>> without_comments(b"# made by hand\\n# a,b\\n1,2", ",", "auto")
    (b'a,b\\n1,2', 1)
    """
    end = _comments(raw)
    if not end:
        return raw, 0
    lines, rest = [line for line in raw[:end].split(b"\n") if line.strip()], raw[end:]
    below = sample_rows(rest, separator)
    width = len(below[0])
    bare = [line for line in lines if not line[1:2].isspace()]
    if width > 1 and sum(len(sample_rows(line, separator)[0]) == width for line in bare) > 1:
        return raw, 0  # the mark belongs to the cells
    spaced = lines[-1][1:2].isspace()
    last = lines[-1][1:].lstrip() if spaced else lines[-1]
    fields = len(sample_rows(last, separator)[0]) if last.strip() else 0
    named = has_header(below, frozenset()) if header == "auto" else bool(header)
    if fields == width and (fields > 1 or len(lines) == 1) and not (named and spaced):
        return last + b"\n" + rest, len(lines) - 1
    return rest, len(lines)


def _comments(raw: bytes) -> int:
    """Where the lines of ``#`` at the beginning end; 0 where nothing follows them."""
    block = re.match(rb"(#[^\n]*\n[\r\n]*)+", raw)
    if block is None or block.end() == len(raw) or raw[block.end() :].startswith(b"#"):
        return 0
    return block.end()


def find_layout(
    raw: bytes, separator: str, header: bool | str, missing: frozenset[str], name: str
) -> Layout:
    """Separator checked, header decided, names made unique."""
    if len(separator.encode()) != 1 or separator in '"\r\n\0':
        raise DataError(f"separator must be one plain character or 'auto', got {separator!r}")
    rows = sample_rows(raw, separator)
    if not rows:
        raise DataError(f"{name!r} is empty: it holds no row")
    if len(rows[0]) > MAX_COLUMNS:
        raise DataError(f"{name!r} has {len(rows[0]):,} columns; at most {MAX_COLUMNS:,} are read")
    named = has_header(rows, missing) if header == "auto" else bool(header)
    width = len(rows[0])
    if not named:
        note = f"no header was found, so columns are called x0 to x{width - 1}"
        names = tuple(f"x{i}" for i in range(width))
        return Layout(separator, False, names, (note,) if header == "auto" else ())
    first = [cell.strip() for cell in rows[0]]
    widths = {len(row) for row in rows[1:]}
    if widths == {width + 1}:  # R writes row names without a name, others a trailing separator
        trailing = all(not row[-1].strip() for row in rows[1:])
        first = [*first, ""] if trailing else ["row", *first]
    unique, notes = unique_names(first)
    return Layout(separator, True, tuple(unique), tuple(notes))


def unique_names(names: list[str]) -> tuple[list[str], list[str]]:
    """Names made unique: an empty one gets its position, a second ``a`` becomes ``a_2``.

    >>> unique_names(["a", "", "a"])[0]
    ['a', 'unnamed_1', 'a_2']
    """
    taken = set(names)
    seen: set[str] = set()
    out: list[str] = []
    twice: list[str] = []
    for i, name in enumerate(names):
        fresh = name or f"unnamed_{i}"
        if fresh in seen or (not name and fresh in taken):
            k = 2
            while f"{fresh}_{k}" in seen or f"{fresh}_{k}" in taken:
                k += 1
            twice.append(f"{fresh!r} → {f'{fresh}_{k}'!r}")
            fresh = f"{fresh}_{k}"
        seen.add(fresh)
        out.append(fresh)
    notes = [f"column names came twice and were made unique: {', '.join(twice)}"] if twice else []
    return out, notes


def parse(raw: bytes, layout: Layout, name: str, first_line: int = 1) -> pl.DataFrame:
    """All rows of a tidy text as strings; a ragged row is a `DataError` that names its line."""
    if len(raw) >= FAST_FROM:
        frame = parse_fast(raw, layout)
        if frame is not None:
            return frame
    return parse_reference(raw, layout, name, first_line)


def parse_reference(raw: bytes, layout: Layout, name: str, first_line: int = 1) -> pl.DataFrame:
    """Row by row with the csv module: slow on large files, and right."""
    try:
        rows = list(_rows(raw, layout, name, first_line, quoted=True))
    except _Quotes as error:
        try:  # a stray quote: take quotes as ordinary characters if the rows then agree
            rows = list(_rows(raw, layout, name, first_line, quoted=False))
        except (DataError, _Quotes):
            raise DataError(str(error)) from None
    columns = zip(*rows, strict=True) if rows else [()] * len(layout.names)
    return pl.DataFrame(
        [pl.Series(n, c, dtype=pl.String) for n, c in zip(layout.names, columns, strict=True)]
    )


class _Quotes(Exception):
    """Quoting that cannot be followed."""


def _rows(
    raw: bytes, layout: Layout, name: str, first_line: int, *, quoted: bool
) -> Iterator[list[str]]:
    text = io.StringIO(raw.decode("utf-8"), newline="")
    reader = csv.reader(
        text,
        delimiter=layout.separator,
        strict=quoted,
        quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE,
    )
    width, skip = len(layout.names), layout.header
    try:
        for row in reader:
            if not row:
                continue
            if skip:
                skip = False
            elif len(row) == width:
                yield row
            else:
                line = reader.line_num + first_line - 1
                raise DataError(
                    f"line {line} of {name!r} has {count(len(row), 'field')} where "
                    f"{width} {'is' if width == 1 else 'are'} expected; check quotes and the "
                    f"separator ({layout.separator!r} was used)"
                )
    except csv.Error as error:
        line = reader.line_num + first_line - 1
        raise _Quotes(f"line {line} of {name!r} cannot be split into fields: {error}") from None


def parse_fast(raw: bytes, layout: Layout) -> pl.DataFrame | None:
    """The same with polars; None where the reference has to decide."""
    separator, width = ord(layout.separator), len(layout.names)
    if width == 1:  # a blank line and a missing value look the same
        return None
    if raw.count(b"\r") != raw.count(b"\r\n"):  # a lone carriage return ends a row too
        return None
    if b'"' not in raw and re.search(rb"\n\r?\n", raw):
        raw = re.sub(rb"(?:\r?\n){2,}", b"\n", raw)
    n = _even_rows(raw, separator, width, layout.header)
    if n is None:
        return None
    with guarded():
        frame = pl.read_csv(
            raw, separator=layout.separator, has_header=False, infer_schema=False, glob=False
        )
        if frame.shape == (n, width):
            frame.columns = list(layout.names)
            return frame[1:] if layout.header else frame
    return None


def _even_rows(raw: bytes, separator: int, width: int, header: bool) -> int | None:
    """Number of rows if all have `width` fields (quotes in pairs, no blank line), else None."""
    data = np.frombuffer(raw, dtype=np.uint8)
    carry = quotes = rows = 0
    last = -2
    for start in range(0, len(data), _BLOCK):
        block = data[start : start + _BLOCK]
        at = np.flatnonzero((block == separator) | (block == 10))
        marks = np.flatnonzero(block == 34)
        if len(marks) or quotes % 2:
            at = at[(np.searchsorted(marks, at) + quotes) % 2 == 0]
        ends = np.flatnonzero(block[at] == 10)
        if len(ends):
            fields = np.diff(ends, prepend=-1)
            fields[0] += carry
            lines = np.diff(at[ends] + start, prepend=last)
            short = fields != width
            if rows == 0 and header:
                short[0] = False
            if short.any() or (lines <= 1).any():
                return None
            rows += len(ends)
            last = int(at[ends[-1]]) + start
            carry = len(at) - 1 - int(ends[-1])
        else:
            carry += len(at)
        quotes += len(marks)
    return rows + 1 if quotes % 2 == 0 and carry + 1 == width else None
