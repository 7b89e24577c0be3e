"""JSON lines, JSON arrays of records or rows, and JSON objects of columns."""

from __future__ import annotations

import io
import json
from typing import Any

import polars as pl

from groundstate.data.tables.frames import column_of, records, word
from groundstate.data.tables.guard import guarded
from groundstate.errors import DataError

FAST_FROM = 1 << 22
"""JSON lines from this many bytes on are tried with polars first."""

_MAX_CELLS = 50_000_000


def looks_like_json(raw: bytes) -> bool:
    """Whether a text starts like a JSON array or object.

    >>> looks_like_json(b' [{"a": 1}]'), looks_like_json(b"a,b")
    (True, False)
    """
    head = raw[:4096].lstrip()
    if head[:1] == b"{":
        return head[1:].lstrip()[:1] in (b'"', b"}")
    return head[:1] == b"[" and (head[1:].lstrip()[:1] or b"x") in b'{[]"-0123456789tfn'


def parse_json(raw: bytes, name: str) -> pl.DataFrame:
    """A JSON text of either layout as a frame; what is not a table is a `DataError`."""
    if raw.lstrip()[:1] == b"{":
        return parse_lines(raw, name)
    return _table(_loads(raw, f"{name!r}"), name)


def parse_lines(raw: bytes, name: str, first_line: int = 1) -> pl.DataFrame:
    """One JSON object per line; a text that is a single object may hold columns.

    >>> parse_lines(b'{"a": 1}\\n{"a": 2, "b": "x"}', "demo").shape
    (2, 2)
    """
    if len(raw) >= FAST_FROM:
        with guarded():
            return pl.read_ndjson(io.BytesIO(raw), infer_schema_length=None)
    rows: list[Any] = []
    lines = raw.splitlines()
    for number, line in enumerate(lines, start=first_line):
        if not line.strip():
            continue
        try:
            row = _loads(line, f"line {number} of {name!r}")
        except DataError:
            if not rows and number < len(lines):  # perhaps one object over many lines
                return _table(_loads(raw, f"{name!r}"), name)
            raise
        if not isinstance(row, dict):
            raise DataError(
                f"line {number} of {name!r} is a JSON {_kind(row)}; expected an object per line"
            )
        rows.append(row)
    if len(rows) == 1:
        return _table(rows[0], name)
    return _frame(rows, name)


def _loads(raw: bytes, where: str) -> Any:
    try:
        return json.loads(raw)
    except RecursionError:
        raise DataError(f"{where} is nested too deeply to be a table") from None
    except json.JSONDecodeError as error:
        raise DataError(f"{where} is not valid JSON: {error}") from None
    except ValueError as error:
        raise DataError(f"{where} is not valid JSON: {str(error)[:100]}") from None


def _table(value: Any, name: str) -> pl.DataFrame:
    if isinstance(value, dict) and value:
        columns = list(value.values())
        if all(isinstance(c, dict) for c in columns):  # pandas writes {column: {row: value}}
            keys = list(dict.fromkeys(k for c in columns for k in c))
            if len(keys) * len(columns) > _MAX_CELLS:
                raise DataError(f"{name!r} is too large for JSON; write it as CSV or Parquet")
            return pl.DataFrame(
                [column_of(word(n), [c.get(k) for k in keys]) for n, c in value.items()]
            )
        if all(isinstance(c, list) for c in columns):
            if len({len(c) for c in columns}) > 1:
                raise DataError(f"the columns in {name!r} differ in length")
            return pl.DataFrame([column_of(word(n), c) for n, c in value.items()])
        return _frame([value], name)
    if isinstance(value, list) and value:
        if all(isinstance(row, dict) for row in value):
            return _frame(value, name)
        if all(isinstance(row, list) for row in value):
            width = len(value[0])
            for number, row in enumerate(value, start=1):
                if len(row) != width:
                    raise DataError(
                        f"row {number} of {name!r} has {len(row)} values where {width} are expected"
                    )
            return pl.DataFrame([column_of(f"x{i}", [r[i] for r in value]) for i in range(width)])
    raise DataError(
        f"{name!r} holds a JSON {_kind(value)}, not a table; expected an array of objects, "
        "an object of columns, or one object per line"
    )


def _frame(rows: list[Any], name: str) -> pl.DataFrame:
    width = len({key for row in rows for key in row})
    if width * len(rows) > _MAX_CELLS:
        raise DataError(f"{name!r} is too large for JSON; write it as CSV or Parquet")
    return records(rows)


def _kind(value: Any) -> str:
    if isinstance(value, (dict, list)):
        return f"{'empty ' if not value else ''}{'object' if isinstance(value, dict) else 'array'}"
    return "null" if value is None else type(value).__name__
