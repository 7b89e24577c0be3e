r"""The weight of the divergence trades fidelity for a space of codes that can be sampled."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from groundstate.compute.random import Key
from groundstate.errors import Unreliable
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.math.divergences.frechet import frechet_from_samples
from groundstate.models.factors.pca import PCA
from groundstate.models.generative.autoencoders.vae import VAE

BETAS = (0.0, 0.1, 1.0, 4.0, 10.0)


def away(rows: np.ndarray, data: np.ndarray) -> float:
    """Mean distance of rows to the nearest row of the data."""
    square = (rows**2).sum(1)[:, None] - 2 * rows @ data.T + (data**2).sum(1)
    return float(np.sqrt(np.maximum(square.min(1), 0)).mean())


@experiment(
    "GENX-vae-beta", theme="generative", title="What the weight of the divergence buys", slow=True
)
def vae_beta(seed: int = 0, *, quick: bool = False) -> Result:
    r""":math:`L = E_q[-\log p(x \mid z)] + \beta\,\mathrm{KL}(q\,\|\,p(z))` on 8 × 8 digits, a code of
    length 8, :math:`\sigma_x^2 = .05`. Without the divergence codes drift away from the prior and draws of
    it decode to nonsense; with too much of it the units give up.

    The Fréchet distance is that of 20 principal components; all numbers are means of three fits.
    """
    from sklearn.datasets import load_digits

    X = load_digits().data / 16.0
    X = X[np.argsort(Key.of(seed).fold("split").uniform(len(X)))]
    train, test = X[:1400], X[1400:]
    axes = PCA(20).fit(train)
    found: dict[str, list[float]] = {}
    models: list[Any] = []
    for beta in BETAS:
        runs: dict[str, list[float]] = {}
        for r in range(1 if quick else 3):
            model = VAE(
                8, beta=beta, likelihood_scale=0.05**0.5, scale=None, hidden_layer_sizes=(128, 64),
                learning_rate_init=3e-3, batch_size=128, max_iter=150,
                random_state=Key.of(seed).fold("model", r),
            )  # fmt: skip
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", Unreliable)  # collapse is what is looked for
                model.fit(train)
            drawn = model.sample(1000, random_state=seed, return_mean=True)
            codes = model.transform(test)
            halfway = model.inverse_transform(0.5 * (codes[:190] + codes[190:380]))
            one = {
                "mse": float(((model.reconstruct(test) - test) ** 2).mean()),
                "frechet": float(frechet_from_samples(axes.transform(drawn), axes.transform(test))),
                "norm": float(np.linalg.norm(codes, axis=1).mean()),
                "between": away(halfway, train),
                "active": float(model.active_units_.sum()),
            }
            for name, value in one.items():
                runs.setdefault(name, []).append(value)
        models.append(model)
        for name, values in runs.items():
            found.setdefault(name, []).append(float(np.mean(values)))
    mse, distance, norm = found["mse"], found["frechet"], found["norm"]
    between, active = found["between"], found["active"]
    best = BETAS[int(np.argmin(distance))]
    claims = [
        Claim.above("test MSE at β = 1 over β = 0", mse[2] / mse[0], 1.0),
        Claim.above("test MSE at β = 4 over β = 1", mse[3] / mse[2], 1.2),
        Claim.above("test MSE at β = 10 over β = 4", mse[4] / mse[3], 1.2),
        Claim.equal("β with the lowest Fréchet distance of draws", best, 1.0),
        Claim.above("Fréchet distance at β = 0 over β = 1", distance[0] / distance[2], 5.0),
        Claim.above("norm of codes at β = 0 over β = 1", norm[0] / norm[2], 1.1),
        Claim.above("distance of halfway rows to the data, β = 0 over β = 1",
                    between[0] / between[2], 1.0),
        Claim.below("active units at β = 10", active[4], 1.0),
    ]  # fmt: skip

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2, width_ratios=[1.2, 2])
        left.plot(mse, distance, "o-", color=COLOURS[0])
        for beta, a, b in zip(BETAS, mse, distance, strict=True):
            left.annotate(f"β={beta:g}", (a, b), fontsize=8)
        left.set(xlabel="test MSE", ylabel="Fréchet distance of draws", yscale="log")
        rows = [m.interpolate(test[0], test[5], n=8).reshape(8, 8, 8) for m in models]
        right.imshow(
            np.concatenate([np.concatenate(list(r), 1) for r in rows]), cmap="Greys", aspect="equal"
        )
        right.set(xticks=[], title="from one digit to another")
        right.set_yticks([8 * i + 3.5 for i in range(len(BETAS))], [f"β={b:g}" for b in BETAS])

    return Result(claims, {"beta": list(BETAS), **found}, draw, size=(9.5, 3.6))
