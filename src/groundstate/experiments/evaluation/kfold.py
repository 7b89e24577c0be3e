r"""Several folds judge a recipe more surely than one hold-out."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from groundstate.compute.random import Key
from groundstate.evaluate import folds, loo
from groundstate.evaluate.splits.folds import Split
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.supervised.scenes import F64, I64, Rng
from groundstate.models.linear.least_squares.linear_regression import LinearRegression
from groundstate.models.linear.logistic.logistic_regression import LogisticRegression

N = 100
SETTINGS = {"C": 1.0}


def table(rng: Rng) -> tuple[F64, I64]:
    """100 rows, five features, two of which decide with noise."""
    X = rng.standard_normal((N, 5))
    p = expit(1.5 * X[:, 0] - X[:, 1])
    return X, (rng.random(N) < p).astype(np.int64)


def part(X: F64, y: I64, fold: Split) -> tuple[float, F64, dict[str, float]]:
    """Accuracy on one fold, the weights learned without it, and the settings used."""
    model = LogisticRegression(C=SETTINGS["C"]).fit(X[fold.train_rows], y[fold.train_rows])
    used = {name: float(model.get_params()[name]) for name in SETTINGS}
    return float(model.score(X[fold.test_rows], y[fold.test_rows])), model.coef_[0], used


@experiment(
    "EVA-X-kfold",
    theme="evaluation",
    title="Five folds judge more surely than one hold-out",
)
def kfold(seed: int = 0, *, quick: bool = False) -> Result:
    r"""One fifth held out is judged on n/5 rows, with a standard deviation near
    :math:`\sqrt{p(1-p)/(n/5)}`; five folds judge on all n rows and need √5 times less luck. What is
    judged is the recipe: its settings are the same in every fold, its weights are not. For least
    squares all n folds of one row come from a single fit, :math:`e_i/(1 - h_{ii})`, exactly.

    Logistic regression, 100 rows, 60 tables from one distribution.
    """
    estimates, weights, settings = [], [], []
    for key in Key.of(seed).split(60):
        X, y = table(key.fold("rows").numpy())
        found = [part(X, y, fold) for fold in folds(X, y, k=5, key=key.fold("folds"))]
        estimates.append([float(np.mean([f[0] for f in found])), found[0][0]])
        weights.append([f[1] for f in found])
        settings += [f[2] for f in found]
    five, one = np.array(estimates).T
    moved = np.array(weights).std(1).mean()  # over folds, mean of tables and features

    X, y = table(Key.of(seed).fold("loo").numpy())
    target = X @ [1.0, 2.0, 0.0, 0.0, -1.0] + y
    short = loo(LinearRegression(), X, target)
    refits = []
    for i in range(N):
        rest = np.arange(N) != i
        model = LinearRegression().fit(X[rest], target[rest])
        refits.append(float(target[i] - model.predict(X[i : i + 1])[0]))
    claims = [
        Claim.close("sd of the estimate, 5 folds", float(five.std(ddof=1)), 0.05, tol=0.02),
        Claim.close(
            "sd of the estimate, one fifth held out", float(one.std(ddof=1)), 0.09, tol=0.03
        ),
        Claim.below("sd of 5 folds over that of one fifth", float(five.std() / one.std()), 0.75),
        Claim.above("weights: mean sd over folds", float(moved), 0.01),
        Claim.equal("different settings over folds", len({tuple(s.items()) for s in settings}), 1),
        Claim.at_most(
            "leave-one-out: short cut less refits, largest",
            float(np.abs(short.errors - refits).max()),
            1e-10,
        ),
    ]
    numbers = {
        "mean": [float(five.mean()), float(one.mean())],
        "sd": [float(five.std(ddof=1)), float(one.std(ddof=1))],
        "weights": float(moved),
    }

    def draw(figure: Figure) -> None:
        ax, spread = figure.subplots(1, 2)
        bins = np.arange(0.475, 1.0, 0.05).tolist()
        for values, name, colour in ((five, "5 folds", COLOURS[0]), (one, "one fifth", COLOURS[1])):
            ax.hist(
                values, bins, alpha=0.6, color=colour, label=f"{name}: sd {values.std(ddof=1):.3f}"
            )
        ax.set(xlabel="estimated accuracy", ylabel="tables")
        ax.legend(loc="upper left")
        for j, own in enumerate(np.array(weights)[0].T):
            spread.plot([j] * 5, own, "o", color=COLOURS[2], markersize=4, alpha=0.7)
        spread.set(xlabel="feature", ylabel="weight", title="one table: the weights of five folds")

    return Result(claims, numbers, draw)
