r"""Networks that have seen all answers are too sure; models of the spread know it."""

from __future__ import annotations

from typing import Any

import numpy as np

from groundstate.compute.random import Key
from groundstate.evaluate import fit_temperature
from groundstate.evaluate.metrics import coverage, ece, reliability
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.supervised.scenes import F64, I64, Rng
from groundstate.models.linear.least_squares.gaussian_regressor import GaussianRegressor
from groundstate.models.linear.least_squares.linear_regression import LinearRegression
from groundstate.models.networks.mlp_classifier import MLPClassifier
from groundstate.models.population.many import fit_many

MEMBERS = 10


def moons(rng: Rng, n: int, sd: float = 0.4) -> tuple[F64, I64]:
    """Two half circles that reach into each other, with noise."""
    y = np.arange(n, dtype=np.int64) % 2
    angle = np.pi * rng.random(n)
    x = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    x[y == 1] = [1.0, 0.5] - x[y == 1]
    return x + sd * rng.standard_normal((n, 2)), y


def logits(net: Any, X: F64) -> F64:
    """Energies of both classes."""
    p = np.clip(np.asarray(net.predict_proba(X), np.float64), 1e-300, 1.0)
    return -np.log(p)


@experiment(
    "EVA-X-calib", theme="evaluation", title="Deterministic scores are overconfident", slow=True
)
def calib(seed: int = 0, *, quick: bool = False) -> Result:
    r"""A network trained until it knows its rows by heart says "sure" also where it errs. One inverse
    temperature fitted on validation rows, :math:`p \propto e^{-\beta e}`, mends most of that: the
    expected calibration error :math:`\sum_b\frac{n_b}n|\bar y_b - \bar p_b|` falls by half or more in most
    draws of the rows, and by 40 to 75 % in those that were tried.
    Far from all rows one network is as sure as anywhere; ten of them disagree. And a regression that
    models its own spread, :math:`N(\mu(x), \sigma^2(x))`, covers 95 % everywhere, one with a single σ
    on average only.

    Half moons: 100 training, 300 validation, 4,000 test rows, a 64-64 network and ten of them; lines
    with noise growing e-fold, 2,000 rows and 20,000 to judge.
    """
    key = Key.of(seed)
    X, y = moons(key.fold("train").numpy(), 100)
    V, v = moons(key.fold("validation").numpy(), 300)
    Z, t = moons(key.fold("test").numpy(), 4000)
    model = MLPClassifier(
        (64, 64),
        learning_rate_init=0.01,
        alpha=0.0,
        batch_size=50,
        max_iter=500,
        tol=0.0,
        n_iter_no_change=np.inf,
    )
    start = 100 * seed
    nets = fit_many(model, X, y, settings=[{"random_state": start + i} for i in range(MEMBERS)])
    one = nets[0]
    before = np.asarray(one.predict_proba(Z))[:, 1]
    heat = fit_temperature(logits(one, V), v)
    after = heat.predict_proba(logits(one, Z))[:, 1]
    results = [(net, logits(net, Z)) for net in nets]
    errors = {
        "as trained": float(np.mean([ece(t, np.exp(-e[:, 1])) for _, e in results])),
        "with temperature": float(np.mean([
            ece(t, fit_temperature(logits(net, V), v).predict_proba(e)[:, 1]) for net, e in results
        ])),
    }  # fmt: skip
    turn = np.linspace(0, 2 * np.pi, 400, endpoint=False)
    far = np.array([0.5, 0.25]) + 6 * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    each = np.stack([np.asarray(net.predict_proba(far)) for net in nets])  # (members, points, 2)
    single, mean = float(each.max(2).mean()), float(each.mean(0).max(1).mean())

    def line(rng: Rng, n: int) -> tuple[F64, F64]:
        x = rng.uniform(-1, 1, (n, 1))
        return x, 1 + 2 * x[:, 0] + np.exp(-1 + x[:, 0]) * rng.standard_normal(n)

    A, a = line(key.fold("line").numpy(), 2000)
    B, b = line(key.fold("lines").numpy(), 20_000)
    plain = LinearRegression().fit(A, a)
    sd = float((a - plain.predict(A)).std(ddof=2))
    spread = GaussianRegressor().fit(A, a)
    mu, sigma = (np.asarray(s, np.float64) for s in spread.predict(B, return_std=True))
    bands = {"one σ": (plain.predict(B), np.full(len(b), sd)), "σ(x)": (mu, sigma)}
    tenths = {
        name: [i.estimate for i in coverage(b, m - 1.96 * s, m + 1.96 * s).by_prediction]
        for name, (m, s) in bands.items()
    }
    worst = {name: float(np.abs(np.array(c) - 0.95).max()) for name, c in tenths.items()}
    claims = [
        Claim.at_most(
            "mean calibration error of ten networks with temperature over that without",
            errors["with temperature"] / errors["as trained"],
            0.5,
        ),
        Claim.below("inverse temperature", heat.beta, 1.0),
        Claim.equal(
            "test rows whose answer the temperature changes",
            int(((before > 0.5) != (after > 0.5)).sum()),
            0,
        ),
        Claim.below("far away: largest p of ten networks less that of one", mean - single, 0.0),
        Claim.at_most("σ(x): largest distance of a tenth's coverage from .95", worst["σ(x)"], 0.02),
        Claim.above("one σ: largest distance of a tenth's coverage from .95", worst["one σ"], 0.02),
    ]
    numbers = {
        "calibration error": errors,
        "inverse temperature": heat.beta,
        "far away": {"one": single, "ten": mean},
        "coverage by tenth": tenths,
    }

    def draw(figure: Figure) -> None:
        curve, heat_one, heat_ten, band, share = figure.subplots(1, 5)
        for p, name, colour in (
            (before, "as trained", COLOURS[4]),
            (after, "temperature", COLOURS[2]),
        ):
            found = reliability(t, p, 10)
            curve.plot(
                found.predicted, found.observed, "o-", markersize=3, color=colour, label=name
            )
        curve.plot([0, 1], [0, 1], ":", color=COLOURS[5])
        curve.set(xlabel="foretold", ylabel="happened")
        curve.legend()
        g = np.linspace(-5, 6, 90)
        grid = np.stack(np.meshgrid(g, g), axis=-1).reshape(-1, 2)
        alone = np.asarray(one.predict_proba(grid))[:, 1]
        many = np.mean([np.asarray(net.predict_proba(grid))[:, 1] for net in nets], axis=0)
        for ax, p, name in ((heat_one, alone, "one network"), (heat_ten, many, "ten networks")):
            ax.pcolormesh(g, g, p.reshape(90, 90), cmap="coolwarm", vmin=0, vmax=1, rasterized=True)
            ax.scatter(*X.T, s=2, color="black")
            ax.set(title=name, xticks=[], yticks=[], aspect="equal")
        order = np.argsort(B[:400, 0])
        band.scatter(B[:400, 0], b[:400], s=3, color=COLOURS[5])
        for (name, (m, s)), colour in zip(bands.items(), COLOURS):
            for side in (-1.96, 1.96):
                band.plot(B[:400, 0][order], (m + side * s)[:400][order], color=colour, linewidth=1)
            share.plot(range(1, 11), tenths[name], "o-", markersize=3, color=colour, label=name)
        band.set(title="95 % bands", xlabel="x")
        share.axhspan(0.93, 0.97, color=COLOURS[5], alpha=0.3)
        share.set(xlabel="tenth of the prediction", ylabel="coverage")
        share.legend()

    return Result(claims, numbers, draw, size=(15.0, 3.2))
