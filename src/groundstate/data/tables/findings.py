"""`audit`: what to know about a table before learning from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

from groundstate.data.messages import count, listing
from groundstate.data.reader import read
from groundstate.data.tables.kinds import names_an_id
from groundstate.data.tables.leaks import single_column_scores
from groundstate.data.tables.match import plain_label
from groundstate.data.tables.schema import Column
from groundstate.data.tables.table import Table

Severity = Literal["info", "warning", "serious"]
_ORDER = {"serious": 0, "warning": 1, "info": 2}
_SENTINELS = frozenset({-1.0, -9.0, -99.0, -999.0, -9999.0, 99.0, 999.0, 9999.0, 99999.0, 999999.0})
_TINY_CLASS = 5
_MANY_LEVELS = 50


@dataclass(frozen=True)
class Finding:
    """One thing found: a plain sentence, its number, and how much it matters.

    Parameters
    ----------
    code
        A short fixed name such as ``missing`` or ``leak``.
    severity
        ``info``, ``warning`` or ``serious``.
    sentence
        What was found and what follows from it.
    value
        The number in the sentence (a share, a count, a score).
    columns
        The columns concerned.
    """

    code: str
    severity: Severity
    sentence: str
    value: float
    columns: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The finding as plain JSON values."""
        return {
            "code": self.code,
            "severity": self.severity,
            "sentence": self.sentence,
            "value": self.value,
            "columns": list(self.columns),
        }


def audit(table: Any, target: str | int | None = None) -> list[Finding]:
    """Look for what commonly spoils a result, most serious first.

    Parameters
    ----------
    table
        A `Table` or anything `read` takes.
    target
        The column to predict; the table's own by default.

    Examples
    --------
    >>> rows = {"a": [1, 2, 3, 4] * 20, "b": [7] * 80, "y": ["u", "v", "u", "v"] * 20}
    >>> for finding in audit(rows, "y"):
    ...     print(finding.severity, finding.code, finding.columns)
    serious leak ('a',)
    warning duplicate_rows ()
    info constant ('b',)
    """
    chosen = read(table, target=target)
    found = [*_columns(chosen), *_rows(chosen)]
    if chosen.target is not None:
        found += [*_target(chosen), *_leaks(chosen)]
    return sorted(found, key=lambda finding: (_ORDER[finding.severity], finding.code != "leak"))


def _columns(table: Table) -> Iterator[Finding]:
    n = table.n_rows
    for column in table.schema:
        if column.name == table.target:
            continue
        share = table.frame[column.name].null_count() / n
        if share and column.kind != "constant":
            severity: Severity = "serious" if share > 0.5 else "warning" if share > 0.2 else "info"
            yield Finding(
                "missing",
                severity,
                f"{share:.1%} of {column.name!r} is missing; it is filled with the median or marked, "
                "both learned from training rows"
                if column.kind == "numeric"
                else f"{share:.1%} of {column.name!r} is missing, which is a value of its own",
                share,
                (column.name,),
            )
        yield from _one_column(table, column)
    for column in table.schema:
        yield from _spellings(column)
    constant = table.schema.of_kind("constant")
    empty = tuple(name for name in constant if table.frame[name].null_count() == n)
    if empty:
        yield Finding(
            "empty",
            "info",
            f"{listing(empty)} {'holds' if len(empty) == 1 else 'hold'} no value at all; left out",
            float(len(empty)),
            empty,
        )
    constant = tuple(name for name in constant if name not in empty)
    if constant:
        yield Finding(
            "constant",
            "info",
            f"{listing(constant)} never {'changes' if len(constant) == 1 else 'change'} and "
            "cannot help; left out",
            float(len(constant)),
            constant,
        )
    identifiers = table.schema.of_kind("id")
    if identifiers:
        yield Finding(
            "id",
            "info",
            f"{listing(identifiers)} only {'names' if len(identifiers) == 1 else 'name'} the rows; "
            "left out",
            float(len(identifiers)),
            identifiers,
        )
    for group in _equal_columns(table):
        yield Finding(
            "duplicate_columns",
            "warning",
            f"columns {listing(group)} hold the same values; one of them is enough",
            float(len(group)),
            group,
        )


def _one_column(table: Table, column: Column) -> Iterator[Finding]:
    values = table.frame[column.name]
    n, name = table.n_rows, (column.name,)
    if column.kind == "category" and column.n_unique > _MANY_LEVELS:
        yield Finding(
            "many_levels",
            "info",
            f"{column.name!r} has {count(column.n_unique, 'level')}; the rarest share one column",
            float(column.n_unique),
            name,
        )
    repeats = column.kind in ("numeric", "category") and n / 20 < column.n_unique < n
    if n >= 20 and repeats and names_an_id(column.name):
        yield Finding(
            "repeated_id",
            "warning",
            f"{column.name!r} looks like an identifier that repeats ({column.n_unique:,} of "
            f"{n:,}); rows that share it should stay on one side of a split",
            float(column.n_unique),
            name,
        )
    if column.kind != "numeric":
        return
    if column.integer and column.n_unique == n and n >= 20:
        steps = values.diff().drop_nulls()
        if bool((steps == 1).all()):
            yield Finding(
                "row_number",
                "warning",
                f"{column.name!r} counts the rows; if their order carries the answer, it leaks; "
                f"pass schema={{{column.name!r}: 'id'}} to leave it out",
                float(n),
                name,
            )
    extreme = _extreme(values)
    if extreme is not None:
        yield Finding(
            "extreme",
            "warning",
            f"{column.name!r} holds {extreme:g}, more than a million times further out than all "
            "other values lie apart; check its unit, or take the row out",
            extreme,
            name,
        )
    sentinel = _sentinel(values)
    if sentinel is not None:
        value, times = sentinel
        yield Finding(
            "sentinel",
            "warning",
            f"{column.name!r} holds {value:g} in {count(times, 'row')}, far from all other values; "
            f"if it means missing, pass missing=(..., '{value:g}')",
            value,
            name,
        )


def _spellings(column: Column) -> Iterator[Finding]:
    """Labels that are one by all appearance; the target's would be classes of their own."""
    written: dict[str, list[str]] = {}
    for label in column.categories:
        written.setdefault(plain_label(label), []).append(label)
    alike = [group for plain, group in written.items() if plain and len(group) > 1]
    if alike:
        pairs = "; ".join(listing(group, limit=4) for group in alike[:4])
        yield Finding(
            "spelling",
            "warning",
            f"labels of {column.name!r} differ in spelling only and count as different: {pairs}"
            f"{'; …' if len(alike) > 4 else ''}; write them alike",
            float(len(alike)),
            (column.name,),
        )


def _sentinel(values: pl.Series) -> tuple[float, int] | None:
    """A round code such as -999 at the far end of a column, and how often it occurs."""
    filled = values.drop_nulls()
    for edge in (filled.min(), filled.max()):
        if not isinstance(edge, (int, float)) or float(edge) not in _SENTINELS:
            continue
        rest = filled.filter(filled != edge)
        times = len(filled) - len(rest)
        if times < 2 or len(rest) < 5:
            continue
        low, high = float(rest.min()), float(rest.max())  # type: ignore[arg-type]
        gap = low - edge if edge < low else edge - high
        if gap > 2 * (high - low) and gap > 5:
            return float(edge), times
    return None


def _extreme(values: pl.Series) -> float | None:
    """A value so far out that the scale of the column is its scale and nobody else's."""
    filled = values.drop_nulls().cast(pl.Float64)
    for edge in (filled.min(), filled.max()):
        rest = filled.filter(filled != edge)
        if not isinstance(edge, float) or len(rest) < max(5, len(filled) - 2):
            continue
        low, high = float(rest.min()), float(rest.max())  # type: ignore[arg-type]
        if high > low and max(low - edge, edge - high) / 1e6 > high - low:
            return edge
    return None


def _equal_columns(table: Table) -> list[tuple[str, ...]]:
    groups: dict[tuple[str, int, int], list[str]] = {}
    for column in table.schema:
        if column.kind != "constant":
            values = table.frame[column.name]
            fingerprint = int(values.hash(seed=1).head(1000).to_numpy().sum())
            groups.setdefault((str(values.dtype), column.n_unique, fingerprint), []).append(
                column.name
            )
    found = []
    for names in groups.values():
        while len(names) > 1:
            first = table.frame[names[0]]
            same = [n for n in names if table.frame[n].equals(first)]
            if len(same) > 1:
                found.append(tuple(same))
            names = [n for n in names if n not in same]
    return found


def _rows(table: Table) -> Iterator[Finding]:
    n = table.n_rows
    again = n - table.frame.n_unique()
    if again:
        yield Finding(
            "duplicate_rows",
            "warning" if again > 0.01 * n else "info",
            f"{count(again, 'row')} {'repeats' if again == 1 else 'repeat'} an earlier one; copies "
            "are kept on one side of a split",
            float(again),
        )
    features = table.features.schema
    d = sum(min(c.n_unique, _MANY_LEVELS) if c.kind == "category" else 1 for c in features)
    if n < d:
        yield Finding(
            "few_rows",
            "warning",
            f"{count(n, 'row')} for about {d:,} columns of numbers: many models fit equally well, "
            "so penalised ones are safer",
            float(n / d),
        )
    if n < 50:
        yield Finding(
            "tiny_table",
            "warning",
            f"only {count(n, 'row')}: every score will have a wide interval",
            float(n),
        )


def _target(table: Table) -> Iterator[Finding]:
    name = str(table.target)
    if table.set_aside is not None:
        aside = table.set_aside.height
        yield Finding(
            "missing_target",
            "warning",
            f"{count(aside, 'row')} without a value of the target {name!r} set aside",
            float(aside),
            (name,),
        )
    levels, counts = np.unique(table.y, return_counts=True)
    if len(levels) == 1:
        yield Finding(
            "one_class",
            "serious",
            f"every row has the same target {str(levels[0])!r}; there is nothing to learn",
            1.0,
            (name,),
        )
    elif table.task == "classification":
        top = int(np.argmax(counts))
        share = float(counts[top] / counts.sum())
        if share > 0.8:
            yield Finding(
                "imbalance",
                "serious" if share > 0.95 else "warning",
                f"always answering {str(levels[top])!r} is already right in {share:.1%} of rows; "
                "compare with that and look at balanced accuracy",
                share,
                (name,),
            )
        tiny = [str(level) for level, c in zip(levels, counts, strict=True) if c < _TINY_CLASS]
        if tiny:
            yield Finding(
                "tiny_classes",
                "warning",
                f"{count(len(tiny), 'class', 'classes')} of {name!r} with fewer than "
                f"{_TINY_CLASS} rows ({listing(tiny, limit=5)}) cannot be in every fold",
                float(len(tiny)),
                (name,),
            )


def _leaks(table: Table) -> Iterator[Finding]:
    for name, score in single_column_scores(table):
        yield Finding(
            "leak",
            "serious",
            f"{name!r} alone predicts {table.target!r} almost perfectly "
            f"({score:.1%}); check that it is known before the outcome",
            score,
            (name,),
        )
