r"""Responsibilities go from a Voronoi diagram to indifference as the temperature rises."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.distributions import Categorical

from groundstate.compute.random import Key
from groundstate.energy import CentroidEnergy
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.tools import plane
from groundstate.infer import energy_moments, minimise, posterior

K = 5
SHOWN = (0.0, 0.3, 1.0, 3.0, 10.0, math.inf)


@torch.no_grad()
def shares(energy: CentroidEnergy, x: Tensor, T: float) -> Tensor:
    """Responsibilities ``(B, K)`` at a temperature in [0, ∞]."""
    distribution = posterior(energy, "z", {"x": x}, T=T)
    assert isinstance(distribution, Categorical)
    return distribution.probs


@experiment("ENE-X-soft-hard", theme="energy", title="Responsibilities go from uniform to Voronoi")
def soft_hard(seed: int = 0, *, quick: bool = False) -> Result:
    r"""The responsibility of centroid k is :math:`r_k(x) = \mathrm{softmax}(-e(x, \cdot)/T)_k` with
    :math:`e(x, z) = \tfrac12\|x - \mu_z\|^2`.

    At T = 0 it is one-hot on the nearest centroid (a Voronoi diagram, hard assignment), at T = 1 the
    posterior of a mixture, at T = ∞ uniform. At every x its entropy rises with T, from 0 to log K:
    :math:`dH/dT = \mathrm{Var}(e)/T^3 \ge 0`.
    """
    energy = CentroidEnergy(K, 2, scale=3.0, generator=Key.of(seed).fold("mu").torch()).double()
    a, b, points = plane(energy.mu.detach(), n=60 if quick else 120, margin=2.0)
    given = {"x": points}
    warm = [float(t) for t in torch.logspace(-3, 4, 30 if quick else 90, dtype=torch.float64)]
    sweep = [0.0, *warm, math.inf]
    with torch.no_grad():
        rows = [energy_moments(energy, "z", given, T=T).entropy for T in sweep]
        entropy = torch.stack([row for row in rows if row is not None])  # (T, points)
        uniform = shares(energy, points, math.inf)
        hard = shares(energy, points, 0.0)
        cold = shares(energy, points, warm[0])
    nearest = minimise(energy, "z", given)["z"]
    voronoi = torch.cdist(points, energy.mu.detach()).argmin(1)
    fall = float((entropy[:-1] - entropy[1:]).max())
    agree = float((hard.argmax(1) == voronoi).double().mean())

    claims = [
        Claim.at_most("largest fall of the entropy with rising T, over all x", fall, 1e-10),
        Claim.at_most("largest entropy at T = 0", float(entropy[0].abs().max()), 0.0),
        Claim.close("mean entropy at T = ∞", float(entropy[-1].mean()), math.log(K), tol=1e-12),
        Claim.at_most("largest |r − 1/K| at T = ∞", float((uniform - 1 / K).abs().max()), 1e-12),
        Claim.equal("share of x given to the nearest centroid at T = 0", agree, 1.0),
        Claim.equal("T = 0 is the minimiser", bool((hard.argmax(1) == nearest).all()), True),
    ]
    mean = entropy.mean(1)
    numbers = {
        "T": warm,
        "mean entropy": mean.tolist(),
        "not one-hot at T = .001": float((cold.max(1).values < 0.99).double().mean()),
    }

    def draw(figure: Figure) -> None:
        import numpy as np
        from matplotlib.colors import to_rgb

        palette = np.array([to_rgb(c) for c in COLOURS[:K]])
        grid = figure.add_gridspec(2, 6, height_ratios=[1, 1.3])
        for j, T in enumerate(SHOWN):
            ax = figure.add_subplot(grid[0, j])
            r = shares(energy, points, T)
            picture = (r.numpy() @ palette).reshape(len(b), len(a), 3)
            ax.imshow(picture, origin="lower", extent=(a[0], a[-1], b[0], b[-1]), aspect="auto")
            mu = energy.mu.detach().numpy()
            ax.scatter(mu[:, 0], mu[:, 1], s=12, color="white", edgecolor="black", linewidth=0.6)
            ax.set(xticks=[], yticks=[], title="T = ∞" if math.isinf(T) else f"T = {T:g}")
        ax = figure.add_subplot(grid[1, :])
        some = entropy[1:-1, :: max(1, len(points) // 40)]
        ax.plot(warm, some.numpy(), color=COLOURS[5], alpha=0.25, linewidth=0.7)
        ax.plot(warm, mean[1:-1].numpy(), color=COLOURS[0], linewidth=2, label="mean over x")
        ax.axhline(math.log(K), color="black", linestyle="--", linewidth=1, label="log K")
        for T in SHOWN[1:-1]:
            ax.axvline(T, color=COLOURS[1], linewidth=0.7)
        ax.set(xscale="log", xlabel="temperature T", ylabel="entropy of r(x)")
        ax.legend(loc="upper left")

    return Result(claims, numbers, draw, size=(10.0, 4.8))
