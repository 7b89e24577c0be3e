r"""Test rows, seed and training set each add their own spread to a score."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import chi2
from sklearn.datasets import load_digits

from groundstate.compute.random import Key
from groundstate.evaluate import VariationReport, variation_report
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.models.linear.logistic.logistic_regression import LogisticRegression
from groundstate.models.networks.mlp_classifier import MLPClassifier

SETS, SEEDS, FEW, MANY = 20, 4, 100, 1000


def interval(part: float, seen: float, free: int) -> tuple[float, float]:
    r"""95 % interval of a standard deviation, :math:`s\sqrt{\nu/\chi^2_\nu}` at both ends.

    The upper end starts from the spread of the means as seen, which holds the other parts too: an
    estimate of 0 does not say that there is nothing.
    """
    low, high = chi2.ppf([0.975, 0.025], free)
    return float(part * np.sqrt(free / low)), float(seen * np.sqrt(free / high))


def ends_of(report: VariationReport) -> dict[str, tuple[float, float]]:
    """Intervals by source."""
    means = np.asarray(report.scores.values)  # (sets, seeds)
    sets, seeds = means.shape
    over = {"train": means.mean(1).std(ddof=1), "test": report.test}
    free = {"train": sets - 1, "test": report.losses.shape[2] - 1}
    if seeds > 1:
        over["seed"], free["seed"] = means.mean(0).std(ddof=1), seeds - 1
    table = report.table()
    return {name: interval(table[name], float(over[name]), free[name]) for name in over}


@experiment(
    "EVA-X-sources",
    theme="evaluation",
    title="Test rows, seed and training set add separate spread",
    slow=True,
)
def sources(seed: int = 0, *, quick: bool = False) -> Result:
    r"""The error of training set b and seed k is :math:`s_{bk} = \mu + A_b + B_k + (AB)_{bk}`, measured on
    n test rows with :math:`\sigma^2_{test} = \mathrm{Var}(\ell)/n`. A crossed design, every seed on every
    training set, tells the parts apart. Logistic regression has no seed: that part is 0. More
    training rows make it matter less which they were: the 95 % interval of that part with 100 rows
    lies above the one with 1,000.

    Digits, 500 test rows, bootstrap training sets of 100 and of 1,000 rows; 20 training sets and 4
    seeds of a network with 16 hidden units. Quick runs have 3 seeds and half of the 20
    epochs.
    """
    key, seeds = Key.of(seed), 3 if quick else SEEDS
    X, y = load_digits(return_X_y=True)
    X = X / 16
    rows = key.fold("split").numpy().permutation(len(y))
    test = rows[:500]
    net = MLPClassifier(
        (16,),
        learning_rate_init=0.02,
        batch_size=50,
        max_iter=10 if quick else 20,
        tol=0.0,
        n_iter_no_change=np.inf,
        random_state=0,
    )
    recipes: dict[str, tuple[Any, int]] = {
        f"{kind}, {n} rows": (model, n)
        for kind, model in (("network", net), ("logistic", LogisticRegression()))
        for n in (FEW, MANY)
    }
    found: dict[str, VariationReport] = {}
    for name, (model, n) in recipes.items():
        found[name] = variation_report(
            model,
            X,
            y,
            seeds,
            SETS,
            split=(rows[500 : 500 + n], test),
            random_state=key.fold("fits"),
        )
    table = {name: r.table() for name, r in found.items()}
    ends = {name: ends_of(report) for name, report in found.items()}
    shaken = table[f"network, {FEW} rows"]
    claims = [
        *[
            Claim.at_most(f"{name}: sd over seeds", table[name]["seed"], 1e-12)
            for name in recipes
            if name.startswith("logistic")
        ],
        Claim.above(
            f"network, {FEW} rows: sd over seeds or seeds with sets",
            float(np.hypot(shaken["seed"], shaken["interaction"])),
            0.0,
        ),
        *[
            Claim.above(
                f"{kind}: least sd over training sets of {FEW} rows, against the largest of {MANY}",
                ends[f"{kind}, {FEW} rows"]["train"][0],
                ends[f"{kind}, {MANY} rows"]["train"][1],
            )
            for kind in ("logistic", "network")
        ],
        Claim.above("least sd by test rows", min(v["test"] for v in table.values()), 0.0),
    ]
    numbers = {
        "sd": table,
        "95 % intervals": {n: {s: list(v) for s, v in own.items()} for n, own in ends.items()},
        "error": {n: r.scores.mean for n, r in found.items()},
    }

    def draw(figure: Figure) -> None:
        ax = figure.subplots()
        floor = np.zeros(len(table))
        for j, (part, label) in enumerate(
            (
                ("test", "test rows"),
                ("seed", "seed"),
                ("train", "training set"),
                ("interaction", "seed with set"),
            )
        ):
            height = np.array([1e4 * v[part] ** 2 for v in table.values()])
            ax.bar(range(len(table)), height, bottom=floor, color=COLOURS[j], label=label)
            floor = floor + height
        ax.set_xticks(range(len(table)), [name.replace(", ", "\n") for name in table])
        ax.set(ylabel="variance of the error rate, in (1 %)²")
        ax.legend()

    return Result(claims, numbers, draw, size=(7.0, 3.8))
