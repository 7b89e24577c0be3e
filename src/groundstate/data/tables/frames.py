"""Tables that are already in memory, as a polars frame with unique string names."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl

from groundstate.data.tables.delimited import unique_names
from groundstate.data.tables.guard import guarded
from groundstate.errors import DataError

SOURCES = (
    "a path to a CSV, TSV, JSON, Parquet or Arrow file, a pandas, polars or pyarrow frame, "
    "a dict of columns, a 1-D structured or 2-D array, a tensor, a sparse matrix or a built-in name"
)


def from_memory(source: Any) -> tuple[pl.DataFrame, list[str]]:
    """Any in-memory table as a polars frame, and what was decided.

    >>> from_memory(np.eye(2))[0].columns
    ['x0', 'x1']
    """
    if isinstance(source, Mapping):
        return _from_dict(source)
    if isinstance(source, np.ndarray):
        return _from_array(source)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(source, torch.Tensor):
        plain = source.detach().cpu()
        if plain.dtype == torch.bfloat16:
            plain = plain.float()
        return _from_array(np.asarray(plain.resolve_conj().resolve_neg().numpy()))
    if isinstance(source, list) and source and all(isinstance(r, Mapping) for r in source):
        return records(source), []
    if isinstance(source, (list, tuple)):
        with guarded():
            array = np.asarray(source)
            if array.ndim == 2:
                return _from_array(array)
        raise DataError(
            f"a {type(source).__name__} of {len(source)} entries is not a table; expected {SOURCES}"
        )
    return _from_frame(source)


def _from_frame(source: Any) -> tuple[pl.DataFrame, list[str]]:
    if isinstance(source, pl.LazyFrame):
        source = source.collect()
    if isinstance(source, (pl.Series,)):
        source = source.to_frame()
    notes: list[str] = []
    if nw.dependencies.is_pandas_dataframe(source):
        names, notes = unique_names([str(c) for c in source.columns])
        source = source.set_axis(names, axis=1)
    elif nw.dependencies.is_pyarrow_table(source):
        names, notes = unique_names([str(c) for c in source.column_names])
        source = source.rename_columns(names)
    with guarded():
        frame = nw.from_native(source, eager_only=True)
        try:
            return frame.to_polars(), notes
        except Exception:  # mixed object columns, or pandas strings without pyarrow
            lists = {n: column_of(n, frame[n].to_list()) for n in frame.columns}
            return pl.DataFrame(list(lists.values())), notes
    raise DataError(f"cannot read a {type(source).__name__} as a table; expected {SOURCES}")


def _from_dict(source: Mapping[Any, Any]) -> tuple[pl.DataFrame, list[str]]:
    names, notes = unique_names([str(k) for k in source])
    columns = []
    for name, values in zip(names, source.values(), strict=True):
        columns.append(column_of(name, values))
    lengths = {c.name: len(c) for c in columns}
    if len(set(lengths.values())) > 1:
        raise DataError(f"columns of a table have one length, got {lengths}")
    return pl.DataFrame(columns), notes


def _from_array(array: np.ndarray[Any, Any]) -> tuple[pl.DataFrame, list[str]]:
    if array.dtype.names is not None and array.ndim == 1:
        return _from_dict({name: array[name] for name in array.dtype.names})
    if array.ndim != 2:
        raise DataError(
            f"an array of shape {array.shape} is not a table; expected (rows, columns), "
            "reshape it with array.reshape(n_rows, -1)"
        )
    if array.dtype.kind == "c":
        raise DataError("complex numbers are not supported; pass real and imaginary parts")
    named = [column_of(f"x{i}", array[:, i]) for i in range(array.shape[1])]
    return pl.DataFrame(named), []


def column_of(name: str, values: Any) -> pl.Series:
    """One column from an array, a series or a list of Python values of any mixture.

    >>> column_of("v", [1, None, 2.5]).to_list(), column_of("v", [1, "a"]).to_list()
    ([1.0, None, 2.5], ['1', 'a'])
    """
    if isinstance(values, pl.Series):
        return values.alias(name)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(values, torch.Tensor):
        values = values.detach().cpu().numpy()
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(object), None)
    if isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "biufMU":
        if values.dtype == np.float16:
            values = values.astype(np.float32)
        if values.dtype.kind == "M":
            values = values.astype("datetime64[us]")
        with guarded():
            return pl.Series(name, np.ascontiguousarray(values))
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise DataError(
            f"column {name!r} must be a sequence of values, got {type(values).__name__}"
        )
    cells = [_plain(v) for v in values]
    kinds = {type(v) for v in cells} - {type(None)}
    if any(issubclass(k, (list, tuple, dict, set, np.ndarray)) for k in kinds):
        return _column_of_lists(name, cells)
    if not kinds:
        return pl.Series(name, [None] * len(cells), dtype=pl.Null)
    with guarded():
        if kinds <= {int}:
            return pl.Series(name, cells, dtype=pl.Int64, strict=True)
    with guarded():
        if kinds <= {int, float}:
            floats = [None if v is None else float(v) for v in cells]
            return pl.Series(name, floats, dtype=pl.Float64)
    with guarded():
        if len(kinds) == 1 and kinds != {int}:
            return pl.Series(name, cells)
    return pl.Series(name, [None if v is None else word(v) for v in cells], dtype=pl.String)


def _column_of_lists(name: str, cells: list[Any]) -> pl.Series:
    """Lists of plain values; anything deeper is left out when kinds are inferred."""
    flat = all(
        v is None
        or (
            isinstance(v, (list, tuple, set, np.ndarray))
            and all(isinstance(i, (str, int, float, np.generic)) for i in v)
        )
        for v in cells
    )
    if not flat:
        return pl.Series(name, [[[0]]] * len(cells))
    items = [None if v is None else [word(i) for i in v] for v in cells]
    return pl.Series(name, items, dtype=pl.List(pl.String))


def _plain(value: Any) -> Any:
    """A Python value; every spelling of "not there" is None."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, float) and math.isnan(value):
        return None
    return value


def word(value: Any) -> str:
    """A value as text that UTF-8 can hold."""
    # a lone surrogate, legal in JSON, has no UTF-8 form
    try:
        return str(value).encode("utf-8", errors="replace").decode("utf-8")
    except ValueError:  # a whole number too long to print
        return type(value).__name__


def records(rows: list[Any]) -> pl.DataFrame:
    """A frame from a list of mappings; a key that a row lacks is missing there."""
    names: dict[str, None] = {}
    for row in rows:
        names.update(dict.fromkeys(row))
    unique, _ = unique_names([word(k) for k in names])
    columns = zip(unique, names, strict=True)
    return pl.DataFrame([column_of(out, [row.get(key) for row in rows]) for out, key in columns])
