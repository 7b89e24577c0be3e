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

import polars as pl

from groundstate.data.delimited import Layout, find_layout, parse, tidy
from groundstate.data.files import content, format_of, head, is_json, resolve
from groundstate.data.guard import guarded
from groundstate.data.jsontext import parse_lines
from groundstate.data.kinds import MISSING
from groundstate.data.probe import check
from groundstate.data.reader import build, read
from groundstate.data.schema import Schema
from groundstate.data.sniff import to_utf8
from groundstate.data.table import Table
from groundstate.errors import DataError

_BLOCK = 1 << 22
_OPENERS: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZ": bz2.open, b"\xfd7": lzma.open}


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
    fixed: Schema | None = schema if isinstance(schema, Schema) else None
    while True:
        with guarded() as attempt:
            found = next(frames, None)
            if found is None:
                break
            raw, used = found
            if fixed is None:
                table = build(raw, path.name, (), target, schema, markers, used)
                fixed = table.schema
            else:
                goal = target if target is not None else fixed.target
                try:
                    table = build(raw, path.name, (), goal, fixed, markers)
                except _NoTarget:
                    continue
        if attempt.problem:
            raise DataError(f"{path.name!r} cannot be read: {attempt.problem}")
        yield table


class _NoTarget(Exception):
    """No row of a chunk has a target."""


def _frames(
    path: Path,
    rows: int,
    header: bool | str,
    separator: str,
    missing: tuple[str, ...],
    encoding: str,
) -> Iterator[tuple[pl.DataFrame, str]]:
    form = format_of(path)
    if form in ("parquet", "arrow"):
        check(str(path), form)
        lazy = pl.scan_parquet(path, glob=False) if form == "parquet" else pl.scan_ipc(path)
        total = lazy.select(pl.len()).collect().item()
        for start in range(0, max(total, 1), rows):
            yield lazy.slice(start, rows).collect(), ","
        return
    if form != "text":
        frame = read(path).frame
        for start in range(0, frame.height, rows):
            yield frame[start : start + rows], ","
        return
    layout: Layout | None = None
    lines = 1
    for raw in _blocks(path, rows):
        text, _ = to_utf8(raw, encoding, path.name)
        if layout is None and is_json(path, text):
            yield from _json_frames(path, rows, text, encoding)
            return
        if layout is None:
            text, separator = tidy(text, separator)
            layout = find_layout(text, separator, header, frozenset(missing), path.name)
        else:
            text, _ = tidy(text, layout.separator)
        frame = parse(text, layout, path.name, lines)
        lines += raw.count(b"\n")
        layout = replace(layout, header=False)
        if frame.height:
            yield frame, layout.separator
