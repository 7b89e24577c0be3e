r"""Small steps and searched steps: the learning rate and line search of boosting."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.energy.trees.additive_losses import AdditiveLoss, Huber
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.supervised.scenes import F64, friedman
from groundstate.models.ensembles.boosting.gradient_boosting_classifier import (
    GradientBoostingClassifier,
)
from groundstate.models.ensembles.boosting.gradient_boosting_regressor import (
    GradientBoostingRegressor,
)
from groundstate.models.trees.plot import plot_tree

TREES = 500


class Width(Huber):
    """Huber's loss with one width for all steps, so that its values can be compared."""

    def adapted(self, F: Tensor, y: Tensor, w: Tensor) -> AdditiveLoss:
        return self


HUBER = Width(delta=3.0)


def losses(model: Any, X: F64, y: Any) -> F64:
    """Training loss of the best constant and after every tree."""
    if isinstance(model, GradientBoostingClassifier):
        t, share = np.where(y == 1, 1.0, -1.0), y.mean()
        first = -share * np.log(share) - (1 - share) * np.log(1 - share)
        later = [np.logaddexp(0, -t * f.ravel()).mean() for f in model.staged_decision_function(X)]
    elif isinstance(model.loss, Width):
        target = torch.from_numpy(y)
        scores = [np.full(len(y), np.median(y)), *model.staged_predict(X)]
        return np.array(
            [float(model.loss.value(torch.from_numpy(f)[:, None], target).mean()) for f in scores]
        )
    else:
        first = 0.5 * y.var()
        later = [0.5 * ((y - f) ** 2).mean() for f in model.staged_predict(X)]
    return np.array([first, *later], dtype=np.float64)


def rises(values: F64) -> float:
    """Largest rise from one step to the next, relative to the first loss."""
    return float(np.max(np.diff(values), initial=0.0) / values[0])


@experiment("SUP-X-boost", theme="supervised", title="Small and searched steps help", slow=True)
def boost(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Boosting adds trees, :math:`F \leftarrow F + \nu\gamma h`. With ν = 1 the test error is lowest after
    a few trees and then rises; ν = 0.1 ends far lower. A fixed step that is too long raises even the
    training loss, one found by :math:`\gamma = \arg\min\sum L(y, F + \gamma h)` never does. By hand:
    :math:`73.33 + .1(-17.33) + .1(-15.6) = 70.04`.

    Friedman's function, 200 rows, 500 trees of depth 3; then 40 steps for the squared, Huber's and
    the logistic loss (a quarter of the labels flipped).
    """
    key = Key.of(seed)
    X, y, _ = friedman(key.fold("train").numpy(), 200)
    Z, _, truth = friedman(key.fold("test").numpy(), 1000)
    curves = {}
    for rate in (1.0, 0.1):
        model = GradientBoostingRegressor(
            learning_rate=rate, n_estimators=TREES, random_state=0
        ).fit(X, y)
        curves[rate] = np.array([float(((f - truth) ** 2).mean()) for f in model.staged_predict(Z)])
    best = int(curves[1.0].argmin())
    after = float(curves[1.0][-1] - curves[1.0][best])
    shrunk = float(curves[0.1][-1] / curves[1.0][-1])

    flipped = key.fold("flips").numpy().random(200) < 0.25
    classes = ((y > np.median(y)) ^ flipped).astype(np.int64)
    rough = y + 30 * (key.fold("outliers").numpy().random(200) < 0.05)
    steps: dict[str, F64] = {}
    settings: dict[str, tuple[Any, Any, dict[str, Any]]] = {
        "squared, step 2.5": (GradientBoostingRegressor, y, {"learning_rate": 2.5, "line_search": "none"}),
        "squared, searched": (GradientBoostingRegressor, y, {"learning_rate": 1.0, "line_search": "exact"}),
        "Huber, leaves": (GradientBoostingRegressor, rough, {"loss": HUBER, "learning_rate": 1.0}),
        "Huber, searched": (GradientBoostingRegressor, rough,
                            {"loss": HUBER, "learning_rate": 1.0, "line_search": "exact"}),
        "logistic, step 20": (GradientBoostingClassifier, classes,
                              {"learning_rate": 20.0, "line_search": "none"}),
        "Huber, full step": (GradientBoostingRegressor, rough,
                             {"loss": HUBER, "learning_rate": 1.0, "line_search": "none"}),
        "logistic, full step": (GradientBoostingClassifier, classes,
                                {"learning_rate": 1.0, "line_search": "none"}),
        "logistic, leaves": (GradientBoostingClassifier, classes, {"learning_rate": 0.1}),
        "logistic, searched": (GradientBoostingClassifier, classes,
                               {"learning_rate": 1.0, "line_search": "exact"}),
    }  # fmt: skip
    for name, (kind, target, options) in settings.items():
        steps[name] = losses(
            kind(n_estimators=40, random_state=0, **options).fit(X, target), X, target
        )
    up = {name: rises(values) for name, values in steps.items()}

    rows, marks = np.array([[0.0], [0.1], [5.0]]), np.array([88.0, 76.0, 56.0])
    hand = GradientBoostingRegressor(n_estimators=2, max_depth=1, random_state=0).fit(rows, marks)
    parts = [73.0 + 1 / 3, *(float(hand.estimators_[k, 0].predict(rows[2:])[0]) for k in (0, 1))]
    total = float(hand.predict(rows[2:])[0])
    claims = [
        Claim.at_most("ν = 1: trees at the lowest test error", best + 1, 30),
        Claim.above("ν = 1: rise of the test error after that", after, 0.0),
        Claim.at_most("test error with ν = .1 over that with ν = 1", shrunk, 0.5),
        Claim.above("squared loss: rise with a fixed step of 2.5", up["squared, step 2.5"], 0.0),
        Claim.above("logistic loss: rise with a fixed step of 20", up["logistic, step 20"], 0.0),
        *[Claim.at_most(f"{n}: largest rise of the training loss", up[n], 1e-9)
          for n in up if n.endswith(("searched", "leaves"))],
        Claim.close("by hand: the third row", total, 70.04, tol=0.005),
        Claim.close("by hand: 73.33 + .1·h₁ + .1·h₂", parts[0] + 0.1 * (parts[1] + parts[2]), total, tol=1e-9),
    ]  # fmt: skip
    numbers = {"test error": {str(k): [float(v[best]), float(v[-1])] for k, v in curves.items()},
               "lowest at": best + 1, "rise": up, "parts": parts, "sum": total}  # fmt: skip

    def draw(figure: Figure) -> None:
        left, middle, *small = figure.subplots(1, 4, width_ratios=(1.2, 1.2, 0.8, 0.8))
        for (rate, curve), colour in zip(curves.items(), COLOURS):
            left.semilogx(np.arange(1, TREES + 1), curve, color=colour, label=f"ν = {rate:g}")
        left.set(title="test error", xlabel="trees", ylim=(0, None))
        left.legend()
        for (name, values), colour in zip(steps.items(), (*COLOURS, "black", "#c49c3f", "#7fa8d9")):
            dashed = "step" in name  # not searched
            middle.semilogy(
                np.maximum(values / values[0], 1e-3),
                "--" if dashed else "-",
                color=colour,
                label=name,
            )
        middle.set(title="training loss over its first", xlabel="step", ylim=(1e-2, 1e3))
        middle.legend(fontsize=6)
        for k, ax in enumerate(small):
            plot_tree(hand.estimators_[k, 0], ax=ax, sample=rows[2])
            sign = "73.33 + .1 ×" if k == 0 else "+ .1 ×"
            ax.set_title(f"{sign} ({parts[k + 1]:.2f})" + (f" = {total:.2f}" if k else ""))

    return Result(claims, numbers, draw, size=(14.0, 3.4))
