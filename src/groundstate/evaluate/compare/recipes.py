r"""Two learning recipes, not two fits: which wins on training sets one has not seen yet?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import scipy.stats
from numpy.typing import NDArray

from groundstate.compute.display import Displayed
from groundstate.compute.random import Key, RandomState
from groundstate.compute.weight_line.line import WeightLine
from groundstate.errors import DataError
from groundstate.evaluate.losses import Loss, loss_name, row_losses
from groundstate.evaluate.rows import columns, n_rows, take
from groundstate.evaluate.splits.cross_validate import _folds
from groundstate.evaluate.splits.refits import refits
from groundstate.math.stats.compare import compare_models
from groundstate.math.stats.interval import Interval
from groundstate.math.stats.result import TestResult

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
Generator = Callable[[np.random.Generator], tuple[Any, Any]]


@dataclass(frozen=True)
class LearnerComparison(Displayed):
    """Recipe A against recipe B over training sets.

    Attributes
    ----------
    difference : Interval
        Mean loss of A minus that of B; negative favours A.
    p : float
    p_plain : float or None
        What a plain t test on the folds would say; they share rows, so it is too small.
    wins : float
        Chance that A beats B on a new training set: share of training sets, ties half.
    losses : (J, 2)
        Test loss of both on each training set.
    test : TestResult
    design : ``"cv"``, ``"oob"`` or ``"generator"``
    """

    difference: Interval
    p: float
    p_plain: float | None
    wins: float
    losses: Floats = field(repr=False)
    test: TestResult = field(repr=False)
    design: str

    def __str__(self) -> str:
        return (
            f"A minus B {self.difference}, {self.test.method} p {self.p:.3g} over "
            f"{len(self.losses)} training sets; P(A beats B on a new one) {self.wins:.2f}"
        )


def compare_learners(
    a: Any,
    b: Any,
    X: Any = None,
    y: Any = None,
    design: Literal["cv", "oob", "generator"] = "cv",
    *,
    generator: Generator | None = None,
    n: int = 50,
    cv: int = 5,
    repeats: int = 4,
    loss: Loss = None,
    groups: Any = None,
    same_seeds: bool = True,
    level: float = 0.95,
    n_jobs: int | None = None,
    random_state: Key | RandomState = 0,
) -> LearnerComparison:
    """Fit two recipes to the same training sets with the same seeds, and compare their losses.

    ==========  ===============================================================================
    cv          repeated folds, Nadeau and Bengio's corrected t
    oob         bootstrap resamples; losses on left-out rows, averaged by row, paired over rows
    generator   fresh training and test sets, paired t
    ==========  ===============================================================================

    Parameters
    ----------
    a, b : unfitted recipes
    generator : ``generator(rng) -> (X, y)``; for ``design="generator"``
    n : training sets of ``"oob"`` and ``"generator"``
    cv, repeats : of ``"cv"``; with groups one repeat
    loss : per-row loss, 0-1 or squared by default
    same_seeds : False gives the two unrelated seeds

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.dummy import DummyRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 2)); y = X[:, 0] + 0.5 * rng.normal(size=80)
    >>> found = compare_learners(Ridge(), DummyRegressor(), X, y)
    >>> found.p < 0.01, found.wins
    (True, 1.0)
    """
    if design not in ("cv", "oob", "generator"):
        raise ValueError(f"design must be 'cv', 'oob' or 'generator', got {design!r}")
    key, kind = Key.of(random_state), loss_name(a, loss)
    if (design == "generator") != (generator is not None):
        raise DataError("pass a generator with design='generator', and a table X, y otherwise")
    names = ("both", "both") if same_seeds else ("a", "b")
    if generator is not None:
        table = np.array(
            [_fresh(generator, (a, b), names, kind, key.fold("set", i)) for i in range(n)]
        )
        test = compare_models(table[:, 0], table[:, 1], "t", level=level)
        return _found(table, test, None, design, level)
    if X is None or y is None:
        raise DataError("pass a table X, y, or a generator of tables")
    target, size = np.asarray(y), n_rows(X)
    if design == "cv":
        folds = list(
            _folds(a, X, target, cv, repeats if groups is None else 1, groups, None, 0, key)
        )
    else:
        folds = _resamples(X, target, groups, n, key)
    per_row = []
    for model, name in zip((a, b), names, strict=True):
        keys = [key.fold(name, i) for i in range(len(folds))]
        models = refits(model, X, target, [f[0] for f in folds], keys, n_jobs=n_jobs)
        per_row.append(
            [
                row_losses(fitted, take(X, rows), target[rows], kind)
                for fitted, (_, rows) in zip(models, folds, strict=True)
            ]
        )
    table = np.array([[v.mean() for v in losses] for losses in per_row]).T
    if design == "cv":
        n_test = float(np.mean([len(t) for _, t in folds]))
        n_train = float(np.mean([len(t) for t, _ in folds]))
        test = compare_models(table[:, 0], table[:, 1], n_train=n_train, n_test=n_test, level=level)
        plain = compare_models(
            table[:, 0], table[:, 1], "t", n_train=n_train, n_test=n_test, unsafe=True
        )
        return _found(table, test, plain.pvalue, design, level)
    sums, times = np.zeros((2, size)), np.zeros(size)
    for j, (_, rows) in enumerate(folds):
        times[rows] += 1
        for side in (0, 1):
            sums[side, rows] += per_row[side][j]
    seen = times > 0
    labels = None if groups is None else np.asarray(groups)[seen]
    means = sums[:, seen] / times[seen]
    test = compare_models(means[0], means[1], "t", labels, level=level)
    return _found(table, test, None, design, level)


def _found(
    table: Floats, test: TestResult, plain: float | None, design: str, level: float
) -> LearnerComparison:
    gap = table[:, 0] - table[:, 1]
    wins = float((gap < 0).mean() + (gap == 0).mean() / 2)
    assert test.estimate is not None and test.interval is not None
    found = Interval(test.estimate, *test.interval, level, test.method)
    return LearnerComparison(found, test.pvalue, plain, wins, table, test, design)


def _resamples(X: Any, y: NDArray[Any], groups: Any, n: int, key: Key) -> list[tuple[Rows, Rows]]:
    unit = None if groups is None else np.unique(groups, return_inverse=True)[1].reshape(-1)
    line = WeightLine.of(*columns(X), y) if unit is None else WeightLine.of(np.unique(unit))
    out = []
    for i in range(n):
        hits = line.bootstrap(key.fold("resample", i))
        hits = hits if unit is None else hits[unit]
        left = np.flatnonzero(hits == 0)
        if len(left):
            out.append((np.repeat(np.arange(len(hits)), hits), left))
    if len(out) < 2:
        raise DataError("the resamples leave no rows out; bring more rows")
    return out


def _fresh(
    generator: Generator, models: tuple[Any, Any], names: tuple[str, str], loss: Loss, key: Key
) -> tuple[float, float]:
    X, y = generator(key.fold("train").numpy())
    X_test, y_test = generator(key.fold("test").numpy())
    target, rows = np.asarray(y), np.arange(n_rows(X))
    first, second = (
        row_losses(
            refits(model, X, target, [rows], [key.fold(name)])[0], X_test, y_test, loss
        ).mean()
        for model, name in zip(models, names, strict=True)
    )
    return float(first), float(second)


def five_by_two(a: Any, b: Any, X: Any, y: Any, *, loss: Loss = None,
                random_state: Key | RandomState = 0) -> TestResult:  # fmt: skip
    r"""Alpaydin's combined 5 × 2 cross-validated F test,
    :math:`F = \sum_{ij} d_{ij}^2 / (2\sum_i s_i^2)` with 10 and 5 degrees of freedom.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> X = np.arange(40.0)[:, None]
    >>> five_by_two(Ridge(), Ridge(), X, X[:, 0]).pvalue
    1.0
    """
    found = compare_learners(a, b, X, y, cv=2, repeats=5, loss=loss, random_state=random_state)
    d = (found.losses[:, 0] - found.losses[:, 1]).reshape(5, 2)
    spread = float(np.square(d - d.mean(1, keepdims=True)).sum())
    total = float(np.square(d).sum())
    f = total / (2 * spread) if spread > 0 else (0.0 if total == 0 else np.inf)
    return TestResult(
        f, float(scipy.stats.f.sf(f, 10, 5)), "both recipes are equally good", "5x2 cv F",
        (10.0, 5.0), "greater", float(d.mean()), n=n_rows(X),
    )  # fmt: skip
