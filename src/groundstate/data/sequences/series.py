"""What people have as time series: a column of numbers, a table with time going down, a list of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from groundstate.compute.rows import Ragged, bad_row
from groundstate.data.sequences.long import read_long
from groundstate.errors import DataError, ShapeError


@dataclass(frozen=True, repr=False)
class Series:
    """One or several series.

    Attributes
    ----------
    rows : Ragged, items ``(F,)``
    single : one series was given, so that answers have no leading axis
    flat : its items were numbers, so that answers have no last axis
    names : of the columns, where they have some
    device : of the tensor that was given, else None
    """

    rows: Ragged
    single: bool
    flat: bool
    names: tuple[str, ...] | None = None
    device: torch.device | None = None

    def __repr__(self) -> str:
        return self.rows.describe()


def series_of(value: Any) -> Series:
    """Series of whatever is given.

    ==============================  ====================================================
    ``(T,)`` array, list, column    one series of numbers
    ``(T, F)`` array or frame       one series of F columns, time going down
    ``(n, T, F)`` array             n series of equal length
    list of arrays, ``Ragged``      series of any length
    path                            long table: columns id and time where there are, and the values
    ==============================  ====================================================

    Examples
    --------
    >>> series_of([1.0, 2.0, 4.0]).rows
    1 sequences of 3 items of shape (1,), float64
    >>> series_of([[1.0, 2.0], [3.0, 4.0, 5.0]])
    2 sequences of 2 to 3 items of shape (1,), float64
    """
    if isinstance(value, Series):
        return value
    if isinstance(value, str | Path):
        table = read_long(value, target=None)
        return _checked(Series(table.rows, table.ids is None, len(table.names) == 1, table.names))
    if isinstance(value, Ragged):
        values = value.values if value.values.is_floating_point() else value.values.double()
        flat = values.ndim == 1
        found = Series(value.like(values[:, None] if flat else values), False, flat)
    elif isinstance(value, list | tuple) and value and not _is_number(value[0]):
        parts = [_array(one) for one in value]
        flat = all(part.ndim == 1 for part in parts)
        columns = [part[:, None] if part.ndim == 1 else part for part in parts]
        wide = {part.shape[1:] for part in columns}
        if len(wide) > 1 or any(part.ndim != 2 for part in columns):
            shapes = sorted({tuple(p.shape) for p in parts})[:4]
            raise DataError(f"series need the same columns, (T,) or (T, F) each; got {shapes}")
        single_type = torch.float32 if all(p.dtype == torch.float32 for p in columns) else None
        found = Series(Ragged.of(columns, single_type or torch.float64), False, flat)
    else:
        found = _one(value)
    return _checked(found)


def _checked(found: Series) -> Series:
    if found.rows.values.ndim != 2 or not found.rows.values.shape[1]:
        raise ShapeError(f"a series has items (F,), got {found.rows.item_shape}")
    row = bad_row(found.rows)
    if row is not None:
        where = "" if found.single else f" {row}"
        raise DataError(
            f"series{where} holds NaN or infinity; fill gaps first, for example by interpolation"
        )
    return found


def _one(value: Any) -> Series:
    names = getattr(value, "columns", None)
    array = _array(value.to_numpy() if hasattr(value, "to_numpy") else value)
    device = array.device if isinstance(value, Tensor) else None
    if array.ndim not in (1, 2, 3):
        raise DataError(
            f"got shape {tuple(array.shape)}; expected (T,), (T, F), (n, T, F) or a list of series"
        )
    if array.ndim == 3:
        n, length, wide = array.shape
        offsets = torch.arange(n + 1, device=array.device) * length
        return Series(Ragged(array.reshape(n * length, wide), offsets), False, False, None, device)
    offsets = torch.tensor([0, len(array)], device=array.device)
    columns = array[:, None] if array.ndim == 1 else array
    named = None if names is None else tuple(str(name) for name in names)
    return Series(Ragged(columns, offsets), True, array.ndim == 1, named, device)


def _array(value: Any) -> Tensor:
    if isinstance(value, Tensor):
        found = value.detach()
    else:
        value = value.to_numpy() if hasattr(value, "to_numpy") else value
        array = np.asarray(value)
        if array.dtype.kind not in "fiub":
            raise DataError(
                f"a series holds numbers, got {array.dtype} values such as "
                f"{array.reshape(-1)[:1].tolist()}"
            )
        found = torch.from_numpy(np.array(array))
    return found if found.dtype in (torch.float32, torch.float64) else found.double()


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) or (
        isinstance(value, Tensor | np.ndarray) and value.ndim == 0
    )
