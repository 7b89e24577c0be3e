r"""Learned noise is calibrated; models without it hide what they do not know."""

from __future__ import annotations

import numpy as np

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.supervised.scenes import F64, Rng
from groundstate.models.linear.least_squares.gaussian_regressor import GaussianRegressor
from groundstate.models.linear.logistic.logistic_regression import LogisticRegression

QUARTERS = ((0.0, 0.25), (0.25, 0.5), (0.5, 0.75), (0.75, 1.0))


def rows(rng: Rng, n: int) -> tuple[F64, F64]:
    """μ = 1 + 2x and log σ² = −4 + 4x."""
    x = rng.random((n, 1))
    sigma = np.exp(-2 + 2 * x[:, 0])
    return x, 1 + 2 * x[:, 0] + sigma * rng.standard_normal(n)


@experiment("SUP-X-hetero", theme="supervised", title="Learned noise calibrates")
def hetero(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Where the noise grows with x, :math:`\log\sigma^2 = -4 + 4x`, one σ for all is too wide on the
    left and too narrow on the right; minimising :math:`\tfrac12\log2\pi\sigma^2 + (y - \mu)^2/2\sigma^2`
    with σ a function of x is right everywhere, and the means hardly differ. A class label likewise
    hides how sure the classifier is; the probability says it.

    1,000 rows to learn from, 20,000 to judge; ±2σ should hold 95 % in every quarter of x. Then a
    logistic regression: rows by their probability, against how often they are of class 1.
    """
    key = Key.of(seed)
    X, y = rows(key.fold("train").numpy(), 1000)
    Z, t = rows(key.fold("test").numpy(), 20_000)
    fits = {n: GaussianRegressor(noise=n).fit(X, y) for n in ("log-linear", "constant")}
    loss = {n: float(model.energy(Z, t).mean()) for n, model in fits.items()}
    cover: dict[str, list[float]] = {}
    error = {}
    for name, model in fits.items():
        mean, sd = model.predict(Z, return_std=True)
        inside = np.abs(t - mean) <= 2 * sd
        cover[name] = [float(inside[(Z[:, 0] >= a) & (Z[:, 0] < b)].mean()) for a, b in QUARTERS]
        error[name] = float(((t - mean) ** 2).mean())
    ends = cover["constant"][0], cover["constant"][-1]

    rng = key.fold("classes").numpy()
    u = rng.uniform(-3, 3, (20_000, 1))
    c = (rng.random(20_000) < 1 / (1 + np.exp(-u[:, 0]))).astype(np.int64)
    model = LogisticRegression().fit(u[:5000], c[:5000])
    p = model.predict_proba(u[5000:])[:, 1]
    bins = np.minimum((10 * p).astype(int), 9)
    seen = np.array([[p[bins == b].mean(), c[5000:][bins == b].mean()] for b in np.unique(bins)])
    soft = float(np.abs(seen[:, 0] - seen[:, 1]).max())
    hard = float(np.abs((seen[:, 0] > 0.5) - seen[:, 1]).max())
    gain = loss["constant"] - loss["log-linear"]
    claims = [
        Claim.at_least("held-out loss, constant noise less learned", gain, 0.2),
        *[Claim.close(f"learned: ±2σ hold, x in {a:g} to {b:g}", v, 0.95, tol=0.03)
          for (a, b), v in zip(QUARTERS, cover["log-linear"])],
        Claim.at_least("constant: ±2σ hold in the first quarter", ends[0], 0.98),
        Claim.at_most("constant: ±2σ hold in the last quarter", ends[1], 0.88),
        Claim.at_most("relative difference of the mean squared errors",
                      abs(error["log-linear"] / error["constant"] - 1), 0.01),
        Claim.at_most("classes: probability against frequency, largest difference", soft, 0.05),
        Claim.at_least("classes: label against frequency, largest difference", hard, 0.3),
    ]  # fmt: skip
    numbers = {"loss": loss, "cover": cover, "squared error": error, "classes": [soft, hard]}

    def draw(figure: Figure) -> None:
        axes = figure.subplots(1, 3)
        at = np.linspace(0, 1, 100)[:, None]
        for ax, (name, model) in zip(axes, fits.items()):
            mean, sd = model.predict(at, return_std=True)
            ax.scatter(X[:500, 0], y[:500], s=4, color=COLOURS[5], alpha=0.5)
            ax.fill_between(at[:, 0], mean - 2 * sd, mean + 2 * sd, color=COLOURS[0], alpha=0.25)
            ax.plot(at[:, 0], mean, color=COLOURS[0])
            ax.set(title=f"{name} noise: loss {loss[name]:.2f}", xlabel="x", ylim=(-1, 6))
        axes[2].plot([0, 1], [0, 1], ":", color="black")
        axes[2].plot(seen[:, 0], seen[:, 1], "o-", color=COLOURS[0], label="probability")
        axes[2].step([0, 0.5, 1], [0, 0, 1], color=COLOURS[1], label="label alone")
        axes[2].set(title="score against frequency of class 1", xlabel="predicted")
        axes[2].legend()

    return Result(claims, numbers, draw, size=(10.5, 3.3))
