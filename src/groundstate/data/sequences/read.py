"""What people have as sequences: lists of arrays of different length, arrays ``(n, T, d)``."""

from __future__ import annotations

from typing import Any

import torch

from groundstate.compute.rows import Ragged, Rows
from groundstate.data.reading import RowReader, as_list, is_array, numbers, real
from groundstate.errors import DataError


class SequenceRows(RowReader):
    """Rows ``(length, d)`` or ``(length,)``, of which each may have a length of its own."""

    kind = "sequence"
    accepts = "a list of arrays (length, d), or an array (n, length, d)"

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
