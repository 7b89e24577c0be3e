r"""The perceptron stops on separable rows and never on others."""

from __future__ import annotations

import numpy as np
import torch

from groundstate.compute.random import Key
from groundstate.energy import Energy, LinearEnergy
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.supervised.scenes import F64, I64, dots
from groundstate.experiments.tools import Watch
from groundstate.learn.solvers.svm.smo.rows import canonical_rows
from groundstate.models.linear.stochastic.perceptron import Perceptron
from groundstate.models.svm.svc import SVC

NORMAL, MIDDLE = np.array([0.8, 0.6]), np.array([1.4, 1.0])
EPOCHS = 100


def weights(energy: Energy) -> torch.Tensor:
    """Score of class 1 less that of class 0, offset last."""
    assert isinstance(energy, LinearEnergy) and energy.b is not None
    return torch.cat([energy.W[1] - energy.W[0], energy.b[1:] - energy.b[:1]])


def learn(X: F64, y: I64, epochs: int) -> tuple[Perceptron, F64]:
    """The perceptron without its tolerance, and its weights after every epoch."""
    watch = Watch(weights)
    model = Perceptron(max_iter=epochs, tol=None, n_iter_no_change=epochs + 1, shuffle=False,
                       callbacks=[watch])  # fmt: skip
    return model.fit(X, y), watch.seen.numpy()


def thresholded(X: F64, y: I64, order: I64, epochs: int) -> F64:
    r"""Logistic descent row by row, :math:`w \leftarrow w + \eta(y - p)x` with p cut to 0 or 1."""
    rows, w = np.column_stack([X, np.ones(len(X))]), np.zeros(X.shape[1] + 1)
    path = [w.copy()]
    for _ in range(epochs):
        for i in order:
            f = rows[i] @ w
            w += (y[i] - float(f > 0)) * rows[i]
        path.append(w.copy())
    return np.array(path)


@experiment("SUP-X-perceptron", theme="supervised", title="Stops on separable data, never else")
def perceptron(seed: int = 0, *, quick: bool = False) -> Result:
    r"""On rows with :math:`y\,w^\top x \ge \gamma` for some unit w and :math:`\|x\| \le R` the
    perceptron makes at most :math:`(R/\gamma)^2` mistakes and stops; with flipped labels some row
    is wrong in every epoch. It is logistic regression by descent, row by row, with
    :math:`w \leftarrow w + \eta(y - p)x` and the probability p cut to 0 or 1.

    Two long clouds of 100 rows with a gap, offset as a column of ones; then 5 % flipped labels, 100
    epochs. γ is that of the widest margin.
    """
    rng = Key.of(seed).fold("data").numpy()
    y = np.arange(200, dtype=np.int64) % 2
    away = np.where(y == 1, 1.0, -1.0) * (0.1 + np.abs(rng.standard_normal(200)))
    along = 2.5 * rng.standard_normal(200)
    X = MIDDLE + np.outer(away, NORMAL) + np.outer(along, [-NORMAL[1], NORMAL[0]])
    model, path = learn(X, y, EPOCHS)
    mistakes = model.history_.extra["mistakes"]
    wide = SVC(kernel="linear", C=np.inf, tol=1e-8).fit(X, y)
    plane = np.append(wide.coef_[0], wide.intercept_[0])
    gamma = float(
        (np.where(y == 1, 1, -1) * wide.decision_function(X)).min() / np.linalg.norm(plane)
    )
    radius = float(np.sqrt((X**2).sum(1).max() + 1))
    bound = (radius / gamma) ** 2

    flipped = y.copy()
    turned = rng.permutation(len(y))[: len(y) // 20]
    flipped[turned] = 1 - flipped[turned]
    restless, _ = learn(X, flipped, EPOCHS)
    later = restless.history_.extra["mistakes"]

    order, _ = canonical_rows(torch.from_numpy(X), torch.from_numpy(y), None)
    apart = float(np.abs(thresholded(X, y, order, len(path) - 1) - path).max())
    claims = [
        Claim.equal("separable: mistakes in the last epoch", int(mistakes[-1]), 0),
        Claim.at_most("separable: mistakes in all, against (R/γ)²", sum(mistakes), bound),
        Claim.equal("flipped: epochs run", len(later), EPOCHS),
        Claim.at_least("flipped: fewest mistakes in an epoch", min(later), 1),
        Claim.at_most("weights after each epoch against thresholded logistic descent", apart, 1e-9),
    ]
    numbers = {"mistakes": mistakes, "flipped mistakes": later, "R": radius, "gamma": gamma,
               "bound": bound, "distance": apart}  # fmt: skip

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        dots(left, X, y)
        t = np.array([X[:, 0].min(), X[:, 0].max()])
        for k, w in enumerate(path[1:]):
            if w[1] != 0:
                shade = 0.15 + 0.85 * (k + 1) / (len(path) - 1)
                left.plot(t, -(w[0] * t + w[2]) / w[1], color="black", alpha=shade, linewidth=0.9)
        left.set(title="boundary after each epoch", ylim=(X[:, 1].min(), X[:, 1].max()))
        right.plot(range(1, len(later) + 1), later, color=COLOURS[1], label="5 % flipped")
        right.plot(range(1, len(mistakes) + 1), mistakes, "o-", color=COLOURS[0], markersize=3,
                   label="separable")  # fmt: skip
        right.set(title=f"mistakes; bound (R/γ)² = {bound:.0f}", xlabel="epoch")
        right.legend()

    return Result(claims, numbers, draw, size=(8.5, 3.5))
