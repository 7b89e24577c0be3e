r"""Columns that say again what another one says: a function of it, :math:`x_b = f(x_a)` in every training row.

A generator that learned both would break the tie in some rows, such as a class 1 that is called "Third". It
learns a alone, and b follows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.models.generative.tables.columns import LevelColumn

EACH = 10  # rows for each value of the other column, so that a tie is no accident


@dataclass(frozen=True, eq=False)
class DerivedColumn:
    """A column of levels that another one decides.

    Attributes
    ----------
    column : its levels
    source : name of the column that decides
    given, values : levels of that column, and for each of them the value of this one
    """

    column: LevelColumn
    source: str
    given: list[Any]
    values: list[Any]

    @property
    def name(self) -> str:
        return self.column.name

    def of(self, levels: Sequence[Any]) -> list[Any]:
        """Values for levels of the source; None for one that was not seen."""
        table = dict(zip(self.given, self.values, strict=True))
        return [table.get(level) for level in levels]

    def agrees(self, levels: Sequence[Any], own: Sequence[Any]) -> NDArray[np.bool_]:
        """Where the values are those that the levels of the source decide, ``(n,)``."""
        return np.array([a == b for a, b in zip(self.of(levels), own, strict=True)], bool)


def derived_columns(
    columns: Sequence[Any], values: dict[str, list[Any]], weight: NDArray[np.float64]
) -> dict[str, DerivedColumn]:
    """Columns that an earlier one, or else a later one, decides, by name.

    Parameters
    ----------
    columns : as they were learned
    values : of the columns of levels, None where one is missing
    weight : of the rows
    """
    there = np.flatnonzero(weight > 0)
    levels = [c for c in columns if isinstance(c, LevelColumn)]
    found: dict[str, DerivedColumn] = {}
    for column in reversed(levels):
        own = values[column.name]
        for other in levels:
            if other.name == column.name or other.name in found:
                continue
            # a column that two others are made from stays
            if any(d.source == column.name for d in found.values()):
                break
            if len(other.levels) * EACH > weight.sum() or other.rest or len(column.levels) < 2:
                continue
            table: dict[Any, Any] = {}
            theirs = values[other.name]
            if all(table.setdefault(theirs[i], own[i]) == own[i] for i in there):
                found[column.name] = DerivedColumn(
                    column, other.name, list(table), list(table.values())
                )
                break
    return {c.name: found[c.name] for c in levels if c.name in found}
