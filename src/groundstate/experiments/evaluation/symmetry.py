r"""Different parameters, the same model: scaled energies and co-linear features."""

from __future__ import annotations

import numpy as np
import torch
from scipy.special import expit
from sklearn.metrics import log_loss
from torch import Tensor
from torch.nn.functional import softplus

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.math.optim import minimize
from groundstate.models.linear.logistic.logistic_regression import LogisticRegression


@experiment(
    "EVA-X-symmetry",
    theme="evaluation",
    title="Equivalent parameters: scales and co-linear features",
)
def symmetry(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Energies multiplied by α > 0 order the classes as before: predictions stay, the log loss of
    :math:`p \propto e^{-\alpha e}` does not. And where :math:`x_2 = 2x_1` on all rows only
    :math:`w_1 + 2w_2` enters the energy: two starts end at different weights with the same loss,
    along the floor of a valley. Which of them is found is noise of learning, not of the data.

    Logistic regression on 200 rows without penalty, from two random starts; α = 0.1 and 10.
    """
    key = Key.of(seed)
    rng = key.fold("rows").numpy()
    x = rng.standard_normal(200)
    y = (rng.random(200) < expit(1.5 * x - 0.3)).astype(np.int64)
    X = np.stack([x, 2 * x], axis=1)
    rows, sign = torch.from_numpy(X), torch.from_numpy(2.0 * y - 1)

    def loss(theta: Tensor) -> Tensor:
        return softplus(-sign * (rows @ theta[:2] + theta[2])).mean()

    ends = []
    for start in key.fold("starts").split(2):
        found = minimize(loss, start.numpy().standard_normal(3), "lbfgs", tol=1e-9, max_iter=500)
        ends.append(np.asarray(found.x, dtype=np.float64))
    one, two = ends
    losses = [float(loss(torch.from_numpy(end))) for end in ends]
    slopes = [float(end[0] + 2 * end[1]) for end in ends]

    model = LogisticRegression(C=np.inf).fit(x[:, None], y)
    score = model.decision_function(x[:, None])
    scaled = {alpha: alpha * score for alpha in (0.1, 1.0, 10.0)}
    predicted = {alpha: (s > 0).astype(np.int64) for alpha, s in scaled.items()}
    log = {alpha: float(log_loss(y, expit(s))) for alpha, s in scaled.items()}
    claims = [
        Claim.equal(
            "rows with other predictions at α = .1",
            int((predicted[0.1] != predicted[1.0]).sum()),
            0,
        ),
        Claim.equal(
            "rows with other predictions at α = 10",
            int((predicted[10.0] != predicted[1.0]).sum()),
            0,
        ),
        Claim.above("log loss at α = .1 less that at 1", log[0.1] - log[1.0], 0.01),
        Claim.above("log loss at α = 10 less that at 1", log[10.0] - log[1.0], 0.01),
        Claim.above("distance of the two weights", float(np.linalg.norm(one[:2] - two[:2])), 0.01),
        Claim.close("difference of w₁ + 2w₂", slopes[0] - slopes[1], 0.0, tol=1e-6),
        Claim.close("difference of the losses", losses[0] - losses[1], 0.0, tol=1e-6),
    ]
    numbers = {
        "weights": [end.tolist() for end in ends],
        "w1 + 2 w2": slopes,
        "losses": losses,
        "log loss by scale": {str(k): v for k, v in log.items()},
    }

    def draw(figure: Figure) -> None:
        valley, curve = figure.subplots(1, 2)
        reach = 1.0 + max(2.0, float(np.abs(np.stack(ends)[:, :2]).max()))
        a = np.linspace(-reach, reach, 80)
        w1, w2 = np.meshgrid(a, a)
        theta = torch.from_numpy(np.stack([w1, w2, np.full_like(w1, one[2])]).reshape(3, -1))
        heights = softplus(-sign[:, None] * (rows @ theta[:2] + theta[2])).mean(0)
        valley.contourf(a, a, heights.log().reshape(80, 80).numpy(), levels=18, cmap="viridis")
        valley.plot(a, (slopes[0] - a) / 2, "w--", linewidth=1)
        for end, colour in zip(ends, COLOURS[1:]):
            valley.plot(*end[:2], "o", color=colour, markeredgecolor="white")
        valley.set(
            xlabel="$w_1$",
            ylabel="$w_2$",
            ylim=(-reach, reach),
            title="log loss: a valley, two ends",
        )
        alphas = np.logspace(-1.5, 1.5, 60)
        curve.semilogx(
            alphas, [float(log_loss(y, expit(s * score))) for s in alphas], color=COLOURS[0]
        )
        curve.set(
            xlabel="scale α of the energies",
            ylabel="log loss",
            title="the predictions never change",
        )

    return Result(claims, numbers, draw)
