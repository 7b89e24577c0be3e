"""Validation curves: risk against one setting, with bands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.display import Displayed
from groundstate.compute.random import Key, RandomState
from groundstate.errors import DataError
from groundstate.evaluate.curves.learning_curve import draw_band, shuffled_parts
from groundstate.evaluate.losses import Loss, loss_name, row_losses
from groundstate.evaluate.rows import take
from groundstate.evaluate.scores import Scores
from groundstate.evaluate.splits.refits import refits
from groundstate.math.stats.interval import Interval

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ValidationCurve(Displayed):
    """Risk on seen and on new rows against one setting.

    Attributes
    ----------
    name : str
    values : list
    train, test : (V, J)
    best : value of least mean test risk
    """

    name: str
    values: list[Any]
    train: Floats = field(repr=False)
    test: Floats = field(repr=False)
    metric: str
    n_train: int
    n_test: int
    level: float = 0.95

    @property
    def best(self) -> Any:
        """The value with the least mean test risk."""
        return self.values[int(self.test.mean(1).argmin())]

    def bands(self) -> dict[str, list[Interval]]:
        """Intervals of the mean training and test risk at each value."""
        return {
            name: [
                Scores(row, ("fold",), self.metric, self.n_train, self.n_test, False,
                       self.level).interval()
                for row in table
            ]
            for name, table in (("train", self.train), ("test", self.test))
        }  # fmt: skip

    def draw(self, ax: Any) -> None:
        """Both curves with their bands on matplotlib axes."""
        for name, colour in (("train", "#3b6fb6"), ("test", "#d9822b")):
            draw_band(ax, self.values, self.bands()[name], colour, name)
        ax.set(xlabel=self.name, ylabel=self.metric)
        ax.legend(frameon=False, fontsize=8)

    def __str__(self) -> str:
        i = int(self.test.mean(1).argmin())
        return (
            f"{self.metric} {self.bands()['test'][i]} at {self.name}={self.values[i]!r}, the best"
        )


def validation_curve(
    estimator: Any,
    X: Any,
    y: Any,
    name: str,
    values: Sequence[Any],
    repeats: int = 10,
    *,
    loss: Loss = None,
    test_size: float = 0.2,
    groups: Any = None,
    level: float = 0.95,
    n_jobs: int | None = None,
    random_state: Key | RandomState = 0,
) -> ValidationCurve:
    """Fit a recipe with every value of one setting, all on the same splits.

    Parameters
    ----------
    name : of the parameter, as ``set_params`` takes it
    values : at least one

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(200, 1)); y = np.sin(2 * X[:, 0]) + rng.normal(size=200) / 2
    >>> validation_curve(KNeighborsRegressor(), X, y, "n_neighbors", [1, 15, 120]).best
    15
    """
    if not len(values) or repeats < 2:
        raise DataError(f"values and two repeats or more are needed, got {len(values)}, {repeats}")
    key, kind, target = Key.of(random_state), loss_name(estimator, loss), np.asarray(y)
    trains, tests = shuffled_parts(estimator, X, target, repeats, test_size, groups, key)
    jobs = [(v, r) for v in range(len(values)) for r in range(repeats)]
    models = refits(
        estimator, X, target, [trains[r] for _, r in jobs], [key.fold("fit", r) for _, r in jobs],
        params=[{name: values[v]} for v, _ in jobs], n_jobs=n_jobs,
    )  # fmt: skip
    train, test = (np.empty((len(values), repeats)) for _ in range(2))
    for (v, r), model in zip(jobs, models, strict=True):
        for table, part in ((train, trains[r]), (test, tests[r])):
            table[v, r] = row_losses(model, take(X, part), target[part], kind).mean()
    label = kind if isinstance(kind, str) else "loss"
    return ValidationCurve(
        name, list(values), train, test, label, len(trains[0]), len(tests[0]), level
    )
