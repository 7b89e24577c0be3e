r"""The score of noisy data undoes the noise, and the luck of the chosen."""

from __future__ import annotations

import math

import numpy as np

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.math.diffusion import smoothed_score, tweedie
from groundstate.models.networks.mlp_regressor import MLPRegressor

N, TOP = 100_000, 0.01
WEIGHTS, MEANS, VARIANCES, SIGMA = [0.3, 0.7], [[-2.0], [1.5]], [0.3, 0.6], 1.0


@experiment("GENX-tweedie", theme="generative", title="Tweedie removes selection bias")
def tweedie_corrects(seed: int = 0, *, quick: bool = False) -> Result:
    r"""For :math:`z = \mu + N(0, \sigma^2)`, :math:`E[\mu\mid z] = z + \sigma^2\nabla\log p(z)`.

    Of 100,000 true values μ ~ N(0, 1) seen with unit noise, those that look largest were mostly
    lucky: their mean is more than one too high, and the score −z/2 takes it away. For a mixture the
    score x + σ²s denoises better than leaving x alone and as well as a network trained to denoise;
    a step in the other direction makes it worse.
    """
    key = Key.of(seed)
    rng = key.fold("rows").numpy()
    biases = []
    for _ in range(3):
        mu = rng.normal(size=N)
        z = mu + rng.normal(size=N)
        best = np.argsort(z)[-int(TOP * N) :]
        fixed = np.asarray(tweedie(z[:, None], -z[:, None] / 2, 1.0))[:, 0]
        biases.append([(z - mu)[best].mean(), (fixed - mu)[best].mean()])
    naive, corrected = (float(v) for v in np.mean(biases, 0))

    n = 20_000 if quick else 40_000
    part = rng.choice(2, n, p=WEIGHTS)
    clean = np.array(MEANS)[part] + np.sqrt(VARIANCES)[part][:, None] * rng.normal(size=(n, 1))
    noisy = clean + SIGMA * rng.normal(size=(n, 1))
    score = np.asarray(smoothed_score(noisy, WEIGHTS, MEANS, VARIANCES, SIGMA))
    half = n // 2
    net = MLPRegressor(
        hidden_layer_sizes=(32, 32), learning_rate_init=5e-3, batch_size=500, max_iter=15, early_stopping=False,
        random_state=int(key.fold("net").low % 2**31), n_iter_no_change=math.inf,
    ).fit(noisy[:half], clean[:half, 0])  # fmt: skip
    test = slice(half, n)

    def mse(found: np.ndarray) -> float:
        return float(np.mean((found - clean[test, 0]) ** 2))

    x, s = noisy[test, 0], score[test, 0]
    errors = {
        "left alone": mse(x),
        "x + σ²s": mse(np.asarray(tweedie(noisy[test], score[test], SIGMA**2))[:, 0]),
        "trained": mse(net.predict(noisy[test])),
        "x − σ²s": mse(x - SIGMA**2 * s),
    }
    claims = [
        Claim.above("top 1 %: bias of what is seen", naive, 1.0),
        Claim.at_most("top 1 %: size of the corrected bias", abs(corrected), 0.05),
        Claim.at_most("all: size of the corrected bias", abs(float((fixed - mu).mean())), 0.05),
        Claim.below("mixture: error of x + σ²s less that of x",
                    errors["x + σ²s"] - errors["left alone"], 0.0),
        Claim.at_most("mixture: gap of a trained denoiser to x + σ²s, relative",
                      abs(errors["trained"] / errors["x + σ²s"] - 1), 0.02),
        Claim.above("mixture: error of the opposite sign less that of x",
                    errors["x − σ²s"] - errors["left alone"], 0.0),
    ]  # fmt: skip

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        cuts = np.quantile(z, np.linspace(0, 1, 41))
        where = np.clip(np.searchsorted(cuts, z) - 1, 0, 39)
        true = np.array([mu[where == k].mean() for k in range(40)])
        for values, name, colour in ((z, "seen", COLOURS[1]), (fixed, "corrected", COLOURS[0])):
            estimated = np.array([values[where == k].mean() for k in range(40)])
            left.plot(estimated, true, "o", color=colour, markersize=3, label=name)
        ends = [-3.5, 3.5]
        left.plot(ends, ends, color=COLOURS[5], linestyle=":")
        left.set(title="estimated and true means", xlabel="estimated", ylabel="mean of μ")
        left.legend()
        at = np.linspace(-6, 6, 200)[:, None]
        slope = np.asarray(smoothed_score(at, WEIGHTS, MEANS, VARIANCES, SIGMA))
        right.plot(at, at, color=COLOURS[5], linestyle=":", label="x")
        right.plot(at, at + SIGMA**2 * slope, color=COLOURS[0], label="x + σ²s")
        right.plot(at, net.predict(at), "--", color=COLOURS[1], label="trained denoiser")
        right.set(title="denoisers of a mixture", xlabel="noisy x")
        right.legend()

    return Result(claims, {"bias": [naive, corrected], "error": errors}, draw, size=(8.5, 3.4))
