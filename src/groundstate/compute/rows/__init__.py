"""Rows of any kind: a tensor's first axis, or a container whose rows differ in size."""

from groundstate.compute.rows.base import (
    RowContainer,
    Rows,
    check_same_length,
    count,
    describe,
    hashes,
    join,
    take,
    to_device,
)

__all__ = [
    "RowContainer",
    "Rows",
    "check_same_length",
    "count",
    "describe",
    "hashes",
    "join",
    "take",
    "to_device",
]
