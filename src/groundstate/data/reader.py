"""`read`: any source of rows and columns to a validated `Table`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from groundstate.data.builtin.load import available, is_builtin, load
from groundstate.data.messages import count
from groundstate.data.tables.binary import read_binary
from groundstate.data.tables.delimited import find_layout, parse, tidy, without_comments
from groundstate.data.tables.files import content, format_of, is_json, resolve
from groundstate.data.tables.frames import column_of, from_memory
from groundstate.data.tables.guard import guarded
from groundstate.data.tables.jsontext import parse_json
from groundstate.data.tables.kinds import MISSING
from groundstate.data.tables.probe import check
from groundstate.data.tables.schema import Schema
from groundstate.data.tables.sniff import to_utf8
from groundstate.data.tables.sparse import SparseTable, is_sparse
from groundstate.data.tables.table import Table
from groundstate.data.tables.written import Written
from groundstate.errors import DataError


def read(
    source: Any,
    *,
    target: str | int | None = None,
    schema: Schema | Mapping[str, str] | None = None,
    header: bool | str = "auto",
    separator: str = "auto",
    missing: Iterable[str] = MISSING,
    encoding: str = "auto",
) -> Table:
    """Read a table and find out what its columns hold.

    Parameters
    ----------
    source
        A path (CSV, TSV, semicolon or blank separated text, JSON, JSON lines, Parquet, Arrow;
        text may be compressed with gzip, bz2, xz or zstd), a pandas, polars or pyarrow frame, a
        dict of columns, a list of records, a structured or 2-D array, a tensor, a pair (X, y),
        a `Table`, or the name of a built-in table.
    target
        The column to predict: name, position (negative from the end) or ``"last"``.
    schema
        ``{"zip": "category"}`` fixes the kind of some columns; a whole `Schema` (that of the
        training table) fixes all of them, and columns it does not know are left out.
    header
        True, False or ``"auto"``; without a header columns are called ``x0, x1, …``.
    separator
        One character or ``"auto"``.
    missing
        Spellings that stand for no value; the empty field always does.
    encoding
        ``"auto"`` tries byte-order marks, UTF-8, then Windows-1252 and Latin-1.

    Returns
    -------
    Table
        Values in canonical form, with notes on everything that was decided.

    Examples
    --------
    >>> table = read({"size": [1, 2, None], "zip": [8001, 8002, 8001]}, schema={"zip": "category"})
    >>> print(table.schema.summary())
    column  kind      type   distinct  missing
    size    numeric   Int64         2        1
    zip     category  Int64         2        0  8001, 8002
    """
    if not isinstance(schema, (Schema, Mapping, type(None))):
        raise DataError(f"schema must map column names to kinds, got {type(schema).__name__}")
    found = written(source, header=header, separator=separator, missing=missing, encoding=encoding)
    return found.table(target, schema)


def written(
    source: Any,
    *,
    header: bool | str = "auto",
    separator: str = "auto",
    missing: Iterable[str] = MISSING,
    encoding: str = "auto",
) -> Written:
    """Read the cells of a source and decide nothing about its columns yet; see `read`.

    Examples
    --------
    >>> new = written({"size": ["1", ""]})
    >>> new.frame["size"].to_list(), new.table().values("size").tolist()
    (['1', ''], [1.0, nan])
    """
    if header not in (True, False, "auto"):
        raise DataError(f"header must be True, False or 'auto', got {header!r}")
    if isinstance(source, Written):
        return source
    markers = ("", *missing)
    if isinstance(source, Table):
        return Written(source.frame, "table", missing=markers, known=source)
    if isinstance(source, SparseTable):
        raise DataError("a SparseTable is already numbers; use its matrix and y directly")
    if is_sparse(source) or (isinstance(source, tuple) and any(map(is_sparse, source))):
        raise DataError(
            "a sparse matrix stays sparse: wrap it in data.SparseTable(matrix, y) instead"
        )
    with guarded() as attempt:
        frame, name, notes, used = _frame(source, header, separator, markers, encoding)
        if isinstance(frame, Table):
            return Written(frame.frame, name, missing=markers, known=frame)
        pair = isinstance(source, tuple) and "target" in frame.columns
        return Written(frame, name, tuple(notes), used, markers, "target" if pair else None)
    raise DataError(f"the table cannot be read: {attempt.problem}")


def _frame(
    source: Any, header: bool | str, separator: str, missing: tuple[str, ...], encoding: str
) -> tuple[pl.DataFrame | Table, str, list[str], str]:
    """Raw columns, the table's name, notes and the separator that was used."""
    if isinstance(source, (str, os.PathLike)):
        if is_builtin(source):
            return load(str(source)), str(source), [], ","
        return _from_file(resolve(source, tuple(available())), header, separator, missing, encoding)
    if isinstance(source, tuple) and len(source) == 2 and np.ndim(source[1]) == 1:
        frame, notes = from_memory(source[0])
        if len(source[1]) != frame.height:
            raise DataError(f"X has {frame.height} rows but y has {len(source[1])}")
        label = "target" if "target" not in frame.columns else "target_y"
        return frame.with_columns(column_of(label, source[1])), "table", notes, ","
    frame, notes = from_memory(source)
    return frame, "table", notes, ","


def _from_file(
    path: Path, header: bool | str, separator: str, missing: tuple[str, ...], encoding: str
) -> tuple[pl.DataFrame, str, list[str], str]:
    form = format_of(path)
    if form != "text":
        check(str(path), form)
        with guarded() as attempt:
            return read_binary(str(path), form), path.name, [], ","
        raise DataError(f"{path.name!r} cannot be read as {form}: {attempt.problem}")
    raw, notes = to_utf8(content(path), encoding, path.name)
    if is_json(path, raw):
        return parse_json(raw, path.name), path.name, notes, ","
    raw, separator = tidy(raw, separator)
    raw, comments = without_comments(raw, separator, header)
    if comments:
        notes.append(f"{count(comments, 'line')} of comments above the rows, after #, left out")
    layout = find_layout(raw, separator, header, frozenset(missing), path.name)
    notes += layout.notes
    return parse(raw, layout, path.name, 1 + comments), path.name, notes, separator
