r"""Columns that determine the target together: sums, products, ratios, differences, pairs of labels.

.. math:: y = b + \sum_{j \in S} c_j x_j \quad\text{or}\quad y = c \prod_{j \in S} x_j^{k_j},\quad |S| \le 8,

to the last digit that y is written with, in nearly every row; or, where amounts are rounded or measured
with an error, all :math:`c_j = \pm1` or all :math:`k_j` halves of whole numbers, to a fiftieth of the
spread of y in nine rows of ten. A model that is given such columns scores almost perfectly and has learned
arithmetic; whoever wants to predict y has no such columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
import scipy.stats
from numpy.typing import NDArray

from groundstate.data.tables.findings import Finding
from groundstate.evaluate.frames import numeric_columns
from groundstate.evaluate.rows import Floats

_ROWS = 4_000
_FEWEST = 40
_SHARE, _MOST = 0.95, 0.9  # of rows that follow a formula to the last digit, or nearly
_NEAR = 0.02  # of the spread of the target: nearly
_SLOPE, _POWER = 0.02, 0.03  # from one, and from half a whole number, that coefficients are off
_PURE = 0.999  # of rows whose pair of labels names the class
_TERMS = 8
_WIDE = 60
_PAIRED = 12  # columns of which pairs are tried


@dataclass(frozen=True)
class Formula:
    """The target as a function of few columns.

    Attributes
    ----------
    text : ``"total − tip"``
    columns : in the order of the formula
    share : of rows that it gives within ``tolerance``
    exact : to the last digit of the target, not nearly
    """

    text: str
    columns: tuple[str, ...]
    share: float
    tolerance: float
    exact: bool = True


def determined(frame: pl.DataFrame, y: NDArray[Any], name: str = "the target") -> Iterator[Finding]:
    """Findings about columns that give the target by a formula or as a pair of labels.

    Parameters
    ----------
    frame : the features
    y : ``(n,)`` the target
    name : what it is called

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> tip, toll, fare = rng.integers(1, 2000, size=(3, 300)) / 100
    >>> rows = pl.DataFrame({"total": fare + tip + toll, "tip": tip, "toll": toll})
    >>> print(next(determined(rows, fare, "fare")).sentence.split(":")[0])
    fare ≈ total − tip − toll, to 0.01 in 100.0 % of rows
    """
    if len(y) < _FEWEST:
        return
    some = np.arange(0, len(y), -(-len(y) // _ROWS))
    frame, y = frame[some], y[some]
    if y.dtype.kind in "fiu" and len(np.unique(y)) > 10:
        found = formula(_numbers(frame), y.astype(np.float64))
        if found is not None:
            digits = f"to {found.tolerance:.2g} " if found.tolerance else ""
            yield Finding(
                *(("determined", "serious") if found.exact else ("nearly_determined", "warning")),
                f"{name} ≈ {found.text}, {digits}in {100 * found.share:.1f} % of rows: a model of "
                "these columns does arithmetic; leave out those that are known only with the "
                "target", found.share, found.columns,
            )  # fmt: skip
    elif 2 <= len(np.unique(y)) <= 100:
        yield from _differences(_numbers(frame), y, name)
        yield from _pairs(frame, y, name)


def formula(table: dict[str, Floats], y: Floats) -> Formula | None:
    """The shortest sum, then product, of columns that gives y, or nearly; None when there is none."""
    usable = {
        name: x
        for name, x in table.items()
        if np.isfinite(x).mean() > 0.9 and _measurable(x[np.isfinite(x)])
    }
    if not usable or not _measurable(y[np.isfinite(y)]):
        return None
    names, X = list(usable), np.stack(list(usable.values()), 1)
    seen = np.isfinite(X).all(1) & np.isfinite(y)
    if seen.sum() < max(_FEWEST, 0.8 * len(y)):
        return None
    X, y = X[seen], y[seen]
    exact, near = _Within(_tolerance(y), _SHARE), _Within(_NEAR * _spread(y), _MOST, exact=False)
    found = _sum(names, X, y, exact) or _product(names, X, y, exact)
    found = found or _sum(names, X, y, near) or _product(names, X, y, near)
    usual = float(np.unique(y, return_counts=True)[1].max() / len(y))
    if found is None or 1 - found.share > 0.1 * (1 - usual):  # one value in most rows is no formula
        return None
    return found


def _measurable(x: Floats) -> bool:
    """Whether numbers differ, and by amounts whose squares neither vanish nor overflow."""
    return len(x) > 0 and 1e-100 < float(x.max() / 2 - x.min() / 2) < 1e100


@dataclass(frozen=True)
class _Within:
    """How far off a formula may be, and in which share of rows it may not be further off."""

    tolerance: float
    share: float
    exact: bool = True


def _spread(y: Floats) -> float:
    low, high = np.quantile(y, [0.1, 0.9])
    return float(high - low) or float(np.ptp(y))


def _tolerance(y: Floats) -> float:
    """The last digit that y is written with, while that is little beside its spread."""
    spread = _spread(y)
    for digits in range(5):
        if np.abs(np.round(y, digits) - y).max() < 1e-9 * max(1.0, float(np.abs(y).max())):
            return max(min(10.0**-digits, 0.005 * spread), 1e-9 * spread)
    return 1e-6 * spread


def _concentrated(X: Floats, y: Floats, tolerance: float) -> Floats:
    """Least squares to the rows that one line fits best, offset first.  # (d + 1,)

    Those are all rows within the tolerance, and three fifths of the rows while they are fewer.
    """
    A = np.column_stack([np.ones(len(y)), X])
    most = max(A.shape[1] + 2, (3 * len(y)) // 5)
    keep = np.arange(len(y))
    for _ in range(12):
        weights = np.asarray(np.linalg.lstsq(A[keep], y[keep], rcond=None)[0], np.float64)
        off = np.abs(y - A @ weights)
        close = np.flatnonzero(off <= tolerance)
        new = close if len(close) >= most else np.sort(np.argsort(off, kind="stable")[:most])
        if np.array_equal(new, keep):
            break
        keep = new
    return weights


def _share(X: Floats, y: Floats, weights: Floats, tolerance: float) -> float:
    close = np.abs(y - weights[0] - X @ weights[1:]) <= tolerance * (1 + 1e-6)
    return float(close.mean())


def _chosen(X: Floats, y: Floats, tolerance: float, share: float) -> list[int] | None:
    """The fewest columns whose line gives y: all that could matter, less those it can do without."""
    left, rest = list(range(X.shape[1])), y - y.mean()
    if len(left) > min(_WIDE, len(y) // 8):  # what correlates most with what is left, in turn
        left = []
        for _ in range(min(20, len(y) // 8)):
            near = np.abs((X - X.mean(0)).T @ rest) / (X.std(0) * np.sqrt(len(y)))
            near[left] = -1.0
            left.append(int(np.argmax(near)))
            weights = _concentrated(X[:, left], y, tolerance)
            rest = y - weights[0] - X[:, left] @ weights[1:]
            rest = np.clip(rest, *np.quantile(rest, [0.02, 0.98]))
    weights = _concentrated(X[:, left], y, tolerance)
    if _share(X[:, left], y, weights, tolerance) < share:
        return None
    for j in sorted(left, key=lambda j: abs(weights[1 + left.index(j)])):
        fewer = [k for k in left if k != j]
        if (
            fewer
            and _share(X[:, fewer], y, _concentrated(X[:, fewer], y, tolerance), tolerance) >= share
        ):
            left = fewer
    return left if len(left) <= _TERMS else None


def _sum(names: list[str], X: Floats, y: Floats, within: _Within) -> Formula | None:
    tolerance = within.tolerance
    middle, scale = X.mean(0), X.std(0)
    Z = (X - middle) / scale  # dates and amounts side by side
    kept = _chosen(Z, y, tolerance, within.share)
    if kept is None:
        return None
    weights = _concentrated(Z[:, kept], y, tolerance)
    slopes = weights[1:] / scale[kept]
    offset = weights[0] - float(slopes @ middle[kept])
    exact = np.array([_nice(c) for c in slopes])
    if not within.exact:
        if len(kept) < 2 or (np.abs(np.abs(slopes) - 1) > _SLOPE).any():
            return None
        exact = np.sign(slopes)
    whole = float(np.median(y - X[:, kept] @ exact))
    own = _share(X[:, kept], y, np.r_[offset, slopes], tolerance)
    if _share(X[:, kept], y, np.r_[whole, exact], tolerance) >= own - 0.01:
        offset, slopes = whole, exact
    share = _share(X[:, kept], y, np.r_[offset, slopes], tolerance)
    order = sorted(range(len(kept)), key=lambda i: (slopes[i] < 0, kept[i]))
    parts = [_term(float(slopes[i]), names[kept[i]], first=i == order[0]) for i in order]
    if abs(offset) > tolerance:
        parts.append(f" {'−' if offset < 0 else '+'} {abs(offset):.4g}")
    chosen = tuple(names[kept[i]] for i in order)
    return Formula("".join(parts), chosen, share, tolerance, within.exact)


def _product(names: list[str], X: Floats, y: Floats, within: _Within) -> Formula | None:
    positive = (X > 0).mean(0) > 0.97
    if not positive.any() or (y > 0).mean() < 0.97:
        return None
    names, X = [n for n, p in zip(names, positive, strict=True) if p], X[:, positive]
    seen = (X > 0).all(1) & (y > 0)
    if seen.sum() < _FEWEST or seen.mean() < 0.9:
        return None
    X, y = X[seen], y[seen]
    tolerance = within.tolerance
    L, target = np.log(X), np.log(y)
    L, names = L[:, L.std(0) > 1e-9], [n for n, s in zip(names, L.std(0), strict=True) if s > 1e-9]
    if not names or target.std() < 1e-9:
        return None
    narrow = max(tolerance / float(np.median(y)), 1e-9)
    kept = _chosen(L, target, narrow, within.share)
    if kept is None or len(kept) > 4:
        return None
    found = _concentrated(L[:, kept], target, narrow)[1:]
    powers = np.round(2 * found) / 2
    if not within.exact and (len(kept) < 2 or (np.abs(found - powers) > _POWER).any()):
        return None
    if (powers == 0).any() or (np.abs(powers) > 3).any():
        return None
    body = np.exp(L[:, kept] @ powers)
    factor = float(np.median(y / body))
    share = float((np.abs(y - factor * body) <= tolerance + 1e-9 * y).mean())
    if share < within.share:
        return None
    nice = _nice(factor)
    if (np.abs(y - nice * body) <= tolerance + 1e-9 * y).mean() >= share:
        factor = nice
    up = [_power(names[k], p) for k, p in zip(kept, powers, strict=True) if p > 0]
    down = [_power(names[k], -p) for k, p in zip(kept, powers, strict=True) if p < 0]
    head = ([] if factor == 1 else [f"{factor:.4g}"]) + up
    under = "" if not down else f" / {down[0]}" if len(down) == 1 else f" / ({' · '.join(down)})"
    text = (" · ".join(head) or "1") + under
    return Formula(text, tuple(names[k] for k in kept), share, tolerance, within.exact)


def _nice(value: float) -> float:
    """The fraction of small whole numbers that a coefficient means, if it is near one."""
    near = float(Fraction(float(value)).limit_denominator(12))
    return near if abs(near - value) <= 2e-3 * max(1.0, abs(value)) and near else float(value)


def _term(slope: float, name: str, first: bool) -> str:
    size = abs(slope)
    words = name if size == 1 else f"{size:.4g} · {name}"
    if first:
        return f"−{words}" if slope < 0 else words
    return f" {'−' if slope < 0 else '+'} {words}"


def _power(name: str, power: float) -> str:
    return {1.0: name, 2.0: f"{name}²", 3.0: f"{name}³", 0.5: f"√{name}"}.get(
        power, f"{name}^{power:g}"
    )


def _numbers(frame: pl.DataFrame) -> dict[str, Floats]:
    """Columns of numbers, and dates as days."""
    found = numeric_columns(frame)
    for name in frame.columns:
        if frame[name].dtype in (pl.Date, pl.Datetime):
            moments = frame[name].cast(pl.Datetime("us")).to_physical().cast(pl.Float64)
            found[name] = moments.fill_null(float("nan")).to_numpy() / 86_400e6
    return {name: found[name] for name in frame.columns if name in found}


def _differences(table: dict[str, Floats], y: NDArray[Any], name: str) -> Iterator[Finding]:
    """Two columns whose difference alone separates two classes: later than promised, above the limit."""
    levels, codes = np.unique(y, return_inverse=True)
    if len(levels) != 2 or np.bincount(codes).min() < 20:
        return
    whole = {k: x for k, x in table.items() if np.isfinite(x).all() and np.ptp(x) > 0}
    alone = {k: _area(x, codes) for k, x in whole.items()}
    names = sorted(whole, key=lambda k: -alone[k])[:_PAIRED]
    for a, b in combinations([k for k in whole if k in names], 2):
        area = _area(whole[a] - whole[b], codes)
        if area >= _PURE and max(alone[a], alone[b]) < 0.99:
            yield Finding(
                "determined", "serious",
                f"the difference {a} − {b} alone separates the classes of {name} (AUC {area:.4f}): "
                "they look like its definition; leave out what is known only with the target",
                area, (a, b),
            )  # fmt: skip
            return


def _area(x: Floats, codes: NDArray[np.intp]) -> float:
    rank = scipy.stats.rankdata(x)
    b = int(codes.sum())
    area = (rank[codes == 1].sum() - b * (b + 1) / 2) / (b * (len(codes) - b))
    return float(max(area, 1 - area))


def _pairs(frame: pl.DataFrame, y: NDArray[Any], name: str) -> Iterator[Finding]:
    """Two columns of labels that together name the class."""
    _, target = np.unique(y, return_inverse=True)
    k, n = int(target.max()) + 1, len(y)
    usual = float(np.bincount(target).max() / n)
    codes = {}
    for column in frame.columns:
        if frame[column].dtype.is_float():
            continue
        ranks = frame[column].rank("dense").fill_null(0).to_numpy().astype(np.int64)
        if 2 <= len(np.unique(ranks)) <= 50:
            codes[column] = ranks
    pure = {c: _purity(v, target, k) for c, v in codes.items()}
    names = sorted(codes, key=lambda c: -pure[c])[:_PAIRED]
    for a, b in combinations([c for c in codes if c in names], 2):
        both = codes[a] * (codes[b].max() + 1) + codes[b]
        cells = len(np.unique(both))
        if cells > n // 20 or max(pure[a], pure[b]) >= 0.99:
            continue
        found = _purity(both, target, k)
        if found >= _PURE and 1 - found <= 0.01 * (1 - usual):
            yield Finding(
                "determined", "serious",
                f"{a} and {b} together name the class of {name} in {100 * found:.1f} % of rows: "
                "they look like its definition; leave out what is known only with the target",
                found, (a, b),
            )  # fmt: skip
            return


def _purity(groups: NDArray[np.int64], target: NDArray[np.intp], k: int) -> float:
    cells = np.bincount(groups * k + target, minlength=(int(groups.max()) + 1) * k).reshape(-1, k)
    return float(cells.max(1).sum() / len(target))
