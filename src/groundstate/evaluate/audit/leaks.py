"""Leaks between the parts of a split, and what else spoils an evaluation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import scipy.spatial
import scipy.stats
from numpy.typing import NDArray

from groundstate.compute.display import Displayed
from groundstate.compute.random import Key, RandomState
from groundstate.compute.weight_line.hashing import row_hash
from groundstate.compute.weight_line.line import WeightLine
from groundstate.data.messages import count, listing
from groundstate.data.tables.findings import Finding
from groundstate.data.tables.findings import audit as audit_table
from groundstate.errors import DataError
from groundstate.evaluate.audit.determined import determined
from groundstate.evaluate.explain.two_sample import two_sample_auc
from groundstate.evaluate.frames import frame_of, numeric_columns
from groundstate.evaluate.rows import columns, n_rows, sides

LEAKS = frozenset(
    {"shared_rows", "shared_groups", "leak", "determined", "fitted_before", "future", "time_order"}
)
_TARGET = "the target"
_OFTEN = 1.5  # times as often as training rows equal each other: by chance
_OTHER_TARGET = 0.1  # share of equal rows with another target, from which they are no copies
EQUAL_BY_CHANCE = "the columns have few different values, so that equal rows are no copies"
_ROWS = 100_000  # rows that the shift and distance checks look at


@dataclass(frozen=True)
class Audit(Displayed):
    """Findings, most serious first.

    Attributes
    ----------
    findings : tuple of Finding

    Examples
    --------
    >>> print(Audit(()))
    no finding
    """

    findings: tuple[Finding, ...]

    @property
    def leaks(self) -> tuple[Finding, ...]:
        """Findings by which the score would be too good to be true."""
        return tuple(f for f in self.findings if f.code in LEAKS)

    @property
    def codes(self) -> tuple[str, ...]:
        """What was found, by short name."""
        return tuple(f.code for f in self.findings)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def __str__(self) -> str:
        lines = [f"{f.severity}: {f.sentence}" for f in self.findings]
        return "\n".join(lines) or "no finding"


def audit(
    X: Any,
    y: Any,
    split: Any = None,
    groups: Any = None,
    *,
    estimator: Any = None,
    time: Any = None,
    strict: bool = False,
    random_state: Key | RandomState = 0,
) -> Audit:
    """Look for leaks and for what else spoils a score, before anything is fitted.

    The table itself is read by :func:`groundstate.data.audit` (identifiers, constants, duplicates,
    columns that give the target away, tiny classes); this adds what needs a split: rows or groups
    on both sides, training rows later than test rows, absent classes, a shift between the sides,
    test rows outside the training range, and preparation that was fitted before the split.

    Parameters
    ----------
    X, y : the whole table and its target
    split : ``SplitRows``, ``Split``, or (train rows, test rows)
    groups : ``(N,)`` labels that should not cross sides
    estimator : the recipe; it must not be fitted yet
    time : ``(N,)`` dates of the rows; a date column later than that knows the future, as does a
        training row later than a test row
    strict : raise ``DataError`` on a leak

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2)); y = rng.integers(2, size=200)
    >>> X[150:160] = X[:10]
    >>> audit(X, y, (np.arange(150), np.arange(150, 200))).leaks[0].code
    'shared_rows'
    """
    target = np.asarray(y)
    n = n_rows(X)
    if target.shape != (n,):
        raise DataError(f"y has shape {target.shape}; expected one target per row, ({n},)")
    frame = frame_of(X)
    found = list(audit_table(frame.with_columns(pl.Series(_TARGET, target)), _TARGET))
    found = [f for f in found if f.code != "leak"]  # looked for below, with the split's own limits
    known = {f.code for f in found}
    found += [f for f in of_table(frame, target, time) if f.code not in known or f.code == "leak"]
    if split is not None:
        train, test = sides(split, whole=True)
        found += between(frame, target, train, test, groups, time, Key.of(random_state))
    if estimator is not None:
        found += _fitted(estimator)
    order = {"serious": 0, "warning": 1, "info": 2}
    found.sort(key=lambda f: (f.code not in LEAKS, order[f.severity]))
    result = Audit(tuple(found))
    if strict and result.leaks:
        raise DataError(f"leak: {result.leaks[0].sentence}")
    return result


def of_table(
    frame: pl.DataFrame, y: NDArray[Any], time: Any, target: str = _TARGET
) -> Iterator[Finding]:
    """Contradictions, columns that give the target away, and dates that know the future."""
    hashes = row_hash(*columns(frame))
    _, place = np.unique(hashes, return_inverse=True)
    pairs = np.unique(np.stack([place.reshape(-1), np.unique(y, return_inverse=True)[1]]), axis=1)
    torn = int((np.bincount(pairs[0]) > 1).sum())
    if torn and y.dtype.kind not in "f":
        yield Finding(
            "contradiction", "warning",
            f"{count(torn, 'set')} of equal rows with different targets: no model can get them all "
            "right", float(torn),
        )  # fmt: skip
    telling = list(_telling(frame, y))
    alone = {(name,) for name, _, _ in telling}
    yield from (f for f in determined(frame, y, target) if f.columns not in alone)
    for name, score, kind in telling:
        yield Finding(
            "leak", "serious",
            f"{name!r} alone gives the target away ({kind} {score:.4f}); check that it is known "
            "before the outcome", score, (name,),
        )  # fmt: skip
    if time is not None:
        moment = pl.Series(np.asarray(time))
        for name in frame.columns:
            if frame[name].dtype.is_temporal() and moment.dtype.is_temporal():
                later = int((frame[name].cast(pl.Datetime) > moment.cast(pl.Datetime)).sum())
                if later:
                    yield Finding(
                        "future", "serious",
                        f"{name!r} is later than the row itself in {count(later, 'row')}: it "
                        "knows the future", float(later), (name,),
                    )  # fmt: skip


def _telling(frame: pl.DataFrame, y: NDArray[Any]) -> Iterator[tuple[str, float, str]]:
    """Columns that alone rank the target almost perfectly."""
    from sklearn.utils.multiclass import type_of_target

    if len(y) < 20:
        return
    kind = type_of_target(y)
    levels, codes = np.unique(y, return_inverse=True)
    for name, x in numeric_columns(frame).items():
        seen = np.isfinite(x)
        if seen.mean() < 0.9 or np.ptp(x[seen]) == 0:
            continue
        if kind in ("binary", "multiclass") and len(levels) <= 100:
            rank = scipy.stats.rankdata(x[seen])
            worst, judged = 1.0, False
            for label in np.unique(codes[seen]):
                positive = codes[seen] == label
                a, b = int(positive.sum()), int((~positive).sum())
                if min(a, b) < 3:
                    continue
                area = (rank[positive].sum() - a * (a + 1) / 2) / (a * b)
                worst, judged = min(worst, max(area, 1 - area)), True
                if kind == "binary":
                    break
            if judged and 0.995 < worst <= 1:
                yield name, float(worst), "AUC"
        elif y.dtype.kind in "fiu" and np.ptp(y[seen].astype(float)) > 0:
            v = y[seen].astype(np.float64)
            r2 = max(
                float(np.corrcoef(_unit(x[seen]), _unit(v))[0, 1]) ** 2,
                float(scipy.stats.spearmanr(x[seen], v).statistic) ** 2,
            )
            if r2 > 0.99:
                yield name, r2, "R²"


def _unit(x: NDArray[Any]) -> NDArray[np.float64]:
    """Values between -1 and 1, whose squares neither vanish nor overflow."""
    values = np.asarray(x, np.float64)
    largest = float(np.abs(values[np.isfinite(values)]).max(initial=0.0))
    return values / largest if largest > 0 else values


def equal_by_chance(
    hashes: NDArray[np.uint64],
    y: NDArray[Any],
    train: NDArray[np.intp],
    test: NDArray[np.intp],
) -> bool:
    """Whether equal rows of two sides are no copies: their columns take few values.

    Then training rows equal each other about as often, and rows with equal features have different
    targets, which copies have not.

    Parameters
    ----------
    hashes : ``(N,)`` of the features
    y : ``(N,)`` targets
    train, test : positions
    """
    _, place, times = np.unique(hashes[train], return_inverse=True, return_counts=True)
    among = float((times[place.reshape(-1)] > 1).mean())
    both = test[np.isin(hashes[test], hashes[train])]
    if not len(both) or len(both) > _OFTEN * among * len(test):
        return False
    pairs = row_hash(hashes, y)
    return float(np.isin(pairs[both], pairs[train]).mean()) < 1 - _OTHER_TARGET


def between(
    frame: pl.DataFrame,
    y: NDArray[Any],
    train: NDArray[np.intp],
    test: NDArray[np.intp],
    groups: Any,
    time: Any,
    key: Key,
    usable: pl.DataFrame | None = None,
) -> Iterator[Finding]:
    """What is wrong between two sides: shared rows or groups, order in time, absent classes, shift.

    Parameters
    ----------
    usable : columns that should come from one distribution on both sides; all of the frame by default
    """
    hashes = row_hash(*columns(frame))
    both = np.isin(hashes[test], hashes[train])
    if n := int(both.sum()):
        by_chance = equal_by_chance(hashes, y, train, test)
        why = EQUAL_BY_CHANCE if by_chance else "split with duplicates kept together"
        yield Finding(
            "repeated_rows" if by_chance else "shared_rows", "info" if by_chance else "serious",
            f"{count(n, 'test row')} also {'stands' if n == 1 else 'stand'} among the training rows (equal "
            f"features); {why}", float(n),
        )  # fmt: skip
    if groups is not None:
        labels = np.asarray(groups)
        shared = np.intersect1d(labels[train], labels[test])
        if len(shared):
            yield Finding(
                "shared_groups", "serious",
                f"{count(len(shared), 'group')} on both sides of the split; pass groups to split",
                float(len(shared)),
            )  # fmt: skip
    if time is not None and len(train) and len(test):
        moment = np.asarray(time)
        late = int((moment[train] > moment[test].min()).sum())
        if late:
            yield Finding(
                "time_order", "serious",
                f"{count(late, 'training row')} later than the first test row: the model knows "
                "what came after; pass time to split", float(late),
            )  # fmt: skip
    if y.dtype.kind not in "f" and len(np.unique(y)) <= max(20, len(y) // 10):
        for name, rows in (("training", train), ("test", test)):
            absent = np.setdiff1d(y, y[rows])
            if len(absent):
                yield Finding(
                    "absent_class", "warning",
                    f"no {name} row has the target {listing([str(a) for a in absent], limit=5)}",
                    float(len(absent)),
                )  # fmt: skip
    table = numeric_columns(frame if usable is None else usable)
    if table and len(train) >= 20 and len(test) >= 20:
        yield from _outside(table, train, test)
        yield from _shift(table, train, test, key)


def _outside(
    table: dict[str, NDArray[np.float64]], train: NDArray[np.intp], test: NDArray[np.intp]
) -> Iterator[Finding]:
    """Test rows beyond the training range, more than chance puts there."""
    for name, x in table.items():
        a, b = x[train], x[test]
        a, b = a[np.isfinite(a)], b[np.isfinite(b)]
        if len(a) < 20 or len(b) < 20:
            continue
        out = int(((b < a.min()) | (b > a.max())).sum())
        if out and scipy.stats.binom.sf(out - 1, len(b), 2 / (len(a) + 1)) < 1e-4 / len(table):
            yield Finding(
                "extrapolation", "warning",
                f"{count(out, 'test row')} of {len(b):,} lie outside the training range of "
                f"{name!r}: predictions there are extrapolations", out / len(b), (name,),
            )  # fmt: skip
    values = np.stack([_unit(x) for x in table.values()], 1)
    seen = np.asarray(np.isfinite(values).all(axis=1))
    a, b = values[train[seen[train]]][:2000], values[test[seen[test]]][:2000]
    scale = a.std(0) if len(a) else np.zeros(1)
    if len(a) < 50 or len(b) < 20 or not (scale > 0).any() or values.shape[1] < 2:
        return
    a, b = a[:, scale > 0] / scale[scale > 0], b[:, scale > 0] / scale[scale > 0]
    half = len(a) // 2
    tree = scipy.spatial.cKDTree(a[:half])
    limit = float(np.quantile(tree.query(a[half:])[0], 0.99))
    far = int((tree.query(b)[0] > limit).sum())
    if far / len(b) > 0.05 and scipy.stats.binom.sf(far - 1, len(b), 0.02) < 1e-6:
        yield Finding(
            "far_rows", "warning",
            f"{far / len(b):.0%} of test rows are further from the training rows than 99 % of "
            "those are from each other", far / len(b),
        )  # fmt: skip


def _shift(
    table: dict[str, NDArray[np.float64]],
    train: NDArray[np.intp],
    test: NDArray[np.intp],
    key: Key,
) -> Iterator[Finding]:
    """Can a classifier tell training from test rows?"""
    values = np.stack(list(table.values()), 1)
    rows = np.concatenate([train, test])
    side = np.r_[np.zeros(len(train), int), np.ones(len(test), int)]
    if len(rows) > _ROWS:
        some = np.sort(WeightLine.of(values[rows]).order(key.fold("shift"))[:_ROWS])
        rows, side = rows[some], side[some]
    if np.bincount(side).min() < 20:
        return
    area = two_sample_auc(values[rows], side, key, 0.999)
    if area.estimate > 0.65 and area.low > 0.5:
        yield Finding(
            "shift", "warning",
            f"a classifier tells training from test rows (AUC {area.estimate:.2f}): they do not "
            "come from one distribution", area.estimate,
        )  # fmt: skip


def _fitted(estimator: Any) -> Iterator[Finding]:
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    steps = getattr(estimator, "steps", None) or [(type(estimator).__name__, estimator)]
    for name, step in steps:
        if not hasattr(step, "fit") or not any(k.endswith("_") for k in vars(step)):
            continue
        try:
            check_is_fitted(step)
        except (NotFittedError, TypeError):
            continue
        yield Finding(
            "fitted_before", "serious",
            f"{name!r} is already fitted, so it may have seen test rows; pass it unfitted",
            1.0, (name,),
        )  # fmt: skip
