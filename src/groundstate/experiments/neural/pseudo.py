r"""Pseudo-labels help when they come late, and harm when they come at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.datasets import load_digits, make_moons

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.neural.digits import Rows, share_right
from groundstate.experiments.tools import Watch
from groundstate.models.linear.logistic.logistic_regression import LogisticRegression
from groundstate.models.networks.mlp_classifier import MLPClassifier
from groundstate.models.networks.pseudo_label_classifier import PseudoLabelClassifier
from groundstate.models.networks.self_training import SelfTraining

Table = tuple[NDArray[np.float32], NDArray[np.int64]]
SEEDS, STEPS, RAMP, SHARE, EVERY = 6, 400, (50, 300), 3.0, 10
WAYS = ("supervised", "ramp", "constant")
THRESHOLDS = (0.5, 0.8, 0.95)


def shuffled(X: NDArray[Any], y: NDArray[Any], key: Key, each: int) -> Table:
    """Rows in a random order, ``each`` rows of every class first: those will have a label."""
    order = key.numpy().permutation(len(y))
    X, y = X[order].astype(np.float32), y[order]
    front = [np.flatnonzero(y == c)[:each] for c in np.unique(y)]
    first = np.concatenate([*front, np.setdiff1d(np.arange(len(y)), np.concatenate(front))])
    return X[first], y[first]


def curves(table: Table, labels: int, train: int, seed: int) -> dict[str, list[float]]:
    """Accuracy on the rows beyond ``train`` after every tenth step, for each way of learning."""
    X, y = table
    rows: Rows = {"x": torch.from_numpy(X[train:]), "y": torch.from_numpy(y[train:])}
    some = np.where(np.arange(train) < labels, y[:train], -1)
    common: dict[str, Any] = {
        "hidden_layer_sizes": (32,), "learning_rate_init": 0.01, "alpha": 0.0, "batch_size": train,
        "max_iter": STEPS, "n_iter_no_change": float("inf"), "random_state": seed,
    }  # fmt: skip
    seen = {}
    for way in WAYS:
        watch = Watch(lambda energy: share_right(energy, rows), EVERY)
        given = common | {"callbacks": [watch]}
        if way == "supervised":  # a share of 0, without the rows that would not count
            MLPClassifier(**given).fit(X[:labels], y[:labels])
        else:
            start, end = RAMP if way == "ramp" else (0, 0)
            PseudoLabelClassifier(SHARE, start, end, **given).fit(X[:train], some)
        seen[way] = watch.seen.tolist()
    return seen


def self_trained(table: Table, labels: int, train: int, C: float) -> dict[str, float]:
    """Accuracy of logistic regression on the labels alone and self-trained at each threshold."""
    X, y = table
    some = np.where(np.arange(train) < labels, y[:train], -1)
    alone = LogisticRegression(C=C).fit(X[:labels], y[:labels])
    results = {"labels alone": float(alone.score(X[train:], y[train:]))}
    for threshold in THRESHOLDS:
        model = SelfTraining(LogisticRegression(C=C), threshold).fit(X[:train], some)
        results[f"{threshold:g}"] = float(model.score(X[train:], y[train:]))
    return results


@experiment("NEU-X-pseudo", theme="neural", title="Ramped pseudo-labels help, early ones harm",
            slow=True)  # fmt: skip
def pseudo(seed: int = 0, *, quick: bool = False) -> Result:
    r"""A row without a label learns from what the network says of it now,
    :math:`L = L_{lab} + \alpha(t)\,L_{unl}`. From the first step on, :math:`\alpha = 3`, the network
    teaches itself its random guesses; with :math:`\alpha` growing from 0 to 3 between steps 50 and 300
    the guesses are mostly right when they begin to count. Self-training adds rows with
    :math:`\max_yp(y\mid x) > \tau` and learns again: a low :math:`\tau` adds wrong labels, a high one
    few. It needs probabilities that rise alike: under a stronger penalty, C = 1, only the easy classes
    pass 0.8, the others are crowded out, and self-training harms (a number beside the claims).
    Whether any of it helps depends on the data: two moons with three labels each gain nothing.

    Digits of 8 × 8 with five labels per class, 1,250 rows without one and 497 to judge; moons of noise
    0.1 with 6 labels, 294 without and 300 to judge. 32 hidden units, 400 full steps of Adam with rate
    0.01; logistic regression with C = 10 for self-training. Means over six draws of rows and weights.
    """
    key = Key.of(seed)
    pixels, digit = load_digits(return_X_y=True)
    paths: dict[str, dict[str, list[list[float]]]] = {
        name: {way: [] for way in WAYS} for name in ("digits", "moons")
    }
    selves: dict[float, list[dict[str, float]]] = {10.0: [], 1.0: []}
    for i in range(2 if quick else SEEDS):
        own = key.fold("draw", i)
        X, y = make_moons(600, noise=0.1, random_state=own.fold("moons").low % 2**32)
        tables = {
            "digits": (shuffled(pixels / 16, digit, own.fold("rows"), 5), 50, 1300),
            "moons": (shuffled(X, y, own.fold("rows"), 3), 6, 300),
        }
        for name, cut in tables.items():
            for way, path in curves(*cut, own.fold("net").low % 2**32).items():
                paths[name][way].append(path)
        for C, results in selves.items():
            results.append(self_trained(*tables["digits"], C))
    mean = {name: {way: np.mean(rows, 0) for way, rows in ways.items()}
            for name, ways in paths.items()}  # fmt: skip
    digits, moons = ({way: float(path[-1]) for way, path in mean[name].items()} for name in mean)
    trained, unsure = (
        {name: float(np.mean([row[name] for row in results])) for name in results[0]}
        for results in selves.values()
    )
    claims = [
        Claim.above("digits: ramp, against supervised", digits["ramp"], digits["supervised"]),
        Claim.below("digits: constant 3, against supervised less 0.1", digits["constant"],
                    digits["supervised"] - 0.1),
        Claim.above("digits: self-training at 0.8, against its labels alone", trained["0.8"],
                    trained["labels alone"]),
        Claim.equal("digits: best threshold of self-training",
                    max(THRESHOLDS, key=lambda t: trained[f"{t:g}"]), 0.8),
        Claim.at_most("moons: gain of the ramp", moons["ramp"] - moons["supervised"], 0.02),
        Claim.below("moons: constant 3, against supervised", moons["constant"], moons["supervised"]),
    ]  # fmt: skip
    ends = {name: {way: [path[-1] for path in rows] for way, rows in ways.items()}
            for name, ways in paths.items()}  # fmt: skip
    numbers = {"digits": digits, "moons": moons, "self-training": trained,
               "self-training, C = 1": unsure, "draws": ends}  # fmt: skip

    def draw(figure: Figure) -> None:
        *axes, last = figure.subplots(1, 3, width_ratios=(1.2, 1.2, 0.9))
        for ax, (name, ways) in zip(axes, mean.items()):
            for (way, path), colour in zip(ways.items(), COLOURS):
                ax.plot(
                    np.arange(len(path)) * EVERY, path, color=colour, label=f"{way}: {path[-1]:.3f}"
                )
            for step in RAMP:
                ax.axvline(step, color=COLOURS[5], linestyle=":", linewidth=0.8)
            ax.set(title=f"{name} (dots: the ramp)", xlabel="step", ylabel="accuracy", ylim=(0, 1))
            ax.legend(loc="lower right")
        last.bar(range(len(trained)), list(trained.values()), color=COLOURS[3])
        last.set_xticks(range(len(trained)), ["none", *(f"{t:g}" for t in THRESHOLDS)])
        last.set(title="digits, self-training", xlabel="threshold", ylim=(0.7, 0.95))

    return Result(claims, numbers, draw, size=(11.0, 3.4))
