"""What a table holds: one `Column` per column, and the `Schema` that keeps them in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Literal, get_args

from groundstate.data.messages import did_you_mean, listing
from groundstate.errors import DataError

Kind = Literal["numeric", "category", "date", "list", "text", "id", "constant"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Task = Literal["classification", "regression"]

MAX_CLASSES = 20
"""A whole-number target with at most this many values, repeated, is read as classes."""

MAX_LISTED = 1000
"""A category column with more levels than this keeps their number, not their names."""


@dataclass(frozen=True)
class Column:
    """One column: what it is called, what it holds and how it was written.

    Parameters
    ----------
    name
        Name, unique in the table.
    kind
        ``numeric``, ``category``, ``date``, ``list``, ``text``, ``id`` or ``constant``.
    dtype
        The type the values came with (for text files, the type they parse as).
    integer
        Whether every value present is a whole number.
    n_rows
        Number of rows that were looked at.
    missing
        Number of them without a value.
    n_unique
        Number of distinct values present.
    categories
        The distinct values of a category column, sorted; empty above ``MAX_LISTED``.
    markers
        Spellings that were found in the column and read as missing.
    form
        How values are written: ``""`` plain, ``"comma"``, ``"points"``, ``"thousands"``, ``"percent"``,
        ``"currency"``, ``"magnitude"`` or ``"unit:kg"`` for numbers; the ``strptime`` form of a
        date; ``"email"``, ``"url"`` or ``"ip"`` for labels that are a part of an address; what
        parts the items of a list.
    given
        Whether the user fixed the kind.

    Examples
    --------
    >>> Column("age", "numeric", dtype="Int64", integer=True, missing=2, n_unique=71)
    Column(age: numeric, 71 values, 2 missing)
    """

    name: str
    kind: Kind
    dtype: str = "Float64"
    integer: bool = False
    n_rows: int = 0
    missing: int = 0
    n_unique: int = 0
    categories: tuple[str, ...] = ()
    markers: tuple[str, ...] = ()
    form: str = ""
    given: bool = False

    def to_dict(self) -> dict[str, Any]:
        """The column as plain JSON values."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Column:
        """Rebuild a column from `to_dict`; an unknown kind or a missing name is a `DataError`."""
        known = {field.name for field in fields(cls)}
        if not isinstance(values, Mapping) or not isinstance(values.get("name"), str):
            raise DataError(f"a schema column needs a name, got {values!r}")
        if values.get("kind") not in KINDS:
            raise DataError(
                f"column {values['name']!r} has the kind {values.get('kind')!r}; "
                f"kinds are {listing(KINDS)}"
            )
        kept: dict[str, Any] = {k: v for k, v in values.items() if k in known}
        for name in ("categories", "markers"):
            kept[name] = tuple(str(v) for v in kept.get(name, ()))
        return cls(**kept)

    def __repr__(self) -> str:
        missing = f", {self.missing} missing" if self.missing else ""
        values = "1 value" if self.n_unique == 1 else f"{self.n_unique} values"
        return f"Column({self.name}: {self.kind}, {values}{missing})"


@dataclass(frozen=True, repr=False)
class Schema:
    """The columns of a table in order, and which of them is the target.

    Parameters
    ----------
    columns
        One `Column` per column; names are unique.
    target
        Name of the column to predict, or None.

    Examples
    --------
    >>> s = Schema((Column("x", "numeric"), Column("y", "category")), target="y")
    >>> s.features, s.task
    (('x',), 'classification')
    >>> Schema.from_dict(s.to_dict()) == s
    True
    """

    columns: tuple[Column, ...]
    target: str | None = None

    def __post_init__(self) -> None:
        names = [column.name for column in self.columns]
        if len(set(names)) < len(names):
            twice = sorted({name for name in names if names.count(name) > 1})
            raise DataError(f"a schema needs unique column names, {listing(twice)} came twice")
        if self.target is not None and self.target not in names:
            raise DataError(unknown_column(self.target, names))

    @cached_property
    def _by_name(self) -> dict[str, Column]:
        return {column.name: column for column in self.columns}

    @property
    def names(self) -> tuple[str, ...]:
        """All column names, in order."""
        return tuple(column.name for column in self.columns)

    @property
    def features(self) -> tuple[str, ...]:
        """All column names but the target's."""
        return tuple(name for name in self.names if name != self.target)

    @property
    def task(self) -> Task | None:
        """What predicting the target is: strings and few whole numbers are classes."""
        if self.target is None:
            return None
        column = self[self.target]
        if column.kind != "numeric":
            return "regression" if column.kind == "date" else "classification"
        repeated = 2 * column.n_unique <= column.n_rows - column.missing
        few = column.integer and column.n_unique <= MAX_CLASSES and repeated
        return "classification" if few and not column.given else "regression"

    def of_kind(self, *kinds: Kind) -> tuple[str, ...]:
        """Names of the features of the given kinds."""
        return tuple(c.name for c in self.columns if c.kind in kinds and c.name != self.target)

    def with_target(self, target: str | None) -> Schema:
        """The same columns with another target."""
        return replace(self, target=target)

    def select(self, names: Iterable[str]) -> Schema:
        """Only the named columns, in the given order."""
        kept = tuple(self[name] for name in names)
        target = self.target if any(c.name == self.target for c in kept) else None
        return Schema(kept, target)

    def to_dict(self) -> dict[str, Any]:
        """The schema as plain JSON values."""
        return {"columns": [c.to_dict() for c in self.columns], "target": self.target}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Schema:
        """Rebuild a schema from `to_dict`."""
        if not isinstance(values, Mapping) or not isinstance(values.get("columns"), list):
            raise DataError("a stored schema is a mapping with the keys 'columns' and 'target'")
        columns = tuple(Column.from_dict(c) for c in values["columns"])
        return cls(columns, values.get("target"))

    to_state, from_state = to_dict, from_dict

    def __getitem__(self, name: str) -> Column:
        if name not in self._by_name:
            raise DataError(unknown_column(name, self.names))
        return self._by_name[name]

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def __repr__(self) -> str:
        return f"Schema({len(self)} columns, target={self.target!r})\n{self.summary()}"

    def summary(self, limit: int = 40) -> str:
        """A readable table of the columns: name, kind, values, missing, what they look like."""
        rows = [("column", "kind", "type", "distinct", "missing", "")]
        for c in self.columns[:limit]:
            remarks = [", ".join(c.categories[:4]) + (", …" if len(c.categories) > 4 else "")]
            remarks += [f"written as {c.form}"] if c.form else []
            remarks += ["missing: " + " ".join(repr(m) for m in c.markers)] if c.markers else []
            remarks += ["target"] if c.name == self.target else []
            remark = "; ".join(r for r in remarks if r)
            rows.append((c.name, c.kind, c.dtype, str(c.n_unique), str(c.missing), remark))
        widths = [min(32, max(len(row[i]) for row in rows)) for i in range(5)]
        lines = []
        for row in rows:
            left = [cell[:32].ljust(w) for cell, w in zip(row[:3], widths[:3], strict=True)]
            right = [cell.rjust(w) for cell, w in zip(row[3:5], widths[3:5], strict=True)]
            lines.append("  ".join([*left, *right, row[5][:60]]).rstrip())
        if len(self) > limit:
            lines.append(f"… and {len(self) - limit} more columns")
        return "\n".join(lines)


def unknown_column(name: object, names: Iterable[str]) -> str:
    """The sentence for a column that is not there."""
    known = list(names)
    guess = did_you_mean(str(name), known)
    return f"there is no column {name!r}{guess}; the columns are {listing(known)}"
