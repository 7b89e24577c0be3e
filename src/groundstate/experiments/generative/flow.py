r"""Flows have exact likelihoods and exact inverses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.datasets import make_moons
from sklearn.mixture import GaussianMixture

from groundstate.experiments.base import COLOURS, Claim, Result, experiment
from groundstate.models.generative.flows.cnf import CNF
from groundstate.models.generative.flows.normalizing_flow import NormalizingFlow

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIDE = np.linspace(-4.5, 4.5, 301)


@experiment("GENX-flow", theme="generative", title="Exact likelihood and inverse", slow=True)
def flow(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Two moons by :math:`\log p(x) = \log N(f(x); 0, I) + \log|\det\partial f/\partial x|` with several f. On
    held-out rows splines are at least as good as affine maps, and these beat a Gaussian by far; the
    densities integrate to one, and the mean of :math:`-\log p` over draws is the entropy.
    """
    X, _ = make_moons(1500, noise=0.08, random_state=seed)
    held, _ = make_moons(2000, noise=0.08, random_state=seed + 1000)
    mean, std = X.mean(0), X.std(0)
    X, held = (X - mean) / std, (held - mean) / std
    epochs = 50 if quick else 80
    models: dict[str, Any] = {
        "RealNVP": NormalizingFlow("realnvp", n_transforms=6, max_iter=epochs, random_state=seed),
        "MAF": NormalizingFlow("maf", max_iter=epochs, random_state=seed),
        "NSF": NormalizingFlow("nsf", max_iter=epochs, random_state=seed),
        "CNF": CNF(
            hidden_layer_sizes=(64, 64), method="rk4", n_steps=6, max_iter=20 if quick else 30,
            batch_size=128, random_state=seed,
        ),
    }  # fmt: skip
    nll = {"Gaussian": -float(GaussianMixture(1, random_state=seed).fit(X).score(held))}
    for name, model in models.items():
        nll[name] = -model.fit(X).score(held)
    grid = np.stack(np.meshgrid(SIDE, SIDE), -1).reshape(-1, 2)
    cell = (SIDE[1] - SIDE[0]) ** 2
    claims = [
        Claim.at_most("NLL of NSF minus that of MAF", nll["NSF"] - nll["MAF"], 0.0),
        Claim.at_most("NLL of MAF minus that of a Gaussian", nll["MAF"] - nll["Gaussian"], -0.8),
        Claim.at_most("NLL of RealNVP", nll["RealNVP"], 1.85),
        Claim.at_most("NLL of CNF minus that of a Gaussian", nll["CNF"] - nll["Gaussian"], -0.3),
    ]
    densities = {}
    for name in ("RealNVP", "MAF", "NSF"):
        log_p = models[name].score_samples(grid)
        densities[name] = np.exp(log_p).reshape(len(SIDE), -1)
        claims.append(
            Claim.close(f"integral of {name}", float(np.exp(log_p).sum() * cell), 1.0, tol=2e-3)
        )
        if name == "NSF":
            entropy = -float((np.exp(log_p) * log_p).sum() * cell)
            drawn = -models[name].score_samples(models[name].sample(4000, random_state=seed))
            z = (drawn.mean() - entropy) / (drawn.std() / np.sqrt(len(drawn)))
            claims.append(
                Claim.at_most("z of NLL of draws against the entropy", abs(float(z)), 4.0)
            )
    back = models["NSF"].reconstruct(held[:200])
    claims.append(
        Claim.at_most("error of the inverse", float(np.abs(back - held[:200]).max()), 1e-6)
    )

    def draw(figure: Figure) -> None:
        axes = figure.subplots(1, 4)
        for ax, (name, p) in zip(axes, densities.items(), strict=False):
            ax.pcolormesh(SIDE, SIDE, p, cmap="Blues", shading="auto", rasterized=True)
            ax.set(
                title=f"{name}: {nll[name]:.2f}",
                xticks=[],
                yticks=[],
                xlim=(-2.5, 2.5),
                ylim=(-2.5, 2.5),
            )
        t = np.linspace(-2, 2, 100)
        for k in np.linspace(-2, 2, 15):
            for rows, colour in (
                (np.stack([t, np.full(100, k)], 1), COLOURS[0]),
                (np.stack([np.full(100, k), t], 1), COLOURS[1]),
            ):
                axes[-1].plot(*models["NSF"].inverse_transform(rows).T, color=colour, lw=0.6)
        axes[-1].set(title="warped grid", xticks=[], yticks=[])

    return Result(claims, {"nll": nll}, draw, size=(9.0, 2.6))
