r"""Wasserstein distance does not see fast wiggles; other distances see nothing else."""

from __future__ import annotations

import math

import numpy as np

from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.math import divergences

CELLS = 40_000
K = (1, 2, 4, 8, 16, 32)


@experiment("MAT-x-wiggle", theme="mathematics", title="Transport ignores wiggles")
def wiggle(seed: int = 0, *, quick: bool = False) -> Result:
    r"""The density :math:`1 + \tfrac12\sin 2\pi kx` on [0, 1] against the uniform one. Mass has to move by
    half a wave at most, :math:`W_1 = \int|F - x|\,dx = 1/4\pi k`, while
    :math:`\|p-q\|_2 = 1/\sqrt8` and KL = .064638 are the same for every k. Nothing is random.
    """
    x = (np.arange(CELLS) + 0.5) / CELLS
    flat = np.ones(CELLS)
    waves = {k: 1 + 0.5 * np.sin(2 * np.pi * k * x) for k in K}
    w = [float(divergences.wasserstein_1d(x, x, 1, waves[k], flat)) for k in K]
    kl = [float(divergences.kl(waves[k], flat)) for k in K]
    l2 = [float(np.sqrt(np.mean((waves[k] - 1) ** 2))) for k in K]
    off = max(abs(value * 4 * math.pi * k - 1) for value, k in zip(w, K, strict=True))
    claims = [
        Claim.at_most("W₁ over 1/4πk less 1, largest", off, 1e-3),
        Claim.at_most("KL less .064638, largest", max(abs(v - 0.064638) for v in kl), 1e-6),
        Claim.at_most("L₂ less .3536, largest", max(abs(v - 0.3536) for v in l2), 1e-4),
        Claim.close("fall of W₁ from k = 1 to k = 32", w[0] / w[-1], 32.0, tol=0.05),
    ]
    numbers = {"k": list(K), "W1": w, "KL": kl, "L2": l2}

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        for k, colour in ((2, COLOURS[0]), (16, COLOURS[1])):
            left.plot(x[::20], waves[k][::20], color=colour, linewidth=0.8, label=f"k = {k}")
        left.axhline(1, color="black", linewidth=0.6)
        left.set(title="densities on [0, 1]", xlabel="x", ylim=(0, 1.8))
        left.legend()
        for name, values, colour in (
            ("W₁", w, COLOURS[2]),
            ("KL", kl, COLOURS[4]),
            ("L₂", l2, COLOURS[3]),
        ):
            right.loglog(K, values, "o-", color=colour, label=name)
        right.set(title="distance from uniform", xlabel="k")
        right.legend()

    return Result(claims, numbers, draw)
