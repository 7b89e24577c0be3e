"""Drift: whether two sets of rows come from one distribution, column by column and as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
import scipy.stats

from groundstate.compute.display import Displayed
from groundstate.compute.random import Key, RandomState
from groundstate.compute.weight_line.line import WeightLine
from groundstate.data import Table, read, written
from groundstate.data.messages import listing
from groundstate.errors import DataError
from groundstate.evaluate.explain.two_sample import two_sample_auc
from groundstate.evaluate.rows import Floats
from groundstate.math.stats.interval import Interval
from groundstate.math.stats.multiple import adjust_pvalues

_FEWEST = 20  # rows on each side of a classifier
_ROWS = 20_000
_SURE = 0.98  # of the classifier's interval: its false alarm comes on top of those of the columns
_SAID = 20  # new labels that are named
SMALL = 0.1  # distance of distributions below which a difference hardly matters


@dataclass(frozen=True)
class ColumnDrift(Displayed):
    """One column in two sets of rows.

    Attributes
    ----------
    name, kind, test : str
    distance : float or None
        Largest difference of the two distribution functions (Kolmogorov-Smirnov), of labels half
        the sum of the differences of their shares (total variation): 0 is equal, 1 disjoint.
    p, p_corrected : float or None
        Of the test, and corrected for all columns (Holm).
    missing : (share in a, share in b)
    p_missing : corrected p of equal shares of missing cells
    moved : float or None
        Difference of the medians, in units of the first set's interquartile range.
    new, gone : labels of b that a has not, and of a that b has not
    new_share : share of b's rows with a new label
    """

    name: str
    kind: str
    test: str
    distance: float | None
    p: float | None
    p_corrected: float | None
    missing: tuple[float, float]
    p_missing: float | None
    moved: float | None = None
    new: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    new_share: float = 0.0

    def drifted(self, alpha: float = 0.05) -> bool:
        """Whether the distribution or the share of missing cells certainly changed."""
        return any(p is not None and p < alpha for p in (self.p_corrected, self.p_missing))

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "name": self.name, "kind": self.kind, "test": self.test, "distance": self.distance,
            "p": self.p, "p_corrected": self.p_corrected, "missing": list(self.missing),
            "p_missing": self.p_missing, "moved": self.moved, "new": list(self.new[:_SAID]),
            "gone": list(self.gone[:_SAID]), "new_share": self.new_share,
            "drifted": self.drifted(),
        }  # fmt: skip


@dataclass(frozen=True)
class Drift(Displayed):
    """How two sets of rows differ.

    Attributes
    ----------
    columns : tuple of ColumnDrift, the largest distance first
    auc : Interval or None
        Of a classifier that tells the two apart: ½ when it cannot; 98 % sure. None for few rows.
    only_a, only_b : names of columns that the other set lacks
    """

    columns: tuple[ColumnDrift, ...]
    auc: Interval | None
    n_a: int
    n_b: int
    only_a: tuple[str, ...] = ()
    only_b: tuple[str, ...] = ()
    alpha: float = 0.05

    @property
    def moved(self) -> tuple[ColumnDrift, ...]:
        """Columns that certainly changed."""
        return tuple(c for c in self.columns if c.drifted(self.alpha))

    @property
    def drifted(self) -> bool:
        """Whether anything certainly changed."""
        apart = self.auc is not None and self.auc.low > 0.5
        return apart or bool(self.moved) or bool(self.only_a or self.only_b)

    @property
    def sentence(self) -> str:
        """The verdict."""
        separability = ""
        if self.auc is not None:
            sure = "tells them apart" if self.auc.low > 0.5 else "cannot tell them apart"
            area = f"AUC {self.auc.estimate:.2f}, {self.auc.low:.2f} to {self.auc.high:.2f}"
            separability = f"a classifier {sure} ({area})"
        lacks = [*self.only_a, *self.only_b]
        absent = f"columns {listing(lacks)} are in one set only" if lacks else ""
        if not self.drifted:
            tested = [c.p_corrected for c in self.columns if c.p_corrected is not None]
            least = f"none of {len(tested)} columns differs measurably" if tested else ""
            return (
                "No drift found: " + "; ".join(part for part in (separability, least) if part) + "."
            )
        parts = [absent, separability] if separability else [absent]
        if self.moved:
            worst = self.moved[0]
            few = all((c.distance or 0) < SMALL for c in self.moved)
            size = f", all by less than {SMALL:g}" if few else ""
            differ = "differs" if len(self.moved) == 1 else "differ"
            parts.append(
                f"{len(self.moved)} of {len(self.columns)} columns {differ}{size}, most "
                f"{worst.name!r} ({_about(worst)})"
            )
        return "The rows drifted: " + "; ".join(part for part in parts if part) + "."

    def _facts(self) -> dict[str, object]:
        return {"rows": f"{self.n_a:,} and {self.n_b:,}", "verdict": self.sentence}

    def _table(self) -> Any:
        rows = [
            (c.name, c.kind, "" if c.distance is None else f"{c.distance:.3f}",
             "" if c.p_corrected is None else f"{c.p_corrected:.3g}",
             f"{c.missing[0]:.1%} → {c.missing[1]:.1%}", listing(c.new, limit=3) if c.new else "")
            for c in self.columns
        ]  # fmt: skip
        return ("column", "kind", "distance", "p, corrected", "missing", "new labels"), rows

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "sentence": self.sentence,
            "drifted": self.drifted,
            "rows": [self.n_a, self.n_b],
            "auc": None
            if self.auc is None
            else {"value": self.auc.estimate, "lo": self.auc.low, "hi": self.auc.high},
            "only_a": list(self.only_a),
            "only_b": list(self.only_b),
            "columns": [column.to_dict() for column in self.columns],
        }


def drift(
    a: Any,
    b: Any,
    *,
    columns: Sequence[str] | None = None,
    alpha: float = 0.05,
    random_state: Key | RandomState = 0,
) -> Drift:
    """Compare two tables: each column by a two-sample test, all together by a classifier.

    Numbers and dates are compared by Kolmogorov and Smirnov, labels by χ², texts by their length,
    missing cells by Fisher; p-values are corrected for all of these tests at once (Holm). The
    classifier (boosted trees, three folds, a 98 % interval widened for folds) reads numbers and
    labels, not dates, texts and identifiers, which differ between any two files.

    Parameters
    ----------
    a, b
        Tables or anything `data.read` takes; the second is read with the first's kinds of columns.
    columns
        Names to compare; all by default, the target among them.
    alpha
        Chance of any false alarm among the columns; that of the classifier is at most one percent.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> a = {"size": rng.normal(size=300), "kind": rng.choice(["u", "v"], 300)}
    >>> b = {"size": rng.normal(size=300) + 1, "kind": rng.choice(["u", "v"], 300)}
    >>> found = drift(a, b)
    >>> [c.name for c in found.moved], found.auc.low > 0.6
    (['size'], True)
    """
    first = a if isinstance(a, Table) else read(a)
    second = _like(first, b)
    names = [n for n in first.columns if n in second.columns and (columns is None or n in columns)]
    if not names:
        raise DataError(
            f"the two tables share no column: {listing(first.columns)} and {listing(second.columns)}"
        )
    if not first.n_rows or not second.n_rows:
        raise DataError(f"both tables need rows, got {first.n_rows} and {second.n_rows}")
    found = [
        _column(name, first.schema[name].kind, first.frame[name], second.frame[name])
        for name in names
        if first.schema[name].kind != "id"
    ]
    found = _corrected(found)
    found.sort(key=lambda c: (not c.drifted(alpha), -(c.distance or 0.0), c.name))
    labels = [n for n in names if first.schema[n].kind in ("numeric", "category")]
    given = columns is None
    return Drift(
        tuple(found),
        _apart(first, second, labels, Key.of(random_state)),
        first.n_rows,
        second.n_rows,
        tuple(n for n in first.columns if n not in second.columns) if given else (),
        tuple(n for n in second.columns if n not in first.columns) if given else (),
        alpha,
    )


def _like(first: Table, b: Any) -> Table:
    """The second table, its columns read as those of the first."""
    if isinstance(b, Table):
        known = [c for c in first.schema if c.name in b.schema]
        if all(b.schema[c.name].kind == c.kind for c in known):
            return b
        b = b.frame
    cells = written(b)
    shared = [n for n in first.columns if n in cells.frame.columns]
    if not shared:
        return cells.table()
    own = cells.select(shared).table(schema=first.schema.select(shared).with_target(None))
    rest = [n for n in cells.frame.columns if n not in shared]
    if not rest:
        return own
    more = cells.select(rest).table()
    frame = pl.concat([own.frame, more.frame], how="horizontal")
    schema = replace(own.schema, columns=(*own.schema, *more.schema))
    return Table(frame, schema)


def _column(name: str, kind: str, a: pl.Series, b: pl.Series) -> ColumnDrift:
    missing = (a.null_count() / len(a), b.null_count() / len(b))
    p_missing = None
    if any(missing):
        holes = [
            [a.null_count(), len(a) - a.null_count()],
            [b.null_count(), len(b) - b.null_count()],
        ]
        p_missing = float(scipy.stats.fisher_exact(holes)[1])
    x, y = a.drop_nulls(), b.drop_nulls()
    blank = ColumnDrift(name, kind, "none", None, None, None, missing, p_missing)
    if not len(x) or not len(y):
        return blank
    if kind == "text":
        x, y = x.str.len_chars(), y.str.len_chars()
    if x.dtype == pl.String or x.dtype == pl.Boolean:
        return _labels(blank, x.cast(pl.String), y.cast(pl.String))
    u, v = (s.to_physical().cast(pl.Float64).to_numpy() for s in (x, y))
    if len(np.unique(np.concatenate([u, v]))) == 1:
        return replace(blank, test="constant", distance=0.0, p=1.0)
    found = scipy.stats.ks_2samp(u, v, method="auto" if len(u) + len(v) < 2000 else "asymp")
    low, middle, high = np.quantile(u, [0.25, 0.5, 0.75])
    moved = float((np.median(v) - middle) / (high - low)) if high > low else None
    test = "Kolmogorov-Smirnov" + (" of the length" if kind == "text" else "")
    return replace(
        blank, test=test, distance=float(found.statistic), p=float(found.pvalue), moved=moved
    )


def _labels(blank: ColumnDrift, x: pl.Series, y: pl.Series) -> ColumnDrift:
    levels = sorted(set(x.unique().to_list()) | set(y.unique().to_list()))
    place = {level: i for i, level in enumerate(levels)}
    counts = np.zeros((2, len(levels)))
    for row, values in enumerate((x, y)):
        for level, times in values.value_counts().rows():
            counts[row, place[level]] = times
    share = counts / counts.sum(1, keepdims=True)
    distance = float(np.abs(share[0] - share[1]).sum() / 2)
    new = tuple(n for n in levels if not counts[0, place[n]])
    gone = tuple(n for n in levels if not counts[1, place[n]])
    fresh = float(sum(share[1, place[n]] for n in new))
    table = _pooled(counts)
    p = (
        float(scipy.stats.chi2_contingency(table, correction=False)[1])
        if table.shape[1] > 1
        else 1.0
    )
    return replace(blank, test="χ²", distance=distance, p=p, new=new, gone=gone, new_share=fresh)


def _pooled(counts: Floats) -> Floats:
    """Labels too rare for χ² (fewer than 5 wanted on a side) as one."""
    wanted = counts.sum(1, keepdims=True) * counts.sum(0) / counts.sum()
    rare = (wanted < 5).any(0)
    if rare.sum() < 2:
        return counts
    return np.column_stack([counts[:, ~rare], counts[:, rare].sum(1)])


def _corrected(found: list[ColumnDrift]) -> list[ColumnDrift]:
    """Holm's correction over the tests of all columns."""
    tests = [(i, which, p) for i, c in enumerate(found)
             for which, p in (("p_corrected", c.p), ("p_missing", c.p_missing)) if p is not None]  # fmt: skip
    if not tests:
        return found
    adjusted = adjust_pvalues([min(1.0, max(0.0, p)) for _, _, p in tests])
    out = list(found)
    for (i, which, _), p in zip(tests, adjusted.tolist(), strict=True):
        changes: dict[str, Any] = {which: p}
        out[i] = replace(out[i], **changes)
    return out


def _apart(first: Table, second: Table, names: list[str], key: Key) -> Interval | None:
    if min(first.n_rows, second.n_rows) < _FEWEST or not names:
        return None
    frame = pl.concat(
        [first.frame.select(names), second.frame.select(names)], how="vertical_relaxed"
    )
    blocks = []
    for name in names:
        column = frame[name]
        if column.dtype == pl.String or column.dtype == pl.Boolean:
            column = column.cast(pl.String).rank("dense")
        blocks.append(column.cast(pl.Float64).fill_null(float("nan")).to_numpy())
    values = np.stack(blocks, 1)
    side = np.repeat([0, 1], [first.n_rows, second.n_rows])
    for which in (0, 1):
        own = np.flatnonzero(side == which)
        if len(own) > _ROWS // 2:
            some = WeightLine.of(values[own]).order(key.fold("rows"))[: _ROWS // 2]
            keep = np.sort(np.concatenate([np.flatnonzero(side != which), own[some]]))
            values, side = values[keep], side[keep]
    return two_sample_auc(values, side, key.fold("classifier"), _SURE)


def _about(column: ColumnDrift) -> str:
    parts = [] if column.distance is None else [f"distance {column.distance:.2f}"]
    if column.p_missing is not None and column.p_missing < 0.05:
        parts.append(f"missing {column.missing[0]:.0%} → {column.missing[1]:.0%}")
    if column.new:
        parts.append(f"new: {listing(column.new, limit=3)}")
    return ", ".join(parts)
