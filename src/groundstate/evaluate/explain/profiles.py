r"""Profiles of columns: distribution, missing cells, outliers, and the relation to the target."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
import scipy.stats
from numpy.typing import NDArray

from groundstate.compute.display import Displayed
from groundstate.data import Table, read
from groundstate.evaluate.explain.association import correlation_ratio, cramer
from groundstate.evaluate.rows import Floats
from groundstate.math.stats.interval import z_of
from groundstate.math.stats.multiple import adjust_pvalues

_BINS = 20
_LEVELS = 10
_ROWS = 50_000
FENCE = 3.0  # interquartile ranges beyond the quartiles where outliers begin


@dataclass(frozen=True)
class Relation(Displayed):
    """How a column goes with the target.

    Attributes
    ----------
    measure : ``"spearman"`` (signed), ``"eta"`` or ``"cramer_v"``
    value : float
    low, high : float or None
        Interval of Spearman's correlation (Fisher's z with Bonett and Wright's error).
    p, p_corrected : float
        That there is none (Spearman, Kruskal and Wallis, χ²), and corrected for all columns (Holm).
    """

    measure: str
    value: float
    low: float | None
    high: float | None
    p: float
    p_corrected: float | None = None


@dataclass(frozen=True)
class ColumnProfile(Displayed):
    """One column.

    Attributes
    ----------
    name, kind : str
    n, missing, distinct : int
    outliers : int or None
        Numbers further than three interquartile ranges from the quartiles.
    mean, std : float or None
    quantiles : values at 0, 5, 25, 50, 75, 95 and 100 %, numbers and dates only
    bins : edges (B + 1,) and counts (B,) of the histogram, numbers and dates only
    levels : the most frequent labels with their counts
    relation : Relation or None
    """

    name: str
    kind: str
    n: int
    missing: int
    distinct: int
    outliers: int | None = None
    mean: float | None = None
    std: float | None = None
    quantiles: tuple[float, ...] = ()
    bins: tuple[tuple[float, ...], tuple[int, ...]] | None = None
    levels: tuple[tuple[str, int], ...] = ()
    relation: Relation | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        found: dict[str, Any] = {
            "name": self.name, "kind": self.kind, "n": self.n, "missing": self.missing,
            "missing_share": self.missing / self.n if self.n else 0.0, "distinct": self.distinct,
            "outliers": self.outliers, "mean": self.mean, "std": self.std,
            "quantiles": list(self.quantiles), "levels": [list(pair) for pair in self.levels],
            "edges": [], "counts": [], "relation": None,
        }  # fmt: skip
        if self.bins is not None:
            found["edges"], found["counts"] = (list(part) for part in self.bins)
        if self.relation is not None:
            found["relation"] = dict(vars(self.relation))
        return found


def column_profiles(table: Any, target: str | int | None = None) -> list[ColumnProfile]:
    """What each column looks like and how it goes with the target.

    Parameters
    ----------
    table
        A `Table` or anything `data.read` takes.
    target
        The column to relate the others to; the table's own by default, none without one.

    Examples
    --------
    >>> rows = {"size": [1.0, 2.0, 3.0, None] * 25, "kind": ["u", "v", "u", "u"] * 25}
    >>> rows["y"] = [1.0, 2.0, 3.5, 2.0] * 25
    >>> size, kind, _ = column_profiles(rows, "y")
    >>> size.missing, round(size.relation.value, 6), kind.levels
    (25, 1.0, (('u', 75), ('v', 25)))
    """
    held = table if isinstance(table, Table) else read(table)
    held = held if target is None else held.with_target(target)
    frame = held.frame
    found = [_profile(held, name) for name in held.columns]
    if held.target is None:
        return found
    some = np.arange(0, frame.height, -(-max(frame.height, 1) // _ROWS))
    y = held.y[some]
    classes = held.task == "classification"
    goal = np.unique(y, return_inverse=True)[1].reshape(-1) if classes else y.astype(np.float64)
    relations = {
        name: _relation(held.schema[name].kind, frame[name][some], goal, classes)
        for name in held.columns
        if name != held.target
    }
    tested = {name: r for name, r in relations.items() if r is not None}
    if tested:
        adjusted = adjust_pvalues([r.p for r in tested.values()]).tolist()
        tested = {
            name: replace(r, p_corrected=p)
            for (name, r), p in zip(tested.items(), adjusted, strict=True)
        }
    return [replace(profile, relation=tested.get(profile.name)) for profile in found]


def _profile(table: Table, name: str) -> ColumnProfile:
    column, values = table.schema[name], table.frame[name]
    seen = values.drop_nulls()
    plain = ColumnProfile(name, column.kind, len(values), values.null_count(), seen.n_unique())
    if not len(seen):
        return plain
    if seen.dtype in (pl.String, pl.Boolean):
        if column.kind in ("text", "id"):
            return plain
        counts = seen.cast(pl.String).value_counts(name="times")
        first = counts.sort(["times", seen.name], descending=[True, False]).head(_LEVELS)
        return replace(plain, levels=tuple((str(level), int(k)) for level, k in first.rows()))
    numbers = _numbers(seen)
    at = np.quantile(numbers, [0, 0.05, 0.25, 0.5, 0.75, 0.95, 1])
    low, high = at[2] - FENCE * (at[4] - at[2]), at[4] + FENCE * (at[4] - at[2])
    outside = int(((numbers < low) | (numbers > high)).sum()) if at[4] > at[2] else 0
    kept = numbers[(numbers >= low) & (numbers <= high)] if outside else numbers
    distinct = np.unique(kept)
    if len(distinct) <= _BINS and len(distinct) > 1 and np.allclose(distinct, np.round(distinct)):
        edges = np.arange(distinct[0] - 0.5, distinct[-1] + 1.0)
        if len(edges) > 2 * _BINS:
            edges = np.linspace(distinct[0], distinct[-1], _BINS + 1)
    else:
        edges = np.linspace(kept.min(), kept.max() or 1.0, _BINS + 1)
    if not (np.diff(edges) > 0).all():
        edges = np.array([edges[0] - 0.5, edges[0] + 0.5])
    bars = np.histogram(numbers, edges)[0]
    dated = seen.dtype.is_temporal()
    return replace(
        plain,
        outliers=None if dated else outside,
        mean=float(numbers.mean()),
        std=float(numbers.std(ddof=1)) if len(numbers) > 1 else None,
        quantiles=tuple(at.tolist()),
        bins=(tuple(edges.tolist()), tuple(bars.tolist())),
    )


def _numbers(values: pl.Series) -> Floats:
    """Numbers as they are, dates as days since 1970."""
    if values.dtype.is_temporal():
        micro = values.cast(pl.Datetime("us")).to_physical().cast(pl.Float64)
        return micro.to_numpy() / 86_400e6
    return values.cast(pl.Float64).to_numpy()


def _relation(kind: str, values: pl.Series, goal: NDArray[Any], classes: bool) -> Relation | None:
    if kind in ("id", "text", "constant"):
        return None
    seen = values.is_not_null().to_numpy()
    x, y = values.drop_nulls(), goal[seen]
    if len(x) < 10 or x.n_unique() < 2 or len(np.unique(y)) < 2:
        return None
    labels = x.dtype in (pl.String, pl.Boolean)
    if labels:
        group = x.cast(pl.String).rank("dense").to_numpy().astype(np.intp) - 1
        group = np.unique(group, return_inverse=True)[1].reshape(-1)
    if labels and classes:
        y = np.unique(y, return_inverse=True)[1].reshape(-1)
        table = np.zeros((int(group.max()) + 1, int(y.max()) + 1))
        np.add.at(table, (group, y), 1)
        p = float(scipy.stats.chi2_contingency(table, correction=False)[1])
        return Relation("cramer_v", cramer(group, y), None, None, p)
    if not labels and not classes:
        return _spearman(_numbers(x), y)
    numbers, group = (_numbers(x), y) if classes else (y, group)
    group = np.unique(group, return_inverse=True)[1].reshape(-1)
    parts = [numbers[group == g] for g in range(int(group.max()) + 1)]
    p = float(scipy.stats.kruskal(*parts).pvalue) if len(np.unique(numbers)) > 1 else 1.0
    return Relation("eta", correlation_ratio(group, scipy.stats.rankdata(numbers)), None, None, p)


def _spearman(x: Floats, y: Floats) -> Relation:
    found = scipy.stats.spearmanr(x, y)
    rho = float(found.statistic)
    half = z_of(0.95) * np.sqrt((1 + rho**2 / 2) / max(len(x) - 3, 1))
    middle = np.arctanh(np.clip(rho, -1 + 1e-15, 1 - 1e-15))
    low, high = (float(np.tanh(middle + s * half)) for s in (-1, 1))
    return Relation("spearman", rho, low, high, float(found.pvalue))
