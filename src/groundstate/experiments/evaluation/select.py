r"""Choosing the best of many makes its error look better, like √log K."""

from __future__ import annotations

import numpy as np

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.math.stats.bounds import finite_class

N = 200
SIZES = (1, 10, 100, 1000, 10_000)
MEANS = (0.0, 0.055, 0.088, 0.114, 0.136)
BOUNDS = (0.096, 0.122, 0.144, 0.163, 0.180)


@experiment(
    "EVA-X-select", theme="evaluation", title="Choosing among K inflates the gap like √log K"
)
def select(seed: int = 0, *, quick: bool = False) -> Result:
    r"""K classifiers that flip coins have true error ½; the best of them on n rows seems better by
    about :math:`\sqrt{\log K/2n}`, and with probability :math:`1-\delta` by at most
    :math:`\sqrt{(\log K + \log(2/\delta))/2n}`: the union bound over K pointwise bounds.

    200 rows, K from 1 to 10,000, 1,000 repeats (20,000 for K = 1 and 10).
    """
    key = Key.of(seed)
    gaps = []
    for K in SIZES:
        repeats = max(20_000 // K, 200 if quick else 1000)
        rng = key.fold("flips", K).numpy()
        best = [int(rng.binomial(N, 0.5, K).min()) for _ in range(repeats)]
        gaps.append(0.5 - np.array(best) / N)
    mean = [float(g.mean()) for g in gaps]
    top = [float(np.quantile(g, 0.95)) for g in gaps]
    bound = [finite_class(N, 0.05, K) for K in SIZES]
    ratio = np.array(mean[1:]) / np.sqrt(np.log(SIZES[1:]))
    claims = [
        *[
            Claim.close(f"K = {K}: mean gap", m, e, tol=0.002)
            for K, m, e in zip(SIZES, mean, MEANS)
        ],
        *[Claim.close(f"K = {K}: bound", b, e, tol=5e-4) for K, b, e in zip(SIZES, bound, BOUNDS)],
        *[
            Claim.below(f"K = {K}: 95 % quantile less bound", t - b, 0.0)
            for K, t, b in zip(SIZES, top, bound)
        ],
        Claim.below("gap over √log K, largest over least", float(ratio.max() / ratio.min()), 1.3),
    ]
    numbers = {"K": list(SIZES), "mean gap": mean, "95 % quantile": top, "bound": bound}

    def draw(figure: Figure) -> None:
        ax = figure.subplots()
        ax.semilogx(SIZES, bound, "s-", color=COLOURS[1], label="bound, δ = .05")
        ax.semilogx(SIZES, top, "o--", color=COLOURS[0], label="95 % quantile")
        ax.semilogx(SIZES, mean, "o-", color=COLOURS[0], label="mean")
        K = np.logspace(0, 4, 100)
        ax.semilogx(
            K, np.sqrt(np.log(K) / (2 * N)), ":", color=COLOURS[5], label=r"$\sqrt{\log K/2n}$"
        )
        ax.set(xlabel="classifiers K", ylabel="½ less the error of the best")
        ax.legend()

    return Result(claims, numbers, draw, size=(6.0, 3.8))
