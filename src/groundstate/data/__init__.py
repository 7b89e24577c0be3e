"""Tables: reading, schema, preparation learned from training rows, built-in data, streams."""

from __future__ import annotations

from groundstate.data.builtin import available, load
from groundstate.data.kinds import MISSING
from groundstate.data.reader import read
from groundstate.data.schema import Column, Kind, Schema, Task
from groundstate.data.sparse import SparseTable
from groundstate.data.table import Table

__all__ = [
    "MISSING",
    "Column",
    "Kind",
    "Schema",
    "SparseTable",
    "Table",
    "Task",
    "available",
    "load",
    "read",
]
