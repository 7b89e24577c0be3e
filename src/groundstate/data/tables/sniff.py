"""How a text file is written: encoding, separator, header."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Sequence

from groundstate.errors import DataError

SEPARATORS = ("\t", ";", "|", ",")
"""Tried in this order; a comma inside a semicolon file is a decimal comma."""

_SAMPLE = 1 << 18
_CONTROL = bytes(c for c in range(32) if c not in b"\t\n\r\f\x1a\x1b")
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?%?")


def to_utf8(raw: bytes, encoding: str, name: str) -> tuple[bytes, list[str]]:
    r"""File content as UTF-8 without a byte-order mark, and what was decided.

    >>> to_utf8("caf\xe9".encode("latin-1"), "auto", "menu.csv")[0].decode()
    'café'
    """
    notes: list[str] = []
    for bom, codec in _BOMS:
        if encoding == "auto" and raw.startswith(bom):
            raw, encoding = raw[len(bom) :], codec
    if encoding in ("auto", "utf-8", "utf8"):
        if b"\0" in raw or _control_share(raw) > 0.02:
            raise DataError(
                f"{name!r} is not a text file (it holds binary data); "
                "expected CSV, TSV, JSON, Parquet or Arrow"
            )
        if _is_utf8(raw):
            return raw, notes
        if encoding != "auto":
            raise DataError(f"{name!r} is not valid UTF-8; pass encoding='latin-1' or 'auto'")
        encoding = "cp1252" if _decodes(raw, "cp1252") else "latin-1"
        notes.append(f"{name!r} is not UTF-8 and was read as {encoding}")
    try:
        return raw.decode(encoding).encode("utf-8"), notes
    except LookupError:
        raise DataError(f"encoding={encoding!r} is unknown; try 'utf-8' or 'latin-1'") from None
    except ValueError:
        raise DataError(f"{name!r} cannot be decoded as {encoding}; pass encoding=") from None


def _control_share(raw: bytes) -> float:
    sample = raw[:_SAMPLE]
    return 1 - len(sample.translate(None, _CONTROL)) / len(sample) if sample else 0.0


def _is_utf8(raw: bytes) -> bool:
    return raw.isascii() or _decodes(raw, "utf-8")


def _decodes(raw: bytes, encoding: str) -> bool:
    try:
        raw.decode(encoding)
    except ValueError:
        return False
    return True


def sample_rows(raw: bytes, separator: str, limit: int = 200) -> list[list[str]]:
    """The first rows of a text, as far as they can be split; blank lines are left out."""
    head = raw[:_SAMPLE]
    if len(raw) > _SAMPLE:
        head = head[: head.rfind(b"\n") + 1] or head
    text = io.StringIO(head.decode("utf-8", errors="ignore"), newline="")
    rows: list[list[str]] = []
    try:
        for row in csv.reader(text, delimiter=separator):
            if row:
                rows.append(row)
            if len(rows) == limit:
                break
    except csv.Error:
        pass
    return rows


def find_separator(raw: bytes) -> str:
    """The separator that splits the first rows most evenly into more than one field.

    ``" "`` stands for runs of blanks.

    >>> find_separator(b"a;b\\n1,5;2\\n2,5;3\\n")
    ';'
    """
    best, score = ",", 0.0
    for separator in SEPARATORS:
        if separator.encode() not in raw[:_SAMPLE]:
            continue
        widths = Counter(len(row) for row in sample_rows(raw, separator))
        width, times = max(widths.items(), key=lambda item: (item[1], item[0]), default=(1, 0))
        share = times / max(1, widths.total())
        # a later candidate must be clearly more even, so that ties keep the order
        if width > 1 and share > score + 0.02:
            best, score = separator, share
    if score == 0.0 and _blank_separated(raw):
        return " "
    return best


def _blank_separated(raw: bytes) -> bool:
    head = raw[:_SAMPLE]
    if b'"' in head:
        return False
    lines = [line.split() for line in head.decode("utf-8", errors="ignore").splitlines()[:-1]]
    rows = [row for row in lines if row][:200]
    if len({len(row) for row in rows}) != 1 or len(rows[0]) < 2:
        return False
    cells = [cell for row in rows[1:] or rows for cell in row]
    return sum(is_number(cell) for cell in cells) >= 0.5 * len(cells)


def is_number(cell: str) -> bool:
    """Whether a cell is written as a number."""
    return len(cell) < 400 and _NUMBER.fullmatch(cell.strip()) is not None


def has_header(rows: Sequence[Sequence[str]], missing: frozenset[str]) -> bool:
    """Whether the first row names the columns.

    A word above a column of numbers speaks for a header, a number in the first row against;
    without numbers anywhere, distinct words that do not come again below are names.

    >>> has_header([["a", "b"], ["1", "x"]], frozenset()), has_header([["1", "x"]], frozenset())
    (True, False)
    """
    first, rest = [cell.strip() for cell in rows[0]], rows[1:]
    against = sum(is_number(cell) for cell in first)
    speaks = echoes = 0
    for i, cell in enumerate(first):
        below = [row[i] for row in rest if i < len(row) and row[i].strip() not in missing]
        numbers = sum(is_number(value) for value in below)
        echoes += cell in below
        if cell not in missing and not is_number(cell) and numbers > 0.8 * len(below):
            speaks += bool(below)
    if against or speaks:
        return speaks > against
    named = [cell for cell in first if cell]
    distinct = len(set(named)) == len(named) and len(named) >= len(first) - 1
    return distinct and 3 * echoes < len(first)
