"""Reading rows of any kind; tables with schema and preparation, built-in data, streams."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from groundstate.data.builtin.load import available, load
from groundstate.data.builtin.mnist1d import mnist1d
from groundstate.data.preparation.preparation import Preparation
from groundstate.data.streams.stream import stream
from groundstate.data.tables.findings import Finding, audit
from groundstate.data.tables.kinds import MISSING
from groundstate.data.tables.reader import read
from groundstate.data.tables.schema import Column, Kind, Schema, Task
from groundstate.data.tables.sparse import SparseTable
from groundstate.data.tables.table import Table

if TYPE_CHECKING:
    from groundstate.data.images.read import ImageReader, labelled_images
    from groundstate.data.rows import KINDS, Taken, rows_of
    from groundstate.data.streams.datasets import Rereadable
    from groundstate.data.text.tokenizer import Tokenizer

# rows that are no tables need torch, which reading a table does not
_LATER = {
    "KINDS": "rows",
    "ImageReader": "images.read",
    "Rereadable": "streams.datasets",
    "Taken": "rows",
    "Tokenizer": "text.tokenizer",
    "labelled_images": "images.read",
    "rows_of": "rows",
}

__all__ = [
    "KINDS",
    "ImageReader",
    "Rereadable",
    "Taken",
    "Tokenizer",
    "labelled_images",
    "rows_of",
    "MISSING",
    "Column",
    "Finding",
    "Kind",
    "Preparation",
    "Schema",
    "SparseTable",
    "Table",
    "Task",
    "audit",
    "available",
    "load",
    "mnist1d",
    "read",
    "stream",
]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
    globals()[name] = value  # later reads do not come through here
    return value
