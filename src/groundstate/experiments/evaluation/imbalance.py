r"""Accuracy flatters whoever ignores a rare class; F1 does not."""

from __future__ import annotations

import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.metrics import accuracy_score, f1_score, precision_score, recall_score

from groundstate.compute.random import Key
from groundstate.evaluate.metrics import f1_of_macros
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.supervised.scenes import F64
from groundstate.models.linear.logistic.logistic_regression import LogisticRegression


def rates(table: F64) -> tuple[F64, F64, F64]:
    """Precision, recall and F1 of every class of a confusion matrix, rows actual."""
    hit = np.diag(table)
    precision, recall = hit / table.sum(0), hit / table.sum(1)
    return precision, recall, 2 * precision * recall / (precision + recall)


@experiment("EVA-X-imbalance", theme="evaluation", title="Accuracy misleads on rare classes")
def imbalance(seed: int = 0, *, quick: bool = False) -> Result:
    r"""With 2 % of spam, "never spam" is right on 98 % of the letters and finds nothing: its F1 is 0.
    :math:`F_1 = 2PR/(P+R)`, the harmonic mean, stays nearer to the smaller of P and R than their
    mean does. And the F1 of macro precision and macro recall is not the mean of the classes' F1:
    averaging and the harmonic mean do not commute.

    5,000 letters, 100 of them spam, in five features; always-ham against logistic regression with
    balanced weights, both judged on 5,000 others; then 1,000 random 3 × 3 confusion matrices.
    """
    key = Key.of(seed)
    y = (np.arange(5000) < 100).astype(np.int64)
    train, test = (
        key.fold(part).numpy().standard_normal((5000, 5)) + y[:, None] for part in ("train", "test")
    )
    models = {
        "always ham": DummyClassifier(strategy="most_frequent"),
        "logistic, balanced": LogisticRegression(class_weight="balanced"),
        "logistic": LogisticRegression(),
    }
    predicted = {
        name: np.asarray(model.fit(train, y).predict(test)) for name, model in models.items()
    }
    scores = {
        name: {
            "accuracy": float(accuracy_score(y, own)),
            "precision": float(precision_score(y, own, zero_division=0.0)),
            "recall": float(recall_score(y, own)),
            "F1": float(f1_score(y, own, zero_division=0.0)),
        }
        for name, own in predicted.items()
    }

    rng = key.fold("tables").numpy()
    tables = rng.integers(1, 1000, (300 if quick else 1000, 3, 3)).astype(np.float64)
    nearer, apart = [], []
    for table in tables:
        P, R, F = rates(table)
        least, differ = np.minimum(P, R), P != R
        nearer.append(
            float((np.abs(F - least) - np.abs((P + R) / 2 - least))[differ].max(initial=-1.0))
        )
        apart.append(abs(f1_of_macros(table) - float(F.mean())))
    ham, real = scores["always ham"], scores["logistic, balanced"]
    claims = [
        Claim.close("always ham: accuracy", ham["accuracy"], 0.98, tol=1e-12),
        Claim.equal("always ham: F1", ham["F1"], 0.0),
        Claim.above("balanced: F1 less that of always ham", real["F1"] - ham["F1"], 0.0),
        Claim.below(
            "balanced: accuracy less that of always ham", real["accuracy"] - ham["accuracy"], 0.0
        ),
        Claim.below("largest |F1 − min(P, R)| − |mean − min(P, R)|", max(nearer), 0.0),
        Claim.above("least |F1 of macros − macro F1|", min(apart), 0.0),
    ]
    numbers = {"scores": scores, "mean |F1 of macros − macro F1|": float(np.mean(apart))}

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        kinds = list(ham)
        for i, (name, row) in enumerate(scores.items()):
            left.bar(
                np.arange(4) + 0.27 * (i - 1),
                [row[k] for k in kinds],
                0.25,
                color=COLOURS[i],
                label=name,
            )
        left.set_xticks(range(4), kinds)
        left.set(ylim=(0, 1.25), title="2 % spam")
        left.legend(ncols=3, fontsize=7, loc="upper center")
        right.hist(apart, 30, color=COLOURS[3])
        right.set(xlabel="|F1 of macros − macro F1|", ylabel="confusion matrices")

    return Result(claims, numbers, draw)
