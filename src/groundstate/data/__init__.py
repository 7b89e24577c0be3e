"""Tables: reading, schema, preparation learned from training rows, built-in data, streams."""

from __future__ import annotations

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

__all__ = [
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
