r"""Never alone: a model beside the answers that need no model.

.. math:: \text{skill} = 1 - \frac{\bar\ell}{\bar\ell_\text{dummy}}
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.display import Displayed
from groundstate.compute.random import Key, RandomState
from groundstate.errors import DataError
from groundstate.evaluate.fitting import fit_clone
from groundstate.evaluate.losses import Loss, loss_name, row_losses
from groundstate.evaluate.metrics.base import bounds_of
from groundstate.evaluate.rows import n_rows, sides, take, weights_of
from groundstate.evaluate.splits.three_way import split as split_rows
from groundstate.math.stats.bootstrap import interval_of, mean_acceleration
from groundstate.math.stats.interval import Interval, checked_level
from groundstate.math.stats.means import mean_interval
from groundstate.math.stats.resample import Cells, merge

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Baseline(Displayed):
    """One competitor on the test rows.

    Attributes
    ----------
    name : ``"model"``, ``"dummy"``, ``"stump"`` or ``"linear"``
    loss : Interval
        Mean loss.
    skill : Interval
        1 − loss/loss of the dummy, rows drawn jointly.
    """

    name: str
    loss: Interval
    skill: Interval
    losses: Floats = field(repr=False)


@dataclass(frozen=True)
class Baselines(Displayed):
    """A model beside simple ones, judged on the same rows.

    Attributes
    ----------
    entries : tuple of Baseline
        The model first (where there is one), then dummy, stump and linear model.
    metric : name of the loss
    """

    entries: tuple[Baseline, ...]
    metric: str

    def __iter__(self) -> Iterator[Baseline]:
        return iter(self.entries)

    def __getitem__(self, name: str) -> Baseline:
        for entry in self.entries:
            if entry.name == name:
                return entry
        raise DataError(f"no baseline is called {name!r}; there are {[e.name for e in self]}")

    @property
    def skill(self) -> Interval:
        """Of the model, or of the linear baseline when there is no model."""
        return (self.entries[0] if self.entries[0].name == "model" else self["linear"]).skill

    @property
    def beats_dummy(self) -> bool:
        """Whether the whole interval of the skill is above 0."""
        return self.skill.low > 0

    @property
    def exit_status(self) -> int:
        """0, or 3 when the model is not better than the dummy."""
        return 0 if self.beats_dummy else 3

    def __str__(self) -> str:
        lines = [f"{e.name}: {self.metric} {e.loss}, skill {e.skill}" for e in self.entries]
        end = "better than" if self.beats_dummy else "not shown to be better than"
        return "\n".join([*lines, f"the model is {end} a constant answer"])

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "metric": self.metric,
            "beats_dummy": self.beats_dummy,
            "entries": [
                {"name": e.name, "loss": e.loss.to_dict(), "skill": e.skill.to_dict()}
                for e in self.entries
            ],
        }


def baseline(
    estimator: Any,
    X: Any,
    y: Any,
    split: Any = None,
    *,
    task: str | None = None,
    loss: Loss = None,
    level: float = 0.95,
    sample_weight: Any = None,
    n_resamples: int = 4000,
    random_state: Key | RandomState = 0,
) -> Baselines:
    """Judge a model beside a constant answer, a one-feature stump and a linear model.

    Parameters
    ----------
    estimator : unfitted; a model that is fitted already is judged as it is, and must not have seen
        the test rows; None for the baselines alone (then ``task`` says which)
    X, y : the whole table
    split : ``SplitRows``, ``Split`` or (train rows, test rows); 70 % against 30 % by default
    task : ``"classification"`` or ``"regression"``; that of the estimator by default
    loss : per-row loss, 0-1 or squared by default

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2)); y = X[:, 0] + 0.5 * rng.normal(size=300)
    >>> found = baseline(DecisionTreeRegressor(max_depth=4), X, y)
    >>> [entry.name for entry in found], found.exit_status
    (['model', 'dummy', 'stump', 'linear'], 0)
    """
    from sklearn.base import is_classifier

    checked_level(level)
    key, target = Key.of(random_state), np.asarray(y)
    weight = weights_of(sample_weight, n_rows(X))
    if estimator is None and task not in ("classification", "regression"):
        raise ValueError(f"task must be 'classification' or 'regression', got {task!r}")
    classes = task == "classification" if task is not None else is_classifier(estimator)
    fallback = "zero_one" if classes else "squared"
    kind = loss_name(estimator, loss if loss is not None else fallback)
    if split is None:
        split = split_rows(
            X, target, (0.7, 0.3), stratify=target if classes else None,
            random_state=key.fold("split"),
        )  # fmt: skip
    train, test = sides(split)
    part, part_test = take(X, train), take(X, test)
    named = {} if estimator is None else {"model": estimator}
    named |= simple_models(X, classes)
    losses: dict[str, Floats] = {}
    for name, model in named.items():
        if not (name == "model" and _is_fitted(model)):
            model = fit_clone(model, part, target[train], weight[train], key.fold("fit", name))
        losses[name] = row_losses(model, part_test, target[test], kind)
    w = weight[test]
    bounds = bounds_of(kind if isinstance(kind, str) else "loss")
    entries = tuple(
        Baseline(
            name,
            mean_interval(values, level, sample_weight=w).within(bounds),
            skill_interval(values, losses["dummy"], level, w, n_resamples, key.fold("skill")),
            values,
        )
        for name, values in losses.items()
    )
    return Baselines(entries, kind if isinstance(kind, str) else "loss")


def simple_models(X: Any, classes: bool) -> dict[str, Any]:
    """Unfitted constant answer, stump and linear model, with the preparation that X needs."""
    from sklearn.dummy import DummyClassifier, DummyRegressor
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    from groundstate.models.linear.least_squares.ridge import Ridge
    from groundstate.models.linear.logistic.logistic_regression import LogisticRegression

    if classes:
        dummy: Any = DummyClassifier(strategy="prior")
        stump: Any = DecisionTreeClassifier(max_depth=1, random_state=0)
        linear: Any = LogisticRegression()
    else:
        dummy = DummyRegressor(strategy="mean")
        stump, linear = DecisionTreeRegressor(max_depth=1, random_state=0), Ridge()
    return {"dummy": dummy, "stump": _prepared(X, stump), "linear": _prepared(X, linear)}


def skill_interval(
    losses: Any,
    dummy: Any,
    level: float = 0.95,
    sample_weight: Any = None,
    n_resamples: int = 4000,
    random_state: Key | RandomState = 0,
) -> Interval:
    r"""Interval of :math:`1 - \bar a/\bar b`, rows of both drawn together (BCa).

    >>> print(skill_interval(np.tile([1.0, 2.0], 50), np.full(100, 3.0)))
    0.5 (0.4667 to 0.53)
    """
    a, b = np.asarray(losses, np.float64), np.asarray(dummy, np.float64)
    if a.shape != b.shape or a.ndim != 1:
        raise DataError(f"one loss per row of both is needed, got {a.shape} and {b.shape}")
    cells, weight, _ = merge(np.stack([a, b], 1), weights_of(sample_weight, len(a)))
    sums = weight @ cells
    if sums[1] == 0:  # a constant answer without loss cannot be beaten
        value = 0.0 if sums[0] == 0 else -np.inf
        return Interval(value, value, value, level, "bca")

    def skill(means: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            out: Floats = 1 - means[:, 0] / means[:, 1]
        return np.where(means[:, 1] > 0, out, np.nan)

    draws = skill(Cells(cells, weight).draws(n_resamples, Key.of(random_state).numpy()))
    left = skill(sums - cells)  # without one row of each cell
    known = np.isfinite(left)
    skew = -mean_acceleration(left[known], weight[known])
    return interval_of(float(1 - sums[0] / sums[1]), draws, level, "bca", skew)


def _prepared(X: Any, model: Any) -> Any:
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if hasattr(X, "tocsr"):
        return make_pipeline(StandardScaler(with_mean=False), model)
    if isinstance(X, np.ndarray) and X.dtype.kind in "fiub":
        return make_pipeline(SimpleImputer(strategy="median"), StandardScaler(), model)
    from groundstate.models.tables.table import TablePredictor

    return TablePredictor(model)


def _is_fitted(model: Any) -> bool:
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    try:
        check_is_fitted(model)
    except (NotFittedError, TypeError):
        return False
    return True
