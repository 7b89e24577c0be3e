r"""The prior variance of a code is a ridge penalty."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Result, experiment
from groundstate.models.factors.probabilistic_pca import ProbabilisticPCA
from groundstate.models.linear.least_squares.ridge import Ridge

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIGMAS = np.logspace(-3, 3, 25)


@experiment("UNSX-ridge", theme="unsupervised", title="The prior variance is a ridge knob")
def ridge(seed: int = 0, *, quick: bool = False) -> Result:
    r"""The code of a row is :math:`m = (W^\top W + \tfrac\nu{\sigma^2}I)^{-1}W^\top(x - b)`: ridge
    regression of the row on the columns of W with penalty :math:`\nu/\sigma^2`. From
    :math:`\sigma = \infty`, the least-squares code :math:`W^+(x-b)`, its norm falls to zero.

    A random W of 6 × 3, one row, noise variance 1, σ from 10⁻³ to 10³.
    """
    rng = Key.of(seed).fold("rows").numpy()
    W, row = rng.normal(size=(6, 3)), rng.normal(size=(1, 6)) * 2
    model = ProbabilisticPCA(3, noise_variance=1.0).fit(rng.normal(size=(20, 6)))
    energy = model.energy_
    with torch.no_grad():
        energy.W.copy_(torch.from_numpy(W))
        energy.b.zero_()
    codes, peers = [], []
    for sigma in SIGMAS:
        energy.prior_variance = float(sigma**2)
        codes.append(model.transform(row)[0])
        peers.append(Ridge(alpha=1 / sigma**2, fit_intercept=False).fit(W, row[0]).coef_)
    path, peer = np.array(codes), np.array(peers)
    norms = np.linalg.norm(path, axis=1)
    exact = np.linalg.pinv(W) @ row[0]
    claims = [
        Claim.below("largest distance to the path of Ridge", float(np.abs(path - peer).max()), 1e-9),
        Claim.below("σ = 1000: distance to the pseudo-inverse", float(np.abs(path[-1] - exact).max()), 1e-4),
        Claim.below("σ = 0.001: norm of the code", float(norms[0]), 1e-3),
        Claim.at_least("smallest step of the norm as σ grows", float(np.diff(norms).min()), 0.0),
    ]  # fmt: skip
    numbers = {"sigma": SIGMAS.tolist(), "codes": path.tolist(), "least squares": exact.tolist()}

    def draw(figure: Figure) -> None:
        ax = figure.subplots()
        for k in range(3):
            ax.plot(SIGMAS, path[:, k], color=COLOURS[k])
            ax.axhline(exact[k], color=COLOURS[k], linewidth=0.6, linestyle=":")
        ax.set(xscale="log", xlabel="σ", title="entries of the code; dotted: least squares")

    return Result(claims, numbers, draw, size=(6.0, 3.4))
