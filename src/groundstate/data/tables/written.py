"""The cells of a source as they were written, before anything is decided about its columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from groundstate.data.tables.build import build
from groundstate.data.tables.guard import guarded
from groundstate.data.tables.kinds import MISSING
from groundstate.data.tables.schema import Schema
from groundstate.data.tables.table import Table
from groundstate.errors import DataError


@dataclass(frozen=True, eq=False)
class Written:
    """Columns as they came, strings where the source is text.

    Rows that are asked about a known table must be read by its schema from here: read on their
    own first, few rows take another form of date, unit or code than the whole table has.

    Parameters
    ----------
    frame
        The cells.
    name
        What the source is called.
    notes
        What was decided about the file.
    separator
        The field separator, which decides what ``1,234`` means.
    missing
        Spellings that stand for no value.
    target
        What is predicted, where the source itself says so.
    known
        The table that it is, where it was one before.

    Examples
    --------
    >>> year = Written(pl.DataFrame({"day": ["12/31/2021", "01/02/2021"]})).table()
    >>> new = Written(pl.DataFrame({"day": ["01/02/2021"]}))
    >>> str(new.table(schema=year.schema).frame["day"][0]), str(new.table().frame["day"][0])
    ('2021-01-02 00:00:00', '2021-02-01 00:00:00')
    """

    frame: pl.DataFrame
    name: str = "table"
    notes: tuple[str, ...] = ()
    separator: str = ","
    missing: tuple[str, ...] = MISSING
    target: str | None = None
    known: Table | None = None

    def table(
        self,
        target: str | int | None = None,
        schema: Schema | Mapping[str, str] | None = None,
        *,
        gaps: bool = False,
    ) -> Table:
        """The table; with gaps, columns of a whole schema that the source lacks are empty."""
        if self.known is not None and target is None and schema is None:
            return self.known
        target = self.target if target is None else target
        if self.known is not None and target is None and isinstance(schema, Mapping):
            target = self.known.target
        with guarded() as attempt:
            return build(
                self.frame, self.name, self.notes, target, schema, self.missing, self.separator,
                gaps=gaps,
            )  # fmt: skip
        raise DataError(f"the table cannot be read: {attempt.problem}")

    def select(self, names: Sequence[str]) -> Written:
        """Only the named columns."""
        known = None if self.known is None else self.known.select(names)
        return replace(self, frame=self.frame.select(list(names)), target=None, known=known)
