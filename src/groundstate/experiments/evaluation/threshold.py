r"""The threshold of a classifier trades precision for recall."""

from __future__ import annotations

import numpy as np

from groundstate.compute.random import Key
from groundstate.evaluate import threshold_table
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.supervised.scenes import clouds
from groundstate.models.linear.logistic.logistic_regression import LogisticRegression

MARKS = (0.1, 0.5, 0.9)


@experiment("EVA-X-threshold", theme="evaluation", title="A threshold trades precision for recall")
def threshold(seed: int = 0, *, quick: bool = False) -> Result:
    r"""The rule :math:`\hat y = 1(p \ge \delta)` finds fewer positives as δ rises, and raises fewer
    false alarms: recall and the false positive rate never rise with δ, whatever the scores are.
    At δ = ½ it is the side of the hyperplane :math:`w^\top x + b \ge 0`, since
    :math:`\sigma(0) = \tfrac12`.

    Logistic regression on two Gaussians two standard deviations apart, 600 rows, all thresholds.
    """
    X, y = clouds(Key.of(seed).fold("rows").numpy(), [[-1.0, 0.0], [1.0, 0.0]], 1.0, 600)
    model = LogisticRegression().fit(X, y)
    p = model.predict_proba(X)[:, 1]
    table = threshold_table(y, p)
    at = [int(np.searchsorted(table.threshold, mark)) for mark in MARKS]
    sides = (p >= 0.5) != (X @ model.coef_[0] + model.intercept_[0] >= 0)
    precision, recall = ([float(v[i]) for i in at] for v in (table.precision, table.recall))
    claims = [
        Claim.at_most("largest rise of recall with δ", float(np.diff(table.recall).max()), 0.0),
        Claim.at_most(
            "largest rise of the false positive rate with δ", float(np.diff(table.fpr).max()), 0.0
        ),
        Claim.equal("rows where δ = ½ is not the side of the hyperplane", int(sides.sum()), 0),
        Claim.above("precision at δ = .9 less that at .1", precision[2] - precision[0], 0.0),
        Claim.above("recall at δ = .1 less that at .9", recall[0] - recall[2], 0.0),
    ]
    numbers = {
        "thresholds": list(MARKS),
        "precision": precision,
        "recall": recall,
        "false positive rate": [float(table.fpr[i]) for i in at],
    }

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        for values, name, colour in (
            (table.precision, "precision", COLOURS[0]),
            (table.recall, "recall", COLOURS[1]),
            (table.fpr, "false positive rate", COLOURS[2]),
        ):
            left.plot(table.threshold, values, color=colour, label=name)
        left.set(xlabel="threshold δ", ylim=(0, 1.02))
        left.legend(loc="lower left")
        right.plot(table.fpr, table.recall, color=COLOURS[0])
        right.plot([0, 1], [0, 1], ":", color=COLOURS[5])
        for mark, i in zip(MARKS, at):
            right.plot(table.fpr[i], table.recall[i], "o", color=COLOURS[4])
            right.annotate(
                f"δ = {mark}",
                (table.fpr[i], table.recall[i]),
                xytext=(6, -10),
                textcoords="offset points",
            )
        right.set(xlabel="false positive rate", ylabel="recall", aspect="equal", title="ROC")

    return Result(claims, numbers, draw)
