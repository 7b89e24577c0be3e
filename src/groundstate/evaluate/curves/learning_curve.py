r"""Learning curves: risk against the number of rows, with bands.

A learning curve is forecast by :math:`a + b\,n^{-c}`; see :func:`power_law`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.display import Displayed
from groundstate.compute.random import Key, RandomState
from groundstate.compute.weight_line.line import WeightLine
from groundstate.errors import DataError
from groundstate.evaluate.curves.power_law import PowerLaw, power_law
from groundstate.evaluate.losses import Loss, loss_name, mean_loss, row_losses
from groundstate.evaluate.metrics import bounds_of
from groundstate.evaluate.rows import columns, n_rows, take, weights_of
from groundstate.evaluate.scores import Scores
from groundstate.evaluate.splits.folds import train_test
from groundstate.evaluate.splits.refits import refits
from groundstate.evaluate.splits.units import RARE, group_parts
from groundstate.math.stats.interval import Interval

Floats = NDArray[np.float64]
Generator = Callable[[np.random.Generator, int], tuple[Any, Any]]
_SHARES = (0.1, 0.2, 0.35, 0.6, 1.0)
_PROBE = 500  # fresh rows at which the spread of predictions is measured


@dataclass(frozen=True)
class LearningCurve(Displayed):
    r"""Risk on seen and on new rows against the number of training rows.

    Attributes
    ----------
    n : (S,)
        Training rows.
    train, test : (S, J)
        Mean loss of each of J repeats.
    variance : (S,)
        Mean over test rows of the variance of the predictions (of the one-hot labels, halved, for
        classes) over training sets of n rows. Subsets of a table of N rows vary
        less than fresh ones; the factor :math:`1 - n/N` is divided out.
    forecast : PowerLaw or None
        None with fewer than three sizes.
    metric : name of the loss
    n_test : rows in a test part
    pool : int or None
        Rows beside the test rows of a repeat, whose parts the training sets are: repeats share
        rows, and bands are as wide as those of folds with so many training rows. None when a
        generator drew them all, so that repeats are independent.
    """

    n: NDArray[np.int64]
    train: Floats = field(repr=False)
    test: Floats = field(repr=False)
    variance: Floats = field(repr=False)
    forecast: PowerLaw | None
    metric: str
    n_test: int
    level: float = 0.95
    pool: int | None = None

    def bands(self) -> dict[str, list[Interval]]:
        """Intervals of the mean training and test risk at each size."""
        return {name: [self._scores(i, name).interval() for i in range(len(self.n))]
                for name in ("train", "test")}  # fmt: skip

    def _scores(self, i: int, name: str) -> Scores:
        n_train = None if self.pool is None else float(self.pool)
        n_test = None if self.pool is None else float(self.n_test)
        values = getattr(self, name)[i]
        return Scores(values, ("fold",), self.metric, n_train, n_test, False, self.level)

    def at(self, n: float) -> Interval:
        """The test risk forecast for n rows."""
        if self.forecast is None:
            raise DataError("a forecast needs three sizes or more; ask for more sizes")
        return self.forecast.at(n).within(bounds_of(self.metric))

    def crossing(self, other: LearningCurve) -> float | None:
        """Number of rows from which on the other model is the better one, or the worse one.

        Where the mean curves cross between two sizes, on a scale of log n; beyond the last size
        where the two forecasts cross, up to 100 times its rows. None when they do not.
        """
        if self.n.tolist() != other.n.tolist():
            raise DataError("two curves cross at sizes they share; pass the same sizes to both")
        gap = self.test.mean(1) - other.test.mean(1)
        at = np.log(self.n.astype(np.float64))
        turns = np.flatnonzero(np.sign(gap[1:]) * np.sign(gap[:-1]) < 0)
        if not len(turns) and self.forecast is not None and other.forecast is not None:
            beyond = np.geomspace(self.n[-1], 100 * self.n[-1], 400)
            gap, at = self.forecast(beyond) - other.forecast(beyond), np.log(beyond)
            turns = np.flatnonzero(np.sign(gap[1:]) * np.sign(gap[:-1]) < 0)
        if not len(turns):
            return None
        i = int(turns[-1])
        return float(math.exp(at[i] + (at[i + 1] - at[i]) * gap[i] / (gap[i] - gap[i + 1])))

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values: sizes, bands, and the forecast at 2n and 4n."""
        ahead = None
        if self.forecast is not None:
            forecast, last = self.forecast, int(self.n[-1])
            points = [{"n": k * last, **forecast.at(k * last).to_dict()} for k in (2, 4)]
            ahead = {"a": forecast.a, "b": forecast.b, "c": forecast.c, "points": points}
        bands = {k: [b.to_dict() for b in v] for k, v in self.bands().items()}
        spread = [None if math.isnan(v) else v for v in self.variance.tolist()]
        return {"metric": self.metric, "n": self.n.tolist(), **bands, "variance": spread,
                "forecast": ahead}  # fmt: skip

    def __str__(self) -> str:
        last = int(self.n[-1])
        text = f"{self.metric} {self.bands()['test'][-1]} at {last} rows"
        if self.forecast is None:
            return text
        return f"{text}, forecast {self.at(2 * last)} at {2 * last} and {self.at(4 * last)} at {4 * last}"

    def draw(self, ax: Any) -> None:
        """Both curves with their bands and the forecast on matplotlib axes."""
        for name, colour in (("train", "#3b6fb6"), ("test", "#d9822b")):
            draw_band(ax, self.n, self.bands()[name], colour, name)
        if self.forecast is not None:
            ahead = np.geomspace(self.n[0], 4 * self.n[-1], 60)
            found = [self.at(float(n)) for n in ahead]
            ax.plot(ahead, [f.estimate for f in found], "--", color="#d9822b", linewidth=1)
            ax.fill_between(ahead, [f.low for f in found], [f.high for f in found],
                            color="grey", alpha=0.15, label=f"forecast {self.forecast}")  # fmt: skip
        ax.set(xscale="log", xlabel="training rows", ylabel=self.metric)
        ax.legend(frameon=False, fontsize=8)


def learning_curve(
    estimator: Any,
    X: Any = None,
    y: Any = None,
    sizes: Sequence[float] | None = None,
    repeats: int = 10,
    *,
    generator: Generator | None = None,
    loss: Loss = None,
    test_size: float = 0.2,
    groups: Any = None,
    sample_weight: Any = None,
    level: float = 0.95,
    n_jobs: int | None = None,
    random_state: Key | RandomState = 0,
) -> LearningCurve:
    """Fit a recipe to more and more rows and forecast what further rows would bring.

    Each repeat sets test rows aside and trains on growing parts of the others (nested, so that a
    larger set holds the smaller). Networks of this library train side by side.

    Parameters
    ----------
    estimator : unfitted
    X, y : a table
    sizes : training rows, or shares of what is left beside the test rows; 10 to 100 % by default
    repeats : J
    generator : ``generator(rng, n) -> (X, y)`` draws fresh rows in place of a table; then sizes
        are rows
    loss : per-row loss, 0-1 or squared by default
    groups : ``(N,)``; test rows are whole groups
    sample_weight : ``(N,)`` of a table; fits and mean losses are weighted

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 5)); y = X.sum(1) + rng.normal(size=300)
    >>> curve = learning_curve(LinearRegression(), X, y)
    >>> curve.n.tolist(), 0.8 < curve.at(480).estimate < 1.3
    ([24, 48, 84, 144, 240], True)
    """
    key, kind = Key.of(random_state), loss_name(estimator, loss)
    weight = None
    if repeats < 2:
        raise DataError(f"a band needs two repeats or more, got {repeats}")
    if generator is not None:
        if sizes is None or min(sizes) < 1:
            raise DataError("with a generator, sizes are numbers of rows; pass them")
        order = np.unique(np.asarray(sizes, np.int64))
        pool, big = None, int(order[-1])
        n_test = max(200, 2 * big)
        # every repeat has test rows of its own; one more draw is what all are asked about
        names = [*(("train", r) for r in range(repeats)), *(("test", r) for r in range(repeats))]
        drawn = [generator(key.fold(*n).numpy(), big if n[0] == "train" else n_test) for n in names]
        drawn.append(generator(key.fold("probe").numpy(), _PROBE))
        X = np.concatenate([np.asarray(d[0]) for d in drawn])
        target = np.concatenate([np.asarray(d[1]) for d in drawn])
        ends = np.cumsum([0, *(len(d[1]) for d in drawn)])
        spans = [np.arange(a, b) for a, b in pairwise(ends.tolist())]
        trains, tests = spans[:repeats], spans[repeats:-1]
        probes = [spans[-1]] * repeats
    else:
        if X is None or y is None:
            raise DataError("pass a table X, y, or a generator of rows")
        target = np.asarray(y)
        weight = None if sample_weight is None else weights_of(sample_weight, n_rows(X))
        trains, tests = shuffled_parts(estimator, X, target, repeats, test_size, groups, key)
        pool = min(len(t) for t in trains)
        order, n_test, probes = _sizes(sizes, pool), min(len(t) for t in tests), tests
    jobs = [(i, r) for i in range(len(order)) for r in range(repeats)]
    rows = [trains[r][: order[i]] for i, r in jobs]
    keys = [key.fold("fit", r) for _, r in jobs]
    models = refits(estimator, X, target, rows, keys, weight=weight, n_jobs=n_jobs)
    train, test = (np.empty((len(order), repeats)) for _ in range(2))
    predicted: dict[int, list[tuple[NDArray[np.intp], Any]]] = {}
    for (i, r), model, own in zip(jobs, models, rows, strict=True):
        held = take(X, tests[r])
        seen, new = (None, None) if weight is None else (weight[own], weight[tests[r]])
        train[i, r] = mean_loss(row_losses(model, take(X, own), target[own], kind), seen)
        test[i, r] = mean_loss(row_losses(model, held, target[tests[r]], kind), new)
        asked = held if probes is tests else take(X, probes[r])
        predicted.setdefault(i, []).append((probes[r], np.asarray(model.predict(asked))))
    # training sets of n of the N rows differ by 1 − n/N of what fresh ones do
    scale = 1 - order / n_rows(X) if generator is None else np.ones(len(order))
    spread = (
        np.array([_variance(predicted[i], kind == "zero_one") for i in range(len(order))]) / scale
    )
    name = kind if isinstance(kind, str) else "loss"
    forecast = None
    if len(order) >= 3:
        # repeats of one table share rows: their mean is less sure than independent ones
        widen = 1.0 if pool is None else math.sqrt(1 + repeats * n_test / pool)
        forecast = power_law(order, test, level=level, widen=widen, random_state=key)
    return LearningCurve(order, train, test, spread, forecast, name, n_test, level, pool)


def _sizes(sizes: Sequence[float] | None, pool: int) -> NDArray[np.int64]:
    given = np.asarray(_SHARES if sizes is None else sizes, np.float64)
    if not len(given) or (given <= 0).any():
        raise DataError(f"sizes are positive numbers of rows or shares, got {list(given)}")
    if given.max() <= 1:
        given = np.maximum(np.round(given * pool), 2)
    found = np.unique(given.astype(np.int64))
    if found[-1] > pool:
        raise DataError(f"there are {pool} training rows beside the test rows, not {found[-1]}")
    return found


def shuffled_parts(
    estimator: Any, X: Any, y: NDArray[Any], repeats: int, share: float, groups: Any, key: Key
) -> tuple[list[NDArray[np.intp]], list[NDArray[np.intp]]]:
    """Shuffled training and test rows of each repeat, cut from the weight line."""
    from sklearn.base import is_classifier

    classifier = is_classifier(estimator)
    counts = np.unique(y, return_counts=True)[1] if classifier else np.zeros(1)
    even = counts.min() >= RARE and len(counts) <= round(share * n_rows(X))
    line = WeightLine.of(*columns(X), y)
    trains, tests = [], []
    for r in range(repeats):
        own = key.fold("splits", r)
        if groups is None:
            test = train_test(X, y, test=share, key=own, stratify=bool(even)).test_rows
        else:
            test = np.flatnonzero(group_parts(X, groups, (1 - share, share), own))
        train = np.setdiff1d(line.order(key.fold("order", r)), test, assume_unique=True)
        trains.append(_all_classes_first(train, y) if classifier else train)
        tests.append(test)
    return trains, tests


def _all_classes_first(rows: NDArray[np.intp], y: NDArray[Any]) -> NDArray[np.intp]:
    """The same rows, one of each class in front, so that small parts know every class."""
    first = np.sort(np.unique(y[rows], return_index=True)[1])
    return np.concatenate([rows[first], np.delete(rows, first)])


def _variance(predicted: list[tuple[NDArray[np.intp], Any]], classes: bool) -> float:
    """Mean over rows of the variance of the answers to them, over fits that did not see them."""
    rows = np.concatenate([r for r, _ in predicted])
    answers = np.concatenate([np.asarray(a) for _, a in predicted])
    if classes:
        answers = np.eye(len(labels := np.unique(answers)))[np.searchsorted(labels, answers)]
    elif answers.dtype.kind not in "fiub":
        return math.nan
    answers = answers.reshape(len(rows), -1).astype(np.float64)
    place = np.unique(rows, return_inverse=True)[1].reshape(-1)
    times = np.bincount(place)
    many = times > 1
    if not many.any():
        return math.nan
    total = 0.0
    for column in answers.T:
        mean = np.bincount(place, column) / times
        total += float(
            ((np.bincount(place, (column - mean[place]) ** 2))[many] / (times[many] - 1)).mean()
        )
    return total / 2 if classes else total


def draw_band(ax: Any, x: Any, bands: list[Interval], colour: str, name: str) -> None:
    ax.plot(x, [b.estimate for b in bands], "o-", color=colour, label=name, markersize=3)
    ax.fill_between(x, [b.low for b in bands], [b.high for b in bands], color=colour, alpha=0.2)
