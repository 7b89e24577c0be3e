r"""Bagging and forests cut variance, boosting cuts bias."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.supervised.scenes import friedman
from groundstate.models.ensembles.bagging.bagging_regressor import BaggingRegressor
from groundstate.models.ensembles.boosting.hist_gradient_boosting_regressor import (
    HistGradientBoostingRegressor,
)
from groundstate.models.ensembles.forests.random_forest_regressor import RandomForestRegressor
from groundstate.models.linear.least_squares.linear_regression import LinearRegression
from groundstate.models.trees.decision_tree_regressor import DecisionTreeRegressor


def _boosted(depth: int, rounds: int) -> HistGradientBoostingRegressor:
    return HistGradientBoostingRegressor(
        max_iter=rounds,
        max_depth=depth,
        max_leaf_nodes=2**depth,
        min_samples_leaf=1,
        early_stopping=False,
        random_state=0,
    )


MODELS: dict[str, Callable[[int], Any]] = {
    "tree": lambda s: DecisionTreeRegressor(random_state=s),
    "bagged trees": lambda s: RandomForestRegressor(50, random_state=s),
    "forest, p/3": lambda s: RandomForestRegressor(50, max_features=1 / 3, random_state=s),
    "stump": lambda s: DecisionTreeRegressor(max_depth=1, random_state=s),
    "boosted stumps": lambda s: _boosted(1, 200),
    "boosted, depth 3": lambda s: _boosted(3, 200),
    "linear": lambda s: LinearRegression(),
    "bagged linear": lambda s: BaggingRegressor(LinearRegression(), 25, random_state=s),
}


@experiment(
    "SUP-X-ensembles", theme="supervised", title="Bagging cuts variance, boosting bias", slow=True
)
def ensembles(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Over training sets, :math:`E(f(x) - \mu(x))^2 = (E f - \mu)^2 + \mathrm{Var} f`. Averaging trees
    fitted to resamples lowers the variance and hardly moves the bias; adding small trees lowers the
    bias. Bagging a stable learner, such as a line, changes nothing.

    Friedman's function with noise 1, 200 rows, 30 training sets, bias and variance at 2,000 places.
    """
    key = Key.of(seed)
    test, _, truth = friedman(key.fold("test").numpy(), 2000)
    draws = 12 if quick else 30
    predicted = {name: np.empty((draws, len(test))) for name in MODELS}
    for r in range(draws):
        X, y, _ = friedman(key.fold("data", r).numpy(), 200)
        for name, make in MODELS.items():
            predicted[name][r] = make(r).fit(X, y).predict(test)
    variance = {n: float(f.var(0, ddof=1).mean()) for n, f in predicted.items()}
    # the mean over draws carries 1/draws of the variance, which is not bias
    bias = {
        n: float(((f.mean(0) - truth) ** 2).mean() - variance[n] / draws)
        for n, f in predicted.items()
    }
    bagged, line = variance["bagged trees"], variance["linear"]
    gain, moved = variance["tree"] / bagged, abs(variance["bagged linear"] / line - 1)
    fewer = variance["forest, p/3"] / bagged
    stumps, deep = (bias[n] / bias["stump"] for n in ("boosted stumps", "boosted, depth 3"))
    claims = [
        Claim.at_least("variance of a tree over that of bagged trees", gain, 4.0),
        Claim.below("variance of the forest over that of bagged trees", fewer, 1.0),
        Claim.at_most("bagging a line: relative change of its variance", moved, 0.25),
        Claim.at_most("bias² of boosted stumps over that of a stump", stumps, 0.25),
        Claim.at_most("bias² of boosted trees of depth 3 over that of a stump", deep, 0.25),
    ]
    numbers = {"bias2": bias, "variance": variance}

    def draw(figure: Figure) -> None:
        ax = figure.subplots()
        names = list(MODELS)
        ax.bar(names, [bias[n] for n in names], color=COLOURS[0], label="bias²")
        ax.bar(names, [variance[n] for n in names], bottom=[bias[n] for n in names], color=COLOURS[1],
               label="variance")  # fmt: skip
        ax.set_ylabel("squared error without noise")
        ax.tick_params(axis="x", labelrotation=20)
        ax.legend()

    return Result(claims, numbers, draw, size=(8.5, 3.6))
