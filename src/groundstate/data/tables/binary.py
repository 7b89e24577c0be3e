"""Parquet, Arrow and Zstandard content, decoded by polars."""

from __future__ import annotations

import polars as pl

from groundstate.errors import DataError

MAX_CELLS = 4_000_000_000
"""More values than this do not fit into the memory of one machine."""


def read_binary(path: str, form: str) -> pl.DataFrame:
    """The frame in a binary file; ``form`` is ``parquet``, ``arrow``, ``arrow stream`` or ``zst``.

    A ``zst`` file gives one column of lines.
    """
    if form == "parquet":
        rows = pl.scan_parquet(path, glob=False).select(pl.len()).collect().item()
        _check(rows, len(pl.read_parquet_schema(path)))
        return pl.read_parquet(path, glob=False)
    with open(path, "rb") as file:
        content = file.read()
    if form == "arrow":
        return pl.read_ipc(content)
    if form == "arrow stream":
        return pl.read_ipc_stream(content)
    return pl.read_lines(content)


def _check(rows: int, columns: int) -> None:
    if rows * columns > MAX_CELLS:
        raise DataError(f"{rows:,} rows × {columns:,} columns are too many to read at once")
