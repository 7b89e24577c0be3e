r"""The support of y chooses the family."""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.supervised.scenes import F64
from groundstate.models.linear.generalised.glm import GLM
from groundstate.models.linear.generalised.poisson_regressor import PoissonRegressor

OFFSET, SLOPE = 0.2, 1.0


def deviance(y: F64, mean: F64) -> float:
    r"""Mean Poisson deviance, :math:`2\,(y\log(y/\mu) - y + \mu)`."""
    safe = np.where(y > 0, y, 1.0)
    return float((2 * (y * np.log(safe / mean) - y + mean)).mean())


@experiment("SUP-X-glm", theme="supervised", title="Choose the family by the support of y")
def glm(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Counts with :math:`\log E[y \mid x] = \theta_0 + \theta x`: a Gaussian with the identity link
    predicts negative means and the same spread everywhere, a Poisson distribution with the log link
    neither.

    500 counts to learn from, 2,000 to judge, by the Poisson deviance; means below 1e-3 are clipped
    to it for the judgement.
    """
    rng = Key.of(seed).fold("data").numpy()
    x = rng.uniform(-3, 2.5, 2500)
    y = rng.poisson(np.exp(OFFSET + SLOPE * x)).astype(np.float64)
    X, Z = x[:500, None], x[500:, None]
    models: dict[str, Any] = {
        "Gaussian, identity": GLM("gaussian").fit(X, y[:500]),
        "Poisson, log": PoissonRegressor(alpha=0.0, tol=1e-8).fit(X, y[:500]),
    }
    means = {name: model.predict(Z) for name, model in models.items()}
    lost = {name: deviance(y[500:], np.maximum(mean, 1e-3)) for name, mean in means.items()}
    low = {name: float(mean.min()) for name, mean in means.items()}
    poisson = models["Poisson, log"]
    moment = float((y[:500] - poisson.predict(X)).sum())
    ratio = lost["Poisson, log"] / lost["Gaussian, identity"]
    claims = [
        Claim.below("Gaussian: smallest mean", low["Gaussian, identity"], 0.0),
        Claim.above("Poisson: smallest mean", low["Poisson, log"], 0.0),
        Claim.at_most("held-out deviance, Poisson over Gaussian", ratio, 0.8),
        Claim.close("Poisson: slope", float(poisson.coef_[0]), SLOPE, tol=0.1),
        Claim.at_most("Poisson: |Σ(y − μ)| on the training rows", abs(moment), 1e-3),
    ]  # fmt: skip
    numbers = {"deviance": lost, "smallest mean": low, "slope": float(poisson.coef_[0])}

    def draw(figure: Figure) -> None:
        t = np.linspace(-3, 2.5, 200)[:, None]
        for ax, (name, model) in zip(figure.subplots(1, 2, sharey=True), models.items()):
            ax.scatter(X[:, 0], y[:500], s=6, color=COLOURS[5], alpha=0.5)
            mean, band = model.predict(t), model.predict_interval(t, level=0.95)
            ax.fill_between(t[:, 0], band[:, 0], band[:, 1], color=COLOURS[0], alpha=0.2)
            ax.plot(t[:, 0], mean, color=COLOURS[0])
            ax.plot(t[:, 0], np.exp(OFFSET + SLOPE * t[:, 0]), ":", color="black")
            ax.axhline(0, color="black", linewidth=0.5)
            ax.set(title=f"{name}: deviance {lost[name]:.2f}", xlabel="x")

    return Result(claims, numbers, draw, size=(8.5, 3.4))
