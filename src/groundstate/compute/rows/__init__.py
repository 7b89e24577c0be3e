"""Rows of any kind: a tensor's first axis, or a container whose rows differ in size."""

from groundstate.compute.rows.base import (
    RowContainer,
    Rows,
    bad_row,
    check_same_length,
    common_count,
    count,
    describe,
    elements,
    floating,
    floating_dtype,
    hash_together,
    hashes,
    home,
    in_memory,
    join,
    part,
    real_dtype,
    row_index,
    split,
    take,
    tensors,
    to_device,
)
from groundstate.compute.rows.files import ArrayReader, Files, Reader
from groundstate.compute.rows.graphs import Graphs
from groundstate.compute.rows.ragged import Ragged
from groundstate.compute.rows.record import Columns, Record
from groundstate.compute.rows.segments import mean_items, sum_items
from groundstate.compute.rows.texts import Texts, Tokens
from groundstate.compute.rows.trajectories import Trajectories

__all__ = [
    "ArrayReader",
    "Columns",
    "Files",
    "Graphs",
    "Ragged",
    "Reader",
    "Record",
    "RowContainer",
    "Rows",
    "Texts",
    "Tokens",
    "Trajectories",
    "bad_row",
    "check_same_length",
    "common_count",
    "count",
    "describe",
    "elements",
    "floating",
    "floating_dtype",
    "hash_together",
    "hashes",
    "home",
    "in_memory",
    "join",
    "mean_items",
    "part",
    "real_dtype",
    "row_index",
    "split",
    "sum_items",
    "take",
    "tensors",
    "to_device",
]
