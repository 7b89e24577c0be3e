"""`stream`: a file in chunks of rows with one fixed schema, in bounded memory."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np
import polars as pl

from groundstate.data.reader import read
from groundstate.data.tables.build import build, conform
from groundstate.data.tables.delimited import (
    Layout,
    find_layout,
    parse,
    tidy,
    without_comments,
)
from groundstate.data.tables.files import format_of, head, is_json, resolve
from groundstate.data.tables.guard import guarded
from groundstate.data.tables.jsontext import parse_lines
from groundstate.data.tables.kinds import MISSING
from groundstate.data.tables.probe import check
from groundstate.data.tables.schema import Schema
from groundstate.data.tables.sniff import to_utf8
from groundstate.data.tables.table import Table
from groundstate.data.tables.target import choose_target, target_name
from groundstate.errors import DataError

_BLOCK = 1 << 22
_OPENERS: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7z": lzma.open}
_WHOLE = (b"\x28\xb5\x2f\xfd", b"\xff\xfe", b"\xfe\xff")
"""Zstandard and UTF-16 are read at once: their records cannot be cut by looking for a newline."""


def stream(
    source: Any,
    chunk_rows: int = 65_536,
    *,
    target: str | int | None = None,
    schema: Schema | Mapping[str, str] | None = None,
    header: bool | str = "auto",
    separator: str = "auto",
    missing: Iterable[str] = MISSING,
    encoding: str = "auto",
) -> Iterator[Table]:
    """Tables of at most `chunk_rows` rows that together are the file.

    The first chunk decides the schema unless a whole `Schema` is given; values in later
    chunks that do not fit it become missing, with a note on that chunk. Chunks in which no row
    has a target are left out.

    Parameters
    ----------
    source
        A path to a delimited text, JSON lines, Parquet or Arrow file, or any table in memory.
    chunk_rows
        Most rows per table.
    target, schema, header, separator, missing, encoding
        As in `read`.

    Examples
    --------
    >>> parts = stream({"a": range(5), "b": range(5)}, chunk_rows=2)
    >>> [part.n_rows for part in parts]
    [2, 2, 1]
    """
    if isinstance(chunk_rows, bool) or not isinstance(chunk_rows, int) or chunk_rows < 1:
        raise DataError(f"chunk_rows must be a positive whole number, got {chunk_rows!r}")
    markers = ("", *missing)
    if not isinstance(source, (str, os.PathLike)) or not os.path.exists(source):
        whole = read(source, target=target, schema=schema, missing=missing)
        for start in range(0, whole.n_rows, chunk_rows):
            yield replace(whole, frame=whole.frame[start : start + chunk_rows], set_aside=None)
        return
    path = resolve(source)
    frames = _frames(path, chunk_rows, header, separator, markers, encoding)
    fixed = schema if isinstance(schema, Schema) else None
    done = False
    while not done:
        table: Table | None = None
        with guarded() as attempt:
            found = next(frames, None)
            if found is None:
                done = True
            elif fixed is None:
                table = build(found[0], path.name, (), target, schema, markers, found[1])
                fixed = table.schema
            else:
                table = _next(found[0], path.name, target, fixed, markers)
        if attempt.problem:
            raise DataError(f"{path.name!r} cannot be read: {attempt.problem}")
        if table is not None:
            yield table


def _next(
    raw: pl.DataFrame, name: str, target: str | int | None, schema: Schema, missing: tuple[str, ...]
) -> Table | None:
    """A later chunk in the fixed schema, or None if none of its rows has a target."""
    table = conform(raw, name, (), schema, missing)
    goal = schema.target if target is None else target_name(target, table.columns)
    if goal is None or goal not in table.schema:
        return table
    return None if table.frame[goal].null_count() == table.n_rows else choose_target(table, goal)


def _frames(
    path: Path,
    rows: int,
    header: bool | str,
    separator: str,
    missing: tuple[str, ...],
    encoding: str,
) -> Iterator[tuple[pl.DataFrame, str]]:
    """Raw chunks of a file with the field separator."""
    form = format_of(path)
    start = head(path)
    if form in ("parquet", "arrow"):
        check(str(path), form)
        lazy = pl.scan_parquet(path, glob=False) if form == "parquet" else pl.scan_ipc(path)
        total = lazy.select(pl.len()).collect().item()
        for first in range(0, max(total, 1), rows):
            yield lazy.slice(first, rows).collect(), ","
    elif form != "text" or start.startswith(_WHOLE) or start.lstrip()[:1] == b"[":
        table = read(path, header=header, separator=separator, encoding=encoding)
        for first in range(0, table.n_rows, rows):
            yield table.frame[first : first + rows], ","
    elif is_json(path, start):
        done = 1
        for raw in _blocks(path, rows, quotes=False):
            text, _ = to_utf8(raw, encoding, path.name)
            yield parse_lines(text, path.name, done), ","
            done += raw.count(b"\n")
    else:
        yield from _text_frames(path, rows, header, separator, missing, encoding)


def _text_frames(
    path: Path,
    rows: int,
    header: bool | str,
    separator: str,
    missing: tuple[str, ...],
    encoding: str,
) -> Iterator[tuple[pl.DataFrame, str]]:
    layout: Layout | None = None
    done = 1
    for raw in _blocks(path, rows, quotes=True):
        text, _ = to_utf8(raw, encoding, path.name)
        tidied, used = tidy(text, separator)
        if not tidied:
            continue
        comments = 0
        if layout is None:
            tidied, comments = without_comments(tidied, used, header)
            layout = find_layout(tidied, used, header, frozenset(missing), path.name)
            blanks = used == "\t" and b"\t" not in text
            separator = " " if blanks else used
        frame = parse(tidied, layout, path.name, done + comments)
        done += raw.count(b"\n")
        layout = replace(layout, header=False)
        if frame.height:
            yield frame, used


def _open(path: Path) -> IO[bytes]:
    start = head(path, 4)
    for magic, opener in _OPENERS.items():
        if start.startswith(magic):
            opened: IO[bytes] = opener(path, "rb")
            return opened
    return path.open("rb")


def _blocks(path: Path, rows: int, *, quotes: bool) -> Iterator[bytes]:
    """Pieces of `rows` whole records; a newline inside quotes does not end a record."""
    kept, ends, seen, odd = bytearray(), list[int](), 0, 0
    with _open(path) as file:
        while piece := file.read(_BLOCK):
            kept += piece
            fresh = np.frombuffer(bytes(kept[seen:]), dtype=np.uint8)
            found = np.flatnonzero(fresh == 10)
            if quotes:
                marks = np.flatnonzero(fresh == 34)
                found = found[(np.searchsorted(marks, found) + odd) % 2 == 0]
                odd += len(marks)
            ends.extend((found + seen + 1).tolist())
            first = 0
            while len(ends) >= rows:
                yield bytes(kept[first : ends[rows - 1]])
                first = ends[rows - 1]
                ends = ends[rows:]
            del kept[:first]
            ends = [end - first for end in ends]
            seen = len(kept)
    if kept:
        yield bytes(kept)
