"""`Table`: validated columns that do not change, with a schema and a target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundstate.data.messages import count, listing
from groundstate.data.tables.schema import Column, Schema, Task, unknown_column
from groundstate.errors import DataError


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Columns with names and kinds; every operation gives a new table.

    Parameters
    ----------
    frame
        The values in canonical form (whole or real numbers, dates, strings; null is missing).
    schema
        One entry per column, and the target.
    notes
        What was decided while reading, one sentence each.
    name, description
        What the table is called and what it is about.
    set_aside
        Rows whose target is missing: not in `frame`, kept for prediction.

    Examples
    --------
    >>> from groundstate.data import read
    >>> t = read({"height": [1.6, 1.8, 1.7], "sex": ["f", "m", "f"]}, target="sex")
    >>> t.task, t.y.tolist(), t.features.columns
    ('classification', ['f', 'm', 'f'], ('height',))
    """

    frame: pl.DataFrame
    schema: Schema
    notes: tuple[str, ...] = ()
    name: str = "table"
    description: str = ""
    set_aside: pl.DataFrame | None = field(default=None)

    def __post_init__(self) -> None:
        if tuple(self.frame.columns) != self.schema.names:
            raise DataError(
                f"the frame has the columns {listing(self.frame.columns)} but the schema says "
                f"{listing(self.schema.names)}"
            )

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.frame.height

    @property
    def n_columns(self) -> int:
        """Number of columns, the target included."""
        return self.frame.width

    @property
    def columns(self) -> tuple[str, ...]:
        """All column names."""
        return self.schema.names

    @property
    def target(self) -> str | None:
        """Name of the target, or None."""
        return self.schema.target

    @property
    def task(self) -> Task | None:
        """``classification`` or ``regression``, by the target."""
        return self.schema.task

    @property
    def features(self) -> Table:
        """The table without its target."""
        return self.select(self.schema.features)

    @property
    def y(self) -> NDArray[Any]:
        """Target values: whole numbers, real numbers, booleans or strings."""
        if self.target is None:
            raise DataError(
                f"{self.name!r} has no target; choose one with "
                f"table.with_target(name) out of {listing(self.columns)}"
            )
        values = self.values(self.target)
        if values.dtype.kind == "M":  # days since 1970
            return values.astype("datetime64[us]").astype(np.float64) / 86_400e6
        return values

    def values(self, name: str) -> NDArray[Any]:
        """One column as a NumPy array; dates as ``datetime64``, missing strings as None."""
        column, values = self.schema[name], self.frame[name]
        if values.dtype == pl.String:
            if values.null_count():
                return values.to_numpy().astype(object)
            if column.dtype == "Boolean" and set(column.categories) <= {"True", "False"}:
                return np.asarray((values == "True").to_numpy(), dtype=bool)
            return np.array(values.to_list(), dtype=str)
        if values.dtype == pl.Float64 and column.integer and not values.null_count():
            whole = values.cast(pl.Int64, strict=False)
            classes = self.task == "classification" and name == self.target
            return (whole if classes else values).to_numpy()
        return values.to_numpy()

    def column(self, name: str) -> Column:
        """The schema entry of one column."""
        return self.schema[name]

    def select(self, names: Sequence[str]) -> Table:
        """Only the named columns."""
        for name in names:
            if name not in self.schema:
                raise DataError(unknown_column(name, self.columns))
        names = list(names)
        return replace(
            self, frame=self.frame.select(names), schema=self.schema.select(names), set_aside=None
        )

    def take(self, rows: NDArray[Any] | Sequence[int]) -> Table:
        """The rows at the given positions (or where a boolean mask holds); the schema stays."""
        index = np.asarray(rows)
        if index.dtype == bool:
            if len(index) != self.n_rows:
                raise DataError(f"the mask has {len(index)} entries for {self.n_rows} rows")
            index = np.flatnonzero(index)
        if index.size == 0:
            index = index.astype(np.int64)
        if index.size and (index.min() < -self.n_rows or index.max() >= self.n_rows):
            raise DataError(f"row numbers must lie in 0..{self.n_rows - 1}")
        return replace(self, frame=self.frame[index], set_aside=None)

    def head(self, n: int = 5) -> Table:
        """The first `n` rows."""
        return replace(self, frame=self.frame.head(n), set_aside=None)

    def with_target(self, target: str | int | None) -> Table:
        """The same table with another target; rows without a value there are set aside."""
        from groundstate.data.tables.target import choose_target

        return choose_target(self, target)

    def matrix(self) -> NDArray[np.float64]:
        """The features as numbers (n, d), missing as NaN; a `DataError` if some are not numbers."""
        features = self.features
        words = [c.name for c in features.schema if features.frame[c.name].dtype == pl.String]
        if words:
            raise DataError(
                f"columns {listing(words)} of {self.name!r} are not numbers; "
                "use data.Preparation to turn them into numbers"
            )
        physical = features.frame.select(pl.all().to_physical().cast(pl.Float64))
        return np.asarray(physical.to_numpy(), dtype=np.float64).reshape(self.n_rows, -1)

    def equals(self, other: Table) -> bool:
        """Whether values and schema are equal."""
        return self.schema == other.schema and self.frame.equals(other.frame)

    def __len__(self) -> int:
        return self.n_rows

    def __repr__(self) -> str:
        return f"Table({self.name!r}: {count(self.n_rows, 'row')}, target={self.target!r})"

    def summary(self) -> str:
        """Size, target, columns and notes, for reading."""
        head = f"{self.name}: {count(self.n_rows, 'row')} × {count(self.n_columns, 'column')}"
        if self.target is not None:
            head += f", {self.task} of {self.target!r}"
        parts = [head, self.description, self.schema.summary()]
        parts += ["Notes:", *(f"- {note}" for note in self.notes)] if self.notes else []
        return "\n".join(part for part in parts if part)
