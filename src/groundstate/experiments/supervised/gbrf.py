r"""Boosting against forests on small tables."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.supervised.scenes import F64, friedman
from groundstate.models.ensembles.boosting.hist_gradient_boosting_classifier import (
    HistGradientBoostingClassifier,
)
from groundstate.models.ensembles.boosting.hist_gradient_boosting_regressor import (
    HistGradientBoostingRegressor,
)
from groundstate.models.ensembles.forests.random_forest_classifier import RandomForestClassifier
from groundstate.models.ensembles.forests.random_forest_regressor import RandomForestRegressor

ROUNDS = (50, 100, 200, 300)
BOOST: list[dict[str, Any]] = [
    {"max_iter": ROUNDS[-1], "max_leaf_nodes": m, "min_samples_leaf": 10, "early_stopping": False}
    for m in (4, 15)
]
FOREST: list[dict[str, Any]] = [
    {"n_estimators": 100, "max_features": f, "min_samples_leaf": m}
    for f, m in product(("sqrt", 0.5), (1, 3))
]


def tables(key: Key) -> dict[str, tuple[F64, Any, bool]]:
    """Four classification tables and two of regression, as scikit-learn ships or makes them."""
    from sklearn import datasets

    found: dict[str, tuple[F64, Any, bool]] = {}
    for name in ("wine", "breast_cancer", "digits", "diabetes"):
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        found[name] = (X, y, name != "diabetes")
    X, y, _ = friedman(key.fold("friedman").numpy(), 600)
    found["friedman"] = (X, y, False)
    X, y = datasets.make_hastie_10_2(1000, random_state=int(key.fold("hastie").words(1)[0] % 2**31))
    found["hastie"] = (X, y.astype(np.int64), True)
    rows = key.fold("digits").numpy().permutation(1797)[:700]
    found["digits"] = (found["digits"][0][rows], found["digits"][1][rows], True)
    return found


def loss(predicted: Any, y: Any, classes: bool) -> F64:
    """0-1 or squared loss of every row."""
    found: F64 = (predicted != y).astype(np.float64) if classes else np.square(predicted - y)
    return found


def tuned(kind: Any, grid: list[dict[str, Any]], X: F64, y: Any, classes: bool, folds: Any) -> Any:
    """Fit with the setting, and the number of rounds where there are some, of least loss on folds."""
    means: dict[tuple[int, int], float] = {}
    for k, setting in enumerate(grid):
        for f in range(int(folds.max()) + 1):
            model = kind(**setting, random_state=0).fit(X[folds != f], y[folds != f])
            rows, own = X[folds == f], y[folds == f]
            stages = {0: model.predict(rows)}
            if hasattr(model, "staged_predict"):
                every = enumerate(model.staged_predict(rows), 1)
                stages = {n: predicted for n, predicted in every if n in ROUNDS}
            for n, predicted in stages.items():
                means[k, n] = means.get((k, n), 0.0) + float(loss(predicted, own, classes).mean())
    k, n = min(means, key=lambda at: means[at])
    rounds = {"max_iter": n} if n else {}
    return kind(**{**grid[k], **rounds}, random_state=0).fit(X, y)


@experiment("SUP-X-gbrf", theme="supervised", title="Boosting against forests", slow=True)
def gbrf(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Boosting adds trees, :math:`F \leftarrow F + \nu h`, forests average them,
    :math:`\frac1B\sum_b h_b`; on tables boosting is said to win more often.

    Six tables in halves: five folds of the first half choose among the settings of each (size of the
    trees and rounds; columns per split and size of the leaves), the other half compares them row by
    row. A difference of mean losses within one standard error is a tie.
    What comes out is reported, not decided: the wins depend on the tables.
    """
    key = Key.of(seed)
    outcome = {"boosting wins": 0, "forest wins": 0, "ties": 0}
    rows: dict[str, list[float]] = {}
    for name, (X, y, classes) in tables(key).items():
        order = key.fold("halves", name).numpy().permutation(len(y))
        first, second = order[: len(y) // 2], order[len(y) // 2 :]
        folds = np.arange(len(first)) % (2 if quick else 5)
        kinds: tuple[Any, Any] = (
            (HistGradientBoostingClassifier, RandomForestClassifier)
            if classes
            else (HistGradientBoostingRegressor, RandomForestRegressor)
        )
        losses = []
        for kind, grid in zip(kinds, (BOOST, FOREST)):
            model = tuned(kind, grid, X[first], y[first], classes, folds)
            losses.append(loss(model.predict(X[second]), y[second], classes))
        if not classes:
            losses = [v / y[second].var() for v in losses]
        gap = losses[1] - losses[0]
        error = float(gap.std(ddof=1) / np.sqrt(len(gap)))
        mean = float(gap.mean())
        rows[name] = [float(losses[0].mean()), float(losses[1].mean()), error]
        word = "ties" if abs(mean) <= error else "boosting wins" if mean > 0 else "forest wins"
        outcome[word] += 1
    claims = [
        Claim(f"tables by outcome: {', '.join(f'{k} {v}' for k, v in outcome.items())}", outcome,
              "six in all", sum(outcome.values()) == 6),
        Claim.at_most("largest loss of either on any table (0-1, or squared over the variance)",
                      max(max(r[:2]) for r in rows.values()), 0.8),
    ]  # fmt: skip
    numbers = {"outcome": outcome, "boosting, forest, standard error of the difference": rows}

    def draw(figure: Figure) -> None:
        ax = figure.subplots()
        for k, (boost, wood, error) in enumerate(rows.values()):
            ax.plot([boost, wood], [k, k], color=COLOURS[5], linewidth=0.8, zorder=1)
            ax.errorbar(boost, k, xerr=error, fmt="o", color=COLOURS[0], capsize=2,
                        label="boosting" if k == 0 else None)  # fmt: skip
            ax.plot(wood, k, "s", color=COLOURS[2], label="forest" if k == 0 else None)
        ax.set(yticks=range(len(rows)), yticklabels=list(rows), xlabel="loss on the second half",
               title=", ".join(f"{k}: {v}" for k, v in outcome.items()))  # fmt: skip
        ax.legend()

    return Result(claims, numbers, draw, size=(7.0, 3.4))
