r"""Energy variance and posterior entropy answer different questions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Result, experiment
from groundstate.models.mixtures.gaussian_mixture import GaussianMixture

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@experiment("UNSX-uncertainty", theme="unsupervised", title="Two uncertainties of a row")
def uncertainty(seed: int = 0, *, quick: bool = False) -> Result:
    r"""For two unit components at ∓2 with equal weights the energies differ by 4x, so that
    :math:`\operatorname{Var}_{z \sim p(z)}e(x, z) = 4x^2`: the hypotheses agree about x on the border
    between them, where the entropy of :math:`p(z \mid x)`, which asks for z, has its maximum log 2.

    Both on [−4, 4]; the means are moved by a common offset that the seed draws, which changes nothing.
    """
    offset = 10 * float(Key.of(seed).fold("offset").uniform(1)[0]) - 5
    X = np.array([[-2.0], [-1.0], [1.0], [2.0]]) + offset
    model = GaussianMixture(2, means_init=np.array([[-2.0], [2.0]]) + offset).fit(X)
    energy = model.energy_
    with torch.no_grad():
        energy.from_moments(
            torch.ones(2, dtype=torch.float64),
            torch.tensor([[-2.0], [2.0]], dtype=torch.float64) + offset,
            torch.ones(2, 1, 1, dtype=torch.float64) - 1e-6,
        )
    x = np.linspace(-4, 4, 401)
    rows = x[:, None] + offset
    variance, entropy = model.energy_variance(rows), model.posterior_entropy(rows)
    at = np.array([[0.0], [0.5], [2.0]]) + offset
    few, doubt = model.energy_variance(at), model.posterior_entropy(at)
    claims = [
        Claim.at_most("largest error of Var = 4x²", float(np.abs(variance - 4 * x**2).max()), 1e-6),
        *[Claim.close(f"variance at {p:g}", float(v), e, tol=1e-6)
          for p, v, e in zip((0, 0.5, 2), few, (0, 1, 16))],
        *[Claim.close(f"entropy at {p:g}", float(v), e, tol=1e-6)
          for p, v, e in zip((0, 0.5, 2), doubt, (0.693147, 0.365334, 0.003018))],
        Claim.equal("the variance is least on the border", bool(x[variance.argmin()] == 0), True),
        Claim.close("the largest entropy", float(entropy.max()), float(np.log(2)), tol=1e-6),
        Claim.equal("the entropy is largest on the border", bool(x[entropy.argmax()] == 0), True),
    ]  # fmt: skip
    numbers = {"variance": [float(v) for v in few], "entropy": [float(v) for v in doubt]}
    density = np.exp(model.score_samples(rows))

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        for ax, values, title in (
            (left, variance, "variance of the energy over z"),
            (right, entropy, "entropy of p(z | x)"),
        ):
            ax.fill_between(x, density / density.max() * values.max(), color=COLOURS[5], alpha=0.2)
            ax.plot(x, values, color=COLOURS[0])
            ax.set(title=title, xlabel="x")

    return Result(claims, numbers, draw)
