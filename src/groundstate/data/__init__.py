"""Tables: reading, schema, preparation learned from training rows, built-in data, streams."""

from __future__ import annotations

from groundstate.data.builtin import available, load
from groundstate.data.findings import Finding, audit
from groundstate.data.kinds import MISSING
from groundstate.data.mnist1d import mnist1d
from groundstate.data.preparation import Preparation
from groundstate.data.reader import read
from groundstate.data.schema import Column, Kind, Schema, Task
from groundstate.data.sparse import SparseTable
from groundstate.data.streams import stream
from groundstate.data.table import Table

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
