r"""Importance of columns: how much worse held-out predictions become when a column is shuffled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.stats
from numpy.typing import NDArray
from sklearn.base import is_classifier

from groundstate.compute.display import Displayed
from groundstate.compute.random import Key, RandomState
from groundstate.compute.weight_line.hashing import row_hash
from groundstate.errors import DataError
from groundstate.evaluate.explain.association import column_groups
from groundstate.evaluate.frames import frame_of
from groundstate.evaluate.metrics import metric as metric_of
from groundstate.evaluate.predictions import Prediction
from groundstate.evaluate.rows import Floats, columns, n_rows, take, weights_of
from groundstate.math.stats.interval import Interval
from groundstate.models.shapley.game import Game, game

_CELLS = 200_000  # shuffled rows that are predicted at once
LOSSES = ("brier", "log_loss", "accuracy", "mse", "mae")  # means over rows


@dataclass(frozen=True)
class Importance(Displayed):
    """Columns or groups of them, the most important first.

    Attributes
    ----------
    groups : tuple of tuples of column names
    intervals : tuple of Interval
        Rise of the loss, or fall of the score, when the group is shuffled.
    loss : str
        Name of the loss.
    base : float
        The loss, or score, of the rows as they are.
    each : (groups, repeats) the rises, one per shuffle
    """

    groups: tuple[tuple[str, ...], ...]
    intervals: tuple[Interval, ...]
    loss: str
    base: float
    n_rows: int
    each: Floats

    def __iter__(self) -> Any:
        return iter(zip(self.groups, self.intervals, strict=True))

    def __len__(self) -> int:
        return len(self.groups)

    def __getitem__(self, column: str) -> Interval:
        for group, found in self:
            if column in group:
                return found
        raise KeyError(column)

    def _facts(self) -> dict[str, object]:
        return {"loss": self.loss, "base": self.base, "rows": self.n_rows}

    def _table(self) -> Any:
        rows = [(", ".join(g), i.estimate, i.low, i.high) for g, i in self]
        return ("columns", "rise", "low", "high"), rows

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a report."""
        return {
            "loss": self.loss,
            "base": self.base,
            "rows": self.n_rows,
            "repeats": int(self.each.shape[1]),
            "columns": [
                {"columns": list(g), "value": i.estimate, "lo": i.low, "hi": i.high}
                for g, i in self
            ],
        }


def permutation_importance(
    model: Any,
    X: Any,
    y: Any,
    *,
    groups: str | Sequence[Sequence[str]] | Mapping[str, Sequence[str]] | None = "auto",
    metric: str | None = None,
    n_repeats: int = 5,
    sample_weight: Any = None,
    level: float = 0.95,
    threshold: float = 0.8,
    random_state: Key | RandomState = 0,
) -> Importance:
    r"""How much the loss of a fitted model rises when columns are shuffled among the rows.

    .. math:: I_G = \frac{1}{R}\sum_r \frac{1}{W}\sum_i w_i [\ell(y_i, f(x_i^{\pi_r(G)})) - \ell(y_i, f(x_i))]

    The rows must be ones the model has not learned from. A column that goes with others is
    replaced by them when it is shuffled alone and looks useless, so such columns are shuffled
    together as a group. Rows crossed with shuffles are a two-way table of rises; the interval is
    Student's with the variance of its mean,
    :math:`(MS_\text{rows} + MS_\text{shuffles} - MS_\text{rest})/(WR)`, so that it holds for other rows
    and for other shuffles.

    Parameters
    ----------
    model
        A fitted `TablePredictor`, whose columns are those of the table, or any estimator.
    X, y
        Held-out rows and their targets.
    groups
        ``"auto"`` shuffles columns together whose association is above ``threshold`` (see
        :func:`association`), None each alone; or the groups by name.
    metric
        A loss or score that is a mean over rows (``brier``, ``log_loss``, ``accuracy``, ``mse``,
        ``mae``); a proper one by default: squared error of values, and of probabilities (the Brier
        score, which is bounded: no single row decides).
    n_repeats
        Shuffles of each group.
    sample_weight
        Weights of rows; a weight of 2 is exactly the row twice where weights are whole numbers.

    Examples
    --------
    >>> from groundstate import Ridge
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 3)); y = 2 * X[:, 0] + 0.1 * rng.normal(size=300)
    >>> found = permutation_importance(Ridge().fit(X[:200], y[:200]), X[200:], y[200:])
    >>> found.groups[0], found["x0"].low > 4, found["x2"].high < 0.1
    (('x0',), True, True)
    """
    n = n_rows(X)
    target = np.asarray(y)
    if target.shape != (n,):
        raise DataError(f"y has shape {target.shape}; expected one target per row, ({n},)")
    if n < 2 or n_repeats < 1:
        raise DataError(f"importance needs 2 rows and 1 shuffle, got {n} and {n_repeats}")
    weight = weights_of(sample_weight, n)
    key = Key.of(random_state)
    hashes = row_hash(*columns(X), target)
    order = np.lexsort([np.arange(n), hashes])  # shuffles go by content: any order of rows is alike
    if (weight == np.round(weight)).all():
        order = np.repeat(order, weight[order].astype(np.intp))
        weight = np.ones(len(order))
    else:
        order = order[weight[order] > 0]
        weight = weight[order]
    X, target = take(X, order), target[order]
    played = game(model, X, take(X, np.arange(1)))
    members = _groups(played, X, groups, threshold)
    lossy = _Loss(model, played, target, metric)
    base = lossy(played.answer(played.cells))
    rises = np.stack([
        _rises(played, lossy, base, group, n_repeats, weight, key.fold("shuffle", *group))
        for group in members
    ])  # (G, R, N)  # fmt: skip
    W = float(weight.sum())
    found = [_interval(part, weight, level) for part in rises]
    ranked = sorted(range(len(members)), key=lambda g: (-found[g].estimate, members[g]))
    return Importance(
        tuple(members[g] for g in ranked),
        tuple(found[g] for g in ranked),
        lossy.name,
        float(lossy.sign * (weight @ base) / W),
        n,
        (rises[ranked] @ weight) / W,
    )


class _Loss:
    """The loss of each row from what the game's answers are."""

    def __init__(self, model: Any, played: Game, y: NDArray[Any], wanted: str | None) -> None:
        classes = is_classifier(model)
        usual = ("brier" if played.units == "probability" else "accuracy") if classes else "mse"
        self.name = usual if wanted is None else wanted
        self.measure = metric_of(self.name)
        if not self.measure.is_mean:
            raise DataError(f"{self.name} is no mean over rows; choose one of {', '.join(LOSSES)}")
        self.classes = np.array(played.outputs) if classes else None
        self.sign = -1.0 if self.measure.greater_is_better else 1.0
        if classes:
            labels = np.asarray(model.classes_)
            unknown = np.setdiff1d(y, labels)
            if len(unknown):
                raise DataError(f"the model knows no class {unknown[0]!s}; leave such rows out")
            self.classes = labels
            self.truth = np.searchsorted(labels, y)
        else:
            self.truth = y.astype(np.float64)

    def __call__(self, predicted: Floats, times: int = 1) -> Floats:
        truth = np.tile(self.truth, times)
        if self.classes is None:
            return self.sign * self.measure.per_row(truth, Prediction(predicted[:, 0]))
        if predicted.shape[1] == 1:
            predicted = np.concatenate([-predicted, predicted], 1)
        values = np.argmax(predicted, 1)
        table = predicted if self.measure.needs == "probability" else None
        return self.sign * self.measure.per_row(
            truth, Prediction(values, table, table, self.classes)
        )


def _groups(played: Game, X: Any, given: Any, threshold: float) -> list[tuple[str, ...]]:
    owned = dict(zip(played.names, played.owned(), strict=True))
    if given == "auto":
        frame = frame_of(X)
        used = [name for name in played.names if len(owned[name])]
        named = frame.select(used) if set(used) <= set(frame.columns) else frame
        return column_groups(named, threshold)
    if given is None:
        return [(name,) for name in played.names if len(owned[name])]
    chosen = given.values() if isinstance(given, Mapping) else given
    found = [tuple(str(name) for name in group) for group in chosen]
    unknown = {name for group in found for name in group} - set(played.names)
    if unknown:
        raise DataError(f"no column {min(unknown)!r}; there are {', '.join(played.names[:20])}")
    return found


def _rises(
    played: Game, lossy: _Loss, base: Floats, group: tuple[str, ...], repeats: int,
    weight: Floats, key: Key,
) -> Floats:  # fmt: skip
    """Rise of every row's loss in every shuffle, (R, N)."""
    n, draw = len(base), key.numpy()
    place = {name: p for p, name in enumerate(played.names)}
    cells = np.flatnonzero(np.isin(played.players, [place[name] for name in group]))
    if not len(cells):
        return np.zeros((repeats, n))
    if (weight == weight[0]).all():
        donors = np.stack([draw.permutation(n) for _ in range(repeats)])
    else:  # a row lends its cells as often as it weighs
        ends = np.cumsum(weight) / weight.sum()
        points = (np.arange(n) + draw.random((repeats, 1))) / n
        donors = np.minimum(np.searchsorted(ends, points), n - 1)
        donors = draw.permuted(donors, axis=1)
    out, at_once = np.empty((repeats, n)), max(1, _CELLS // n)
    for lo in range(0, repeats, at_once):
        part = donors[lo : lo + at_once]
        mixed = np.repeat(played.cells[None], len(part), 0)  # (r, n, p)
        mixed[:, :, cells] = played.cells[part][:, :, cells]
        predicted = played.asked(mixed.reshape(-1, mixed.shape[-1]))
        out[lo : lo + at_once] = lossy(predicted, len(part)).reshape(len(part), n) - base
    return out


def _interval(rises: Floats, weight: Floats, level: float) -> Interval:
    """Mean of a table of rows and shuffles, with Student's interval for both."""
    repeats = len(rises)
    W = float(weight.sum())
    by_row, by_shuffle = rises.mean(0), rises @ weight / W
    middle = float(by_shuffle.mean())
    free = max(W - 1, 1.0)
    rows = repeats * float(weight @ (by_row - middle) ** 2) / free
    variance = rows / (W * repeats)
    if repeats > 1:
        shuffles = W * float(((by_shuffle - middle) ** 2).sum()) / (repeats - 1)
        rest = rises - by_row - by_shuffle[:, None] + middle
        noise = float((rest**2 @ weight).sum()) / (free * (repeats - 1))
        variance += max(0.0, shuffles - noise) / (W * repeats)
    half = float(scipy.stats.t.ppf((1 + level) / 2, free)) * float(np.sqrt(variance))
    return Interval(middle, middle - half, middle + half, level, "student, rows and shuffles")


def mean_over_models(parts: Sequence[Importance], level: float = 0.95) -> Importance:
    """One importance of models that judged parts of the rows, such as the folds of a cross-validation."""
    if not parts:
        raise DataError("there is no importance to average")
    total = float(sum(part.n_rows for part in parts))
    share = [part.n_rows / total for part in parts]
    found = {}
    for group in parts[0].groups:
        own = [part.intervals[part.groups.index(group)] for part in parts]
        middle = sum(s * i.estimate for s, i in zip(share, own, strict=True))
        half = np.sqrt(sum((s * i.width / 2) ** 2 for s, i in zip(share, own, strict=True)))
        found[group] = Interval(middle, middle - half, middle + half, level, own[0].method)
    ranked = sorted(found, key=lambda g: (-found[g].estimate, g))
    each = np.stack(
        [
            sum(s * part.each[part.groups.index(g)] for s, part in zip(share, parts, strict=True))
            for g in ranked
        ]
    )
    base = float(sum(s * part.base for s, part in zip(share, parts, strict=True)))
    return Importance(
        tuple(ranked), tuple(found[g] for g in ranked), parts[0].loss, base, int(total), each
    )


__all__ = ["Importance", "mean_over_models", "permutation_importance"]
