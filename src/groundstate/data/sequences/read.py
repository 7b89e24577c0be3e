"""What people have as sequences: lists of arrays, arrays with lengths, long tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from groundstate.compute.rows import Ragged, Rows
from groundstate.compute.rows.ragged import offsets_of
from groundstate.data.reading import RowReader, as_list, is_array, numbers, real
from groundstate.data.sequences.long import is_long, read_long
from groundstate.errors import DataError


class SequenceRows(RowReader):
    """Rows ``(length, d)`` or ``(length,)``, of which each may have a length of its own."""

    kind = "sequence"
    accepts = (
        "a list of arrays (length, d), an array (n, length, d), a pair (array, lengths), a long table "
        "(columns id, time, items, target) or its path"
    )

    def takes(self, value: Any) -> bool:
        if type(value) is Ragged or is_array(value, 3):
            return True
        rows = as_list(value)
        if not rows or not all(numbers(r) for r in rows[:100]):
            return False
        return len({len(r) for r in rows}) > 1

    def read(self, value: Any) -> Rows:
        if isinstance(value, Ragged):
            found = value
        elif is_long(value):
            found = read_long(value).rows
        elif _is_padded(value):
            found = _cut(*value)
        elif is_array(value, 2, 3):
            array = real(value)
            n, length = array.shape[:2]
            offsets = torch.arange(n + 1, device=array.device) * length
            found = Ragged(array.reshape(n * length, *array.shape[2:]), offsets)
        else:
            rows = as_list(value)
            if rows is None or not all(numbers(r) for r in rows):
                raise DataError(f"got {type(value).__name__}, expected {self.accepts}")
            arrays = [real(r) for r in rows]
            double = any(a.dtype == torch.float64 for a in arrays)
            found = Ragged.of(arrays, torch.float64 if double else torch.float32)
        if found.values.ndim == 1 and found.values.is_floating_point():
            found = found.like(found.values[:, None])
        return found

    def labelled(self, value: Any) -> tuple[Rows, Any] | None:
        if not is_long(value):
            return None
        found = read_long(value)
        return None if found.y is None else (found.rows, found.y)


def _is_padded(value: Any) -> bool:
    """Whether a value is a pair of an array ``(n, T, d)`` and the lengths of its rows."""
    return (
        isinstance(value, tuple)
        and len(value) == 2
        and is_array(value[0], 3)
        and np.ndim(value[1]) == 1
        and len(value[1]) == len(value[0])
    )


def _cut(array: Any, lengths: Any) -> Ragged:
    x, n = real(array), torch.as_tensor(np.asarray(lengths))
    if n.is_floating_point() or bool((n < 0).any()) or bool((n > x.shape[1]).any()):
        raise DataError(f"lengths must be whole numbers of 0 to {x.shape[1]}, got {n.tolist()[:5]}")
    n = n.to(x.device, torch.int64)
    mask = torch.arange(x.shape[1], device=x.device) < n[:, None]
    return Ragged(x[mask], offsets_of(n))
