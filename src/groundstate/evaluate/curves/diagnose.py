r"""Under- or overfitting, in words.

Each row is judged twice: by fits that saw it, and by the fit of a fold that did not. The mean
difference is the gap; what fits lose on rows they saw beyond the noise is the excess.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.display import Displayed
from groundstate.compute.random import Key, RandomState
from groundstate.errors import DataError
from groundstate.evaluate.curves.remedies import Remedy, remedies
from groundstate.evaluate.losses import Loss, loss_name, row_losses
from groundstate.evaluate.rows import n_rows, take, weights_of
from groundstate.evaluate.splits.cross_validate import _folds
from groundstate.evaluate.splits.refits import refits
from groundstate.evaluate.theory.noise_floor import Floor, noise_floor
from groundstate.math.stats.bootstrap import bootstrap
from groundstate.math.stats.interval import Interval, checked_level
from groundstate.math.stats.means import mean_interval

Floats = NDArray[np.float64]
SHARE = 0.2  # of the test risk: a larger gap, or a larger excess over the floor, matters
_WORDS = {
    "good": "The model fits well: what is left is mostly noise.",
    "underfit": "The model is too simple: it errs on its own training rows by more than the noise.",
    "overfit": "The model errs measurably more on new rows than on its own: it learned their noise.",
    "both": "The model misses structure and still fits its training rows better than new ones.",
    "too little data to say": "The rows are too few to tell a gap from chance.",
}


@dataclass(frozen=True)
class Diagnosis(Displayed):
    """What is wrong with a fit, if anything.

    Attributes
    ----------
    verdict : ``"good"``, ``"underfit"``, ``"overfit"``, ``"both"`` or ``"too little data to say"``
    train, test : Interval
        Mean loss of rows by fits that saw them, and by the fit that did not.
    gap : Interval
        Test minus train, row by row.
    excess : Interval or None
        Train risk minus the floor.
    floor : Floor or None
        The noise, where it could be estimated.
    remedies : tuple of Remedy
    metric : name of the loss
    """

    verdict: str
    train: Interval
    test: Interval
    gap: Interval
    excess: Interval | None
    floor: Floor | None
    remedies: tuple[Remedy, ...]
    metric: str
    n: int
    losses: tuple[Floats, Floats] = field(repr=False)

    def __str__(self) -> str:
        lines = [
            f"{self.verdict}: {_WORDS[self.verdict]}",
            f"{self.metric} {self.train} on seen and {self.test} on new rows, gap {self.gap}",
        ]
        if self.floor is not None:
            lines.append(f"noise {self.floor}")
        return "\n".join([*lines, *(f"- {remedy}" for remedy in self.remedies)])

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "verdict": self.verdict,
            "sentence": _WORDS[self.verdict],
            "metric": self.metric,
            "train": self.train.to_dict(),
            "test": self.test.to_dict(),
            "gap": self.gap.to_dict(),
            "excess": None if self.excess is None else self.excess.to_dict(),
            "floor": None
            if self.floor is None
            else {**self.floor.risk.to_dict(), "method": self.floor.method},
            "remedies": [
                {
                    "name": r.name,
                    "command": r.command,
                    "gap": r.gap,
                    "risk": r.risk,
                    "fell": r.fell,
                    "change": None if r.change is None else r.change.to_dict(),
                }
                for r in self.remedies
            ],
        }


def diagnose(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    loss: Loss = None,
    cv: Any = 5,
    groups: Any = None,
    sample_weight: Any = None,
    floor: float | None = None,
    try_remedies: bool = True,
    level: float = 0.95,
    n_jobs: int | None = None,
    random_state: Key | RandomState = 0,
) -> Diagnosis:
    """Say whether a recipe fits too little, too much, or well, and what to try.

    ============  ==============================================================================
    overfit       the interval of the gap is above 0 and the gap above 20 % of the test risk
    underfit      the training risk is above the floor, the gap is small
    both          a large gap and a training risk above the floor
    good          neither
    too little    the gap is above 20 % of the test risk but its interval holds 0
    ============  ==============================================================================

    Parameters
    ----------
    estimator : unfitted
    loss : per-row loss, 0-1 or squared by default
    cv : folds, or a splitter
    sample_weight : ``(N,)``; fits and mean losses are weighted
    floor : the best risk known, in place of the noise that :func:`noise_floor` finds
    try_remedies : fit what the remedies propose and see whether it helped

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, size=(300, 1))
    >>> diagnose(LinearRegression(), X, np.sin(X[:, 0] * 2) + rng.normal(size=300) / 5).verdict
    'underfit'
    >>> diagnose(LinearRegression(), X, X[:, 0] + rng.normal(size=300) / 5).verdict
    'good'
    """
    checked_level(level)
    target, key = np.asarray(y), Key.of(random_state)
    n, kind = n_rows(X), loss_name(estimator, loss)
    if n < 4 or target.shape[:1] != (n,):
        raise DataError(f"a diagnosis needs four rows with one target each, got {target.shape}")
    with warnings.catch_warnings():  # rare classes fall where they fall
        warnings.filterwarnings("ignore", "The least populated class")
        number = min(cv, n) if isinstance(cv, int) else cv
        weight = None if sample_weight is None else weights_of(sample_weight, n)
        folds = list(_folds(estimator, X, target, number, 1, groups, None, 0, key, weight))
    seen, new = _judged(estimator, X, target, folds, kind, key, n_jobs, weight)
    rows = np.flatnonzero(np.isfinite(seen) & np.isfinite(new))
    if len(rows) < 2:
        raise DataError("the folds leave fewer than two rows both trained and tested")
    cluster = None if groups is None else np.asarray(groups)[rows]
    own = None if weight is None else weight[rows]
    train, test = (_paired(v[rows], cluster, level, key.fold("risk"), own) for v in (seen, new))
    gap = _paired(new[rows] - seen[rows], cluster, level, key.fold("gap"), own)
    least, excess = _excess(X, target, seen[rows], kind, floor, level, cluster, own)
    verdict = _verdict(train, test, gap, excess, len(rows))
    found = Diagnosis(
        verdict, train, test, gap, excess, least, (), kind if isinstance(kind, str) else "loss",
        len(rows), (seen, new),
    )  # fmt: skip
    over = verdict in ("overfit", "both", "too little data to say")
    tried = []
    for remedy in remedies(estimator, over, verdict in ("underfit", "both")):
        if try_remedies:
            remedy = _tried(
                remedy, estimator, found, X, target, folds, kind, key, n_jobs, groups, weight
            )
        tried.append(remedy)
    return replace(found, remedies=tuple(tried))


def _judged(
    estimator: Any, X: Any, y: NDArray[Any], folds: Any, loss: Loss, key: Key, n_jobs: int | None,
    weight: Floats | None,
) -> tuple[Floats, Floats]:  # fmt: skip
    """Mean loss of each row by fits that saw it and by fits that did not.  # (n,), (n,)"""
    keys = [key.fold("fold", i) for i in range(len(folds))]
    trains = [train for train, _ in folds]
    models = refits(estimator, X, y, trains, keys, weight=weight, n_jobs=n_jobs)
    sums, times = np.zeros((2, len(y))), np.zeros((2, len(y)))
    for model, parts in zip(models, folds, strict=True):
        for side, rows in enumerate(parts):
            sums[side, rows] += row_losses(model, take(X, rows), y[rows], loss)
            times[side, rows] += 1
    with np.errstate(invalid="ignore"):
        seen, new = sums / times
    return seen, new


def _paired(
    gaps: Floats, cluster: Any, level: float, key: Key, weight: Floats | None = None
) -> Interval:
    """Of the mean of differences that may be very uneven: the bootstrap, not Student's."""
    if np.ptp(gaps) == 0:
        value = float(gaps[0])
        return Interval(value, value, value, level, "bca")
    return bootstrap(
        "mean", gaps, level=level, groups=cluster, sample_weight=weight, random_state=key
    ).interval


def _excess(
    X: Any, y: NDArray[Any], seen: Floats, loss: Loss, given: float | None, level: float,
    cluster: Any, weight: Floats | None,
) -> tuple[Floor | None, Interval | None]:  # fmt: skip
    least: Floor | None
    if given is not None:
        least = Floor(Interval(given, given, given, level, "given"), "given")
    elif isinstance(loss, str) and loss in ("squared", "absolute", "zero_one") and y.ndim == 1:
        least = noise_floor(X, y, loss, level)
    else:
        least = None
    if least is None:
        return None, None
    train = mean_interval(seen, level, cluster, sample_weight=weight)
    low, high = least.risk
    middle = train.estimate - least.risk.estimate
    # both ends are estimates on the same rows: their errors are taken as independent
    half_low = float(np.hypot(train.estimate - train.low, high - least.risk.estimate))
    half_high = float(np.hypot(train.high - train.estimate, least.risk.estimate - low))
    return least, Interval(middle, middle - half_low, middle + half_high, level, "difference")


def _verdict(
    train: Interval, test: Interval, gap: Interval, excess: Interval | None, n: int
) -> str:
    limit = SHARE * test.estimate
    wide = gap.estimate > limit and gap.estimate > 0
    if wide and gap.low <= 0:
        return "too little data to say"
    missed = excess is not None and excess.low > 0 and excess.estimate > SHARE * train.estimate
    if wide:
        return "both" if missed else "overfit"
    return "underfit" if missed else "good"


def _tried(
    remedy: Remedy, estimator: Any, found: Diagnosis, X: Any, y: NDArray[Any], folds: Any,
    loss: Loss, key: Key, n_jobs: int | None, groups: Any, weight: Floats | None,
) -> Remedy:  # fmt: skip
    """The remedy with what it did; more data is judged by what half of the data loses."""
    recipe, parts = remedy.estimator, folds
    if recipe is None:
        recipe, parts = estimator, [
            (key.fold("half", i).numpy().permutation(train)[: max(2, len(train) // 2)], test)
            for i, (train, test) in enumerate(folds)
        ]  # fmt: skip
    try:
        seen, new = _judged(recipe, X, y, parts, loss, key, n_jobs, weight)
    except ValueError:  # a setting that this table does not allow, or half without a class
        return remedy
    before, after = found.losses[1], new
    if remedy.estimator is None:
        before, after = after, before
    change = after - before
    known = np.isfinite(change)
    own = None if weight is None else weight[known]
    cluster = None if groups is None else np.asarray(groups)[known]
    moved = _paired(change[known], cluster, found.gap.level, key.fold("remedy"), own)
    risk, gap = _mean(new, weight), _mean(new - seen, weight)
    if remedy.estimator is None:  # what twice the rows would do is not known, only what half does
        return replace(remedy, fell=moved.high < 0, change=moved)
    return replace(remedy, gap=gap, risk=risk, fell=moved.high < 0, change=moved)


def _mean(values: Floats, weight: Floats | None) -> float:
    """Mean over the rows that have a value."""
    known = np.isfinite(values)
    return float(np.average(values[known], weights=None if weight is None else weight[known]))
